"""Views of anybody's arrays."""

from cupola.utils._view import StridedMemoryView
from cupola.utils._viewable_arguments import args_viewable_as_strided_memory

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]
