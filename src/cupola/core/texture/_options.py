"""What arrays and textures can be asked for, and the types of their elements."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from cupola.core.base._options import naming_options
from cupola.typing import AddressModeType, ArrayFormatType, FilterModeType, ReadModeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum
    from typing import Any, TypeVar

    from numpy.typing import DTypeLike

    E = TypeVar("E", bound=StrEnum)


class Format(NamedTuple):
    """A type of element."""

    number: int  # CUarray_format
    bytes: int


FORMATS = {
    ArrayFormatType.UINT8: Format(0x01, 1),
    ArrayFormatType.UINT16: Format(0x02, 2),
    ArrayFormatType.UINT32: Format(0x03, 4),
    ArrayFormatType.INT8: Format(0x08, 1),
    ArrayFormatType.INT16: Format(0x09, 2),
    ArrayFormatType.INT32: Format(0x0A, 4),
    ArrayFormatType.FLOAT16: Format(0x10, 2),
    ArrayFormatType.FLOAT32: Format(0x20, 4),
}


def member(kind: type[E], value: Any, name: str) -> E:
    """The member of an enum that an option names; ValueError."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(known.value) for known in kind)
        raise ValueError(f"{name} must be one of {known}, or a member of {kind.__name__}; got {value!r}") from None


def as_format(value: object) -> ArrayFormatType:
    """The type of element that is meant: a member, its value, or NumPy's type; ValueError."""
    if isinstance(value, str):
        return member(ArrayFormatType, value, "format")
    known = ", ".join(repr(known.value) for known in ArrayFormatType)
    try:
        from numpy import dtype

        meant = dtype(value)  # type: ignore[call-overload]
        found = ArrayFormatType(meant.name)
    except (ImportError, TypeError, ValueError):
        found = None
    if found is None or value is None or not meant.isnative:
        raise ValueError(f"format must be an ArrayFormatType, a NumPy dtype, or one of {known}; got {value!r}")
    return found


def as_channels(value: Any) -> int:
    """The number of channels; ValueError."""
    if isinstance(value, bool) or value not in (1, 2, 4):
        raise ValueError(f"num_channels must be 1, 2 or 4, got {value!r}")
    return int(value)


def as_count(value: Any, name: str) -> int:
    """A number of something, at least 1; TypeError, ValueError."""
    try:
        count = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if count < 1:
        raise ValueError(f"{name} must be at least 1, got {count}")
    return count


def _as_shape(shape: Iterable[Any]) -> tuple[int, ...]:
    if isinstance(shape, (str, bytes)) or not hasattr(type(shape), "__iter__"):
        raise TypeError(
            f"shape must be a tuple of ints, (width,), (width, height) or (width, height, depth); "
            f"not {type(shape).__name__}"
        )
    extents = tuple(as_count(extent, f"shape[{i}]") for i, extent in enumerate(shape))
    if len(extents) not in (1, 2, 3):
        raise ValueError(f"shape must have 1, 2 or 3 extents, width first; got {len(extents)}")
    return extents


@naming_options
@dataclass(slots=True)
class OpaqueArrayOptions:
    """Options of :meth:`.Device.create_opaque_array`.

    Parameters
    ----------
    shape : tuple of int
        Extents in elements, width first: ``(width,)``, ``(width, height)`` or ``(width, height, depth)``. That is the
        reverse of a NumPy shape.
    format : ArrayFormatType or str or NumPy dtype
        Type of each channel of an element.
    num_channels : int
        1, 2 or 4.
    is_surface_load_store : bool
        A :class:`SurfaceObject` may be made of the array (``CUDA_ARRAY3D_SURFACE_LDST``).

    Raises
    ------
    TypeError
        The shape is no sequence of ints.
    ValueError
        The shape has another number of extents, or one below 1; the format or the number of channels is none of those.
    """

    shape: tuple[int, ...]
    format: ArrayFormatType | str | DTypeLike
    num_channels: int
    is_surface_load_store: bool = False

    def __post_init__(self) -> None:
        """Check the options; again where they are used, since they can be changed."""
        self.shape = _as_shape(self.shape)
        self.format = as_format(self.format)
        self.num_channels = as_channels(self.num_channels)


@naming_options
@dataclass(slots=True)
class MipmappedArrayOptions:
    """Options of :meth:`.Device.create_mipmapped_array`.

    Parameters
    ----------
    shape, format, num_channels
        As those of :class:`OpaqueArrayOptions`, of the largest level.
    num_levels : int
        How many levels. Each halves the extents of the one before; the last possible one has a single element.
    is_surface_load_store : bool
        A :class:`SurfaceObject` may be made of each level (``CUDA_ARRAY3D_SURFACE_LDST``).

    Raises
    ------
    TypeError, ValueError
        As from :class:`OpaqueArrayOptions`, and for a number of levels below 1.
    """

    shape: tuple[int, ...]
    format: ArrayFormatType | str | DTypeLike
    num_channels: int
    num_levels: int
    is_surface_load_store: bool = False

    def __post_init__(self) -> None:
        """Check the options; again where they are used, since they can be changed."""
        self.shape = _as_shape(self.shape)
        self.format = as_format(self.format)
        self.num_channels = as_channels(self.num_channels)
        self.num_levels = as_count(self.num_levels, "num_levels")


