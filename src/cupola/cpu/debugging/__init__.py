"""A debugger for kernels on the CPU device: breakpoints, steps, variables (`cupola.cpu.debugger`, ``cupola debug``).

`dwarf` reads what compilers say about variables; `code` knows the lines and functions of a kernel; `state` what its
threads are doing; `values`, `objects` and `expressions` are C++; `points` and `steps` say where threads stop, and
`stop` is what is seen then; `session` decides who stops; `terminal` is what a person types.
"""

from __future__ import annotations

from .points import Breakpoint, DebuggerError, Seen, Watch
from .session import Debugger
from .stop import Stop
from .values import ExpressionError

__all__ = ["Breakpoint", "Debugger", "DebuggerError", "ExpressionError", "Seen", "Stop", "Watch", "debugger"]


def debugger() -> Debugger:
    """A debugger for the kernels that are launched in a ``with`` statement.

    Programs that are compiled meanwhile are compiled with ``debug=True``. Blocks of kernels run one after the other.
    Kernels run on the CPU device only.

    Returns
    -------
    Debugger

    Examples
    --------
    >>> import cupola.cpu
    >>> with cupola.cpu.debugger() as debugger:
    ...     point = debugger.breakpoint("saxpy", condition="threadIdx.x == 3")
    ...     @debugger.on_stop
    ...     def look(stop):
    ...         print(stop.line, stop.variables)
    ...         stop.step()
    """
    return Debugger()
