"""When things happened: calls, kernels, copies and named ranges on one line of time, on a GPU and on the CPU device.

``cupola profile --timeline out.html script.py`` does the same for a whole program.
"""

from cupola.profile._ranges import mark, range
from cupola.profile._record import Record
from cupola.profile._timeline import Timeline, timeline

__all__ = ["Record", "Timeline", "mark", "range", "timeline"]