@naming_options
@dataclass(slots=True)
class TextureObjectOptions:
    """Options of :meth:`.Device.create_texture_object`: how a kernel's coordinates become values.

    Parameters
    ----------
    address_mode : AddressModeType or str, or tuple of them
        What there is outside: one mode for all dimensions, or one for each; those that are left out are as the last.
        ``"wrap"`` and ``"mirror"`` need normalized coordinates.
    filter_mode : FilterModeType or str
        The nearest element, or a linear mixture of the neighboring ones.
    read_mode : ReadModeType or str
        ``"normalized_float"`` makes integers of 8 and 16 bits floats from 0 to 1, or -1 to 1.
    normalized_coords : bool
        Coordinates run from 0 to 1 instead of from 0 to the extent. Mipmapped arrays need that.
    srgb : bool
        Elements of 8 bits are sRGB, and are made linear when they are read.
    disable_trilinear_optimization : bool
        Mix levels exactly.
    seamless_cubemap : bool
        Filter over the edges of a cubemap.
    max_anisotropy : int
        At most so many samples along the longer axis of a pixel's footprint, 0 to 16. The CPU device takes
        only one: there, kernels that give long gradients need 0 or 1.
    mipmap_filter_mode : FilterModeType or str
        The nearest level, or a linear mixture of two.
    mipmap_level_bias : float
        Added to the level that a kernel asks for.
    min_mipmap_level_clamp, max_mipmap_level_clamp : float
        The levels that are used. With the default maximum of 0 only the first one is: raise it for mipmapped arrays.
    border_color : tuple of float, optional
        Four numbers, what ``"border"`` gives. None: zeros.

    Raises
    ------
    ValueError
        A filter or read mode is none of those. The other options are checked when the texture is made.
    """

    address_mode: AddressModeType | str | Sequence[AddressModeType | str] = AddressModeType.CLAMP
    filter_mode: FilterModeType | str = FilterModeType.POINT
    read_mode: ReadModeType | str = ReadModeType.ELEMENT_TYPE
    normalized_coords: bool = False
    srgb: bool = False
    disable_trilinear_optimization: bool = False
    seamless_cubemap: bool = False
    max_anisotropy: int = 0
    mipmap_filter_mode: FilterModeType | str = FilterModeType.POINT
    mipmap_level_bias: float = 0.0
    min_mipmap_level_clamp: float = 0.0
    max_mipmap_level_clamp: float = 0.0
    border_color: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        self.filter_mode = member(FilterModeType, self.filter_mode, "filter_mode")
        self.read_mode = member(ReadModeType, self.read_mode, "read_mode")
        self.mipmap_filter_mode = member(FilterModeType, self.mipmap_filter_mode, "mipmap_filter_mode")


_ADDRESS_MODES = {mode: number for number, mode in enumerate(AddressModeType)}
_FILTERS = {mode: number for number, mode in enumerate(FilterModeType)}

# Bits of CUDA_TEXTURE_DESC.flags, by option.
_FLAGS = {
    "normalized_coords": 0x02,
    "srgb": 0x10,
    "disable_trilinear_optimization": 0x20,
    "seamless_cubemap": 0x40,
}
_READ_AS_INTEGER = 0x01


def as_sampling(options: TextureObjectOptions) -> tuple[Any, ...]:
    """Check the options of a texture, and give the fields of CUDA_TEXTURE_DESC in their order."""
    flags = 0 if member(ReadModeType, options.read_mode, "read_mode") == "normalized_float" else _READ_AS_INTEGER
    for name, bit in _FLAGS.items():
        flags |= bit if getattr(options, name) else 0
    return (
        _address_modes(options.address_mode),
        _FILTERS[member(FilterModeType, options.filter_mode, "filter_mode")],
        flags,
        _as_anisotropy(options.max_anisotropy),
        _FILTERS[member(FilterModeType, options.mipmap_filter_mode, "mipmap_filter_mode")],
        _as_float(options.mipmap_level_bias, "mipmap_level_bias"),
        _as_float(options.min_mipmap_level_clamp, "min_mipmap_level_clamp"),
        _as_float(options.max_mipmap_level_clamp, "max_mipmap_level_clamp"),
        _border(options.border_color),
    )


def _address_modes(modes: object) -> list[int]:
    if isinstance(modes, str):
        return [_ADDRESS_MODES[member(AddressModeType, modes, "address_mode")]] * 3
    if not isinstance(modes, (tuple, list)):
        raise TypeError(
            f"address_mode must be an AddressModeType, or a tuple of one for each dimension; not {type(modes).__name__}"
        )
    if not 1 <= len(modes) <= 3:
        raise ValueError(f"address_mode has {len(modes)} modes; there may be 1 to 3, one for each dimension")
    named = [member(AddressModeType, mode, f"address_mode[{i}]") for i, mode in enumerate(modes)]
    named += [named[-1]] * (3 - len(named))
    return [_ADDRESS_MODES[mode] for mode in named]


def _as_anisotropy(value: Any) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"max_anisotropy must be an int, not {type(value).__name__}") from None
    if not 0 <= number < 2**32:
        raise ValueError(f"max_anisotropy must be from 0 to 16, got {number}")
    return number


def _as_float(value: Any, name: str) -> float:
    if not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be a number, not {value!r}")
    return float(value)


def _border(color: Any) -> list[float]:
    if color is None:
        return [0.0] * 4
    if isinstance(color, str) or not hasattr(type(color), "__iter__"):
        raise TypeError(f"border_color must be a tuple of four numbers, not {type(color).__name__}")
    channels = [_as_float(channel, f"border_color[{i}]") for i, channel in enumerate(color)]
    if len(channels) != 4:
        raise ValueError(f"border_color must have four numbers, got {len(channels)}")
    return channels
