"""Views with other strides."""

from __future__ import annotations

from cupola.numpy.lib.stride_tricks import as_strided as as_strided
from cupola.numpy.lib.stride_tricks import sliding_window_view as sliding_window_view
