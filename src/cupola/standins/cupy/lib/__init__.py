"""``cupy.lib``."""

from cupola.standins.cupy.lib import stride_tricks as stride_tricks
