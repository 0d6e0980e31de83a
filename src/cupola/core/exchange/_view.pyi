from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy

from cupola.core.exchange._layout import _StridedLayout
from cupola.core.exchange._strided_memory import StridedMemory
from cupola.core.exchange._tensor_map import TensorMapDescriptor
from cupola.core.exchange._tensor_map_options import (
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from cupola.core.memory._buffer import Buffer

class StridedMemoryView(StridedMemory):
    __c_dlpack_exchange_api__: ClassVar[object]  # the capsule, by the names of both drafts
    __dlpack_c_exchange_api__: ClassVar[object]
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
    def as_tensor_map(
        self,
        box_dim: Sequence[int] | None = None,
        *,
        options: TensorMapDescriptorOptions | dict[str, Any] | None = None,
        element_strides: Sequence[int] | None = None,
        data_type: Any = None,
        interleave: TensorMapInterleave | None = None,
        swizzle: TensorMapSwizzle | None = None,
        l2_promotion: TensorMapL2Promotion | None = None,
        oob_fill: TensorMapOOBFill | None = None,
    ) -> TensorMapDescriptor: ...
    def view(self, layout: _StridedLayout | None = None, dtype: Any = None) -> Self: ...
    def copy_from(self, other: Any, stream: Any, allocator: Any = None, blocking: bool | None = None) -> None: ...
    def copy_to(self, other: Any, stream: Any = None, allocator: Any = None, blocking: bool | None = None) -> None: ...

def _has_dlpack(obj: object) -> bool: ...
def _require_viewable(obj: object) -> None: ...
