"""What NumPy has in ``numpy.lib``: `stride_tricks`."""

from __future__ import annotations

from cupola.numpy.lib import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
