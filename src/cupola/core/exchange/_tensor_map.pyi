from collections.abc import Sequence
from typing import Any

from cupola.core.device._device import Device
from cupola.core.exchange._tensor_map_options import TensorMapDataType as TensorMapDataType
from cupola.core.exchange._tensor_map_options import TensorMapDescriptorOptions as TensorMapDescriptorOptions
from cupola.core.exchange._tensor_map_options import TensorMapIm2ColWideMode as TensorMapIm2ColWideMode
from cupola.core.exchange._tensor_map_options import TensorMapInterleave as TensorMapInterleave
from cupola.core.exchange._tensor_map_options import TensorMapL2Promotion as TensorMapL2Promotion
from cupola.core.exchange._tensor_map_options import TensorMapOOBFill as TensorMapOOBFill
from cupola.core.exchange._tensor_map_options import TensorMapSwizzle as TensorMapSwizzle
from cupola.core.exchange._view import StridedMemoryView

class TensorMapDescriptor:
    def __init__(self) -> None: ...
    @property
    def device(self) -> Device: ...
    def replace_address(self, tensor: object) -> None: ...
    @classmethod
    def _from_tiled(
        cls,
        view: StridedMemoryView,
        box_dim: Sequence[int] | None = None,
        *,
        options: TensorMapDescriptorOptions | dict[str, Any] | None = None,
        element_strides: Sequence[int] | None = None,
        data_type: Any = None,
        interleave: TensorMapInterleave | None = TensorMapInterleave.NONE,
        swizzle: TensorMapSwizzle | None = TensorMapSwizzle.NONE,
        l2_promotion: TensorMapL2Promotion | None = TensorMapL2Promotion.NONE,
        oob_fill: TensorMapOOBFill | None = TensorMapOOBFill.NONE,
    ) -> TensorMapDescriptor: ...
    @classmethod
    def _from_im2col(
        cls,
        view: StridedMemoryView,
        pixel_box_lower_corner: Sequence[int],
        pixel_box_upper_corner: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: Sequence[int] | None = None,
        data_type: Any = None,
        interleave: TensorMapInterleave = TensorMapInterleave.NONE,
        swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE,
        l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE,
        oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE,
    ) -> TensorMapDescriptor: ...
    @classmethod
    def _from_im2col_wide(
        cls,
        view: StridedMemoryView,
        pixel_box_lower_corner_width: int,
        pixel_box_upper_corner_width: int,
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: Sequence[int] | None = None,
        data_type: Any = None,
        interleave: TensorMapInterleave = TensorMapInterleave.NONE,
        mode: TensorMapIm2ColWideMode = TensorMapIm2ColWideMode.W,
        swizzle: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B,
        l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE,
        oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE,
    ) -> TensorMapDescriptor: ...
