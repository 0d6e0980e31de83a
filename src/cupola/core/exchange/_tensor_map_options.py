"""The enums and the options of tensor maps, and what is wrong with one. Imported when a tensor map is made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from cupola.core.base._options import naming_options

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import numpy


class TensorMapDataType(IntEnum):
    """Types of elements (``CUtensorMapDataType``); FTZ means that denormals become zero."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12


class TensorMapInterleave(IntEnum):
    """Layouts of the channels of images (``CUtensorMapInterleave``)."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2


class TensorMapSwizzle(IntEnum):
    """How pieces of 16 bytes are permuted in shared memory, against bank conflicts (``CUtensorMapSwizzle``)."""

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3


class TensorMapL2Promotion(IntEnum):
    """What is fetched into the second cache at a time (``CUtensorMapL2promotion``)."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class TensorMapOOBFill(IntEnum):
    """What elements outside of the tensor are read as: zero, or a NaN (``CUtensorMapFloatOOBfill``)."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


class TensorMapIm2ColWideMode(IntEnum):
    """How pixels along the width are loaded (``CUtensorMapIm2ColWideMode``)."""

    W = 0
    W128 = 1


SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""Bytes of an element, by TensorMapDataType."""

_BY_DTYPE = {
    "uint8": TensorMapDataType.UINT8,
    "uint16": TensorMapDataType.UINT16,
    "uint32": TensorMapDataType.UINT32,
    "int32": TensorMapDataType.INT32,
    "uint64": TensorMapDataType.UINT64,
    "int64": TensorMapDataType.INT64,
    "float16": TensorMapDataType.FLOAT16,
    "float32": TensorMapDataType.FLOAT32,
    "float64": TensorMapDataType.FLOAT64,
    "bfloat16": TensorMapDataType.BFLOAT16,
}


def data_type(value: object) -> TensorMapDataType | numpy.dtype[Any]:
    """The enum as it is, and anything else as a numpy.dtype; TypeError when it is none."""
    if isinstance(value, TensorMapDataType):
        return value
    import numpy

    try:
        return numpy.dtype(value)  # type: ignore[call-overload, no-any-return]
    except TypeError as error:
        raise TypeError(f"data_type must be a TensorMapDataType or what numpy.dtype takes, not {value!r}") from error


def of_dtype(dtype: numpy.dtype[Any] | None) -> TensorMapDataType:
    """The type of a tensor map for elements of a numpy.dtype; ValueError when there is none."""
    if dtype is None:
        raise ValueError("the view has no dtype: give data_type")
    found = _BY_DTYPE.get(dtype.name) if dtype.isnative else None
    if found is None:
        raise ValueError(
            f"tensor maps have no type for {dtype!r}: view the elements as {', '.join(_BY_DTYPE)}, such as an unsigned "
            "type of the same size"
        )
    return found


def integers(name: str, value: Iterable[int]) -> tuple[int, ...]:
    """Python integers as a tuple; TypeError for anything else."""
    try:
        found = tuple(value)
    except TypeError:
        raise TypeError(f"{name} must be a tuple of ints, not {type(value).__name__}") from None
    for item in found:
        if not isinstance(item, int):
            raise TypeError(f"{name} must be a tuple of ints, not of {type(item).__name__}: {found!r}")
    return found


def member(name: str, value: object, kind: type[IntEnum]) -> IntEnum:
    """The enum's member; TypeError for anything else."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    return value


@naming_options
@dataclass
class TensorMapDescriptorOptions:
    """Options of :meth:`.StridedMemoryView.as_tensor_map`.

    Sequences begin with the outermost dimension, as shapes do. The enums are in ``cupola.core.exchange._tensor_map``.

    Parameters
    ----------
    box_dim : tuple of int
        What one copy moves: elements in each dimension, 1 to 256.
    element_strides : tuple of int, optional
        Take every so manyth element in each dimension, 1 to 8.
    data_type : numpy.dtype or TensorMapDataType, optional
        Type of the elements, that of the view by default.
    interleave : TensorMapInterleave
        Layout of the channels of images.
    swizzle : TensorMapSwizzle
        Order in shared memory, against bank conflicts.
    l2_promotion : TensorMapL2Promotion
        What is fetched into the second cache at a time.
    oob_fill : TensorMapOOBFill
        What elements outside of the tensor are read as.

    Raises
    ------
    TypeError
        A sequence has something else than Python integers, or an enum is given as a number.
    """

    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = None
    data_type: object = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE

    def __post_init__(self) -> None:
        self.box_dim = integers("box_dim", self.box_dim)
        if self.element_strides is not None:
            self.element_strides = integers("element_strides", self.element_strides)
        if self.data_type is not None:
            self.data_type = data_type(self.data_type)
        member("interleave", self.interleave, TensorMapInterleave)
        member("swizzle", self.swizzle, TensorMapSwizzle)
        member("l2_promotion", self.l2_promotion, TensorMapL2Promotion)
        member("oob_fill", self.oob_fill, TensorMapOOBFill)


def why_refused(
    address: int,
    kind: int,
    shape: Sequence[int],
    strides: Sequence[int],
    row: tuple[str, int],
    steps: Sequence[int],
    interleave: int,
    swizzle: int,
    fill: int,
) -> str:
    """Which rule of the driver a tensor map breaks, by the dimensions of the shape; empty when none that we know.

    ``strides`` are in bytes, the last one left out; ``row`` is what the innermost extent of the box is called, and it.
    """
    rank, size = len(shape), SIZES[kind]
    slices = (0, 16, 32)[interleave]
    unit = 32 if slices == 32 else 16
    name, extent = row
    if slices and rank < 3:
        return f"an interleaved layout needs 3 dimensions or more, the shape {tuple(shape)} has {rank}"
    if address % unit:
        return f"the address {address:#x} is no multiple of {unit} bytes, as INTERLEAVE_{unit}B wants"
    for axis, length in enumerate(shape):
        if not 1 <= length <= 1 << 32:
            return f"dimension {axis} has {length} elements; it must have 1 to 2**32"
    for axis, stride in enumerate(strides):
        if stride % unit:
            return f"the stride of dimension {axis} is {stride} bytes; it must be a multiple of {unit}"
        if not 0 <= stride < 1 << 40:
            return f"the stride of dimension {axis} is {stride} bytes; it must be less than 2**40, and not negative"
    for axis, step in enumerate(steps):
        if not 1 <= step <= 8:
            return f"element_strides[{axis}] is {step}; it must be from 1 to 8"
    if fill and kind < TensorMapDataType.FLOAT16:
        return f"oob_fill NAN_REQUEST_ZERO_FMA is for floating types, not for {TensorMapDataType(kind).name}"
    if not slices and extent * size % 16:
        return f"{name} is {extent} elements of {size} bytes, {extent * size} bytes; it must be a multiple of 16 bytes"
    if not slices and swizzle and extent * size > 16 << swizzle:
        return (
            f"{name} is {extent} elements of {size} bytes, {extent * size} bytes; with SWIZZLE_{16 << swizzle}B it "
            f"must be {16 << swizzle} bytes at most"
        )
    if slices == 32 and swizzle != TensorMapSwizzle.SWIZZLE_32B:
        return "INTERLEAVE_32B goes with SWIZZLE_32B only"
    return ""
