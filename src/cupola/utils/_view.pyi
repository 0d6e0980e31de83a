from typing import Any, Self

import numpy

from cupola.core._buffer import Buffer
from cupola.utils._layout import _StridedLayout
from cupola.utils._strided_memory import StridedMemory

class StridedMemoryView(StridedMemory):
    def __init__(self, obj: object | None = None, stream_ptr: Any = None) -> None: ...
    @classmethod
    def from_any_interface(cls, obj: object, stream_ptr: Any = None) -> Self: ...
    @classmethod
    def from_dlpack(cls, obj: object, stream_ptr: Any = None) -> Self: ...
    @classmethod
    def from_cuda_array_interface(cls, obj: object, stream_ptr: Any = None) -> Self: ...
    @classmethod
    def from_array_interface(cls, obj: object) -> Self: ...
    @classmethod
    def from_buffer(
        cls,
        buffer: Buffer,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        itemsize: int | None = None,
        dtype: numpy.dtype[Any] | None = None,
        is_readonly: bool = False,
    ) -> Self: ...
    def view(self, layout: _StridedLayout | None = None, dtype: Any = None) -> Self: ...

def _has_dlpack(obj: object) -> bool: ...
def _require_viewable(obj: object) -> None: ...
