"""Strided layouts: which elements a tensor of some shape and strides visits, without its data.

Element ``(i, j, ...)`` lies at offset ``slice_offset + i * strides[0] + j * strides[1] + ...``, counted in elements.
Layouts are immutable values; every transformation gives a new one and never implies a copy of data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import index, mul

MAX_DIMENSIONS = 64

Order = str | tuple[int, ...]


class _StridedLayout:
    """The shape, strides and item size of a tensor.

    Parameters
    ----------
    shape : tuple of int
        Extents.
    strides : tuple of int or None
        In elements, or in bytes with `divide_strides`; None for row-major (C) order.
    itemsize : int
        Bytes of an element.
    divide_strides : bool
        The strides are in bytes.

    Raises
    ------
    ValueError
        For a negative extent, an item size below one, strides of another length than the shape, byte strides that
        the item size does not divide, or more than 64 dimensions.
    """

    __slots__ = ("_itemsize", "_shape", "_slice_offset", "_strides")

    _shape: tuple[int, ...]
    _strides: tuple[int, ...] | None
    _itemsize: int
    _slice_offset: int

    def __init__(
        self,
        shape: Sequence[int],
        strides: Sequence[int] | None,
        itemsize: int,
        divide_strides: bool = False,
    ) -> None:
        shape = tuple(map(index, shape))
        itemsize = index(itemsize)
        if itemsize <= 0:
            raise ValueError(f"itemsize must be positive, got {itemsize}")
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"a layout has at most {MAX_DIMENSIONS} dimensions, got {len(shape)}")
        if any(extent < 0 for extent in shape):
            raise ValueError(f"extents must not be negative, got shape {shape}")
        if strides is not None:
            strides = tuple(map(index, strides))
            if len(strides) != len(shape):
                raise ValueError(f"shape {shape} has {len(shape)} dimensions, strides {strides} have {len(strides)}")
            if divide_strides:
                if any(stride % itemsize for stride in strides):
                    raise ValueError(f"byte strides {strides} must be multiples of the item size {itemsize}")
                strides = tuple(stride // itemsize for stride in strides)
        self._fill(shape, strides, itemsize, 0)

    def _fill(self, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int, slice_offset: int) -> None:
        set_field = object.__setattr__
        set_field(self, "_shape", shape)
        set_field(self, "_strides", strides)
        set_field(self, "_itemsize", itemsize)
        set_field(self, "_slice_offset", slice_offset)

    def _with(
        self,
        shape: Sequence[int],
        strides: Sequence[int] | None,
        itemsize: int | None = None,
        slice_offset: int | None = None,
    ) -> _StridedLayout:
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"a layout has at most {MAX_DIMENSIONS} dimensions, got {len(shape)}")
        layout = object.__new__(_StridedLayout)
        layout._fill(
            tuple(shape),
            None if strides is None else tuple(strides),
            self._itemsize if itemsize is None else itemsize,
            self._slice_offset if slice_offset is None else slice_offset,
        )
        return layout

    @classmethod
    def dense(cls, shape: Sequence[int], itemsize: int, stride_order: Order = "C") -> _StridedLayout:
        """A layout without gaps: order ``"C"``, ``"F"``, or a permutation whose last axis has stride 1."""
        layout = cls(shape, None, itemsize)
        return layout._with(layout._shape, _dense_strides(layout._shape, _axes(stride_order, layout.ndim)))

    @classmethod
    def dense_like(cls, other: _StridedLayout, stride_order: Order = "K") -> _StridedLayout:
        """A layout without gaps, of the shape of `other`; order ``"K"`` keeps its order of axes."""
        if not isinstance(other, _StridedLayout):
            raise TypeError(f"other must be a layout, not {type(other).__name__}")
        return other.to_dense(stride_order)

    # --- values ---------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Strides in elements; None for row-major order that was not spelled out."""
        return self._strides

    @property
    def strides_in_bytes(self) -> tuple[int, ...] | None:
        """Strides in bytes; None where `strides` is."""
        return None if self._strides is None else tuple(s * self._itemsize for s in self._strides)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._itemsize

    @property
    def volume(self) -> int:
        """Number of elements."""
        return prod(self._shape)

    @property
    def stride_order(self) -> tuple[int, ...]:
        """The axes by falling stride, and extent: a permutation whose last entry moves fastest."""
        if self._strides is None:
            return tuple(range(self.ndim))
        strides = self._strides
        return tuple(sorted(range(self.ndim), key=lambda axis: (-abs(strides[axis]), -self._shape[axis])))

    @property
    def slice_offset(self) -> int:
        """Offset of the first element, in elements, left behind by slicing."""
        return self._slice_offset

    @property
    def slice_offset_in_bytes(self) -> int:
        """Offset of the first element in bytes."""
        return self._slice_offset * self._itemsize

    # --- predicates -----------------------------------------------------------------------------------

    @property
    def is_unique(self) -> bool:
        """Whether no two elements share an offset. May be False for unusual strides that are unique."""
        if 0 in self._shape:
            return True
        reach = 0
        for stride, extent in sorted((abs(s), n) for s, n in self._long_axes()):
            if stride <= reach:
                return False
            reach += stride * (extent - 1)
        return True

    @property
    def is_contiguous_c(self) -> bool:
        """Whether the elements follow each other in row-major order."""
        return self._follows(range(self.ndim))

    @property
    def is_contiguous_f(self) -> bool:
        """Whether the elements follow each other in column-major order."""
        return self._follows(range(self.ndim - 1, -1, -1))

    @property
    def is_contiguous_any(self) -> bool:
        """Whether the elements follow each other in some order of the axes."""
        return self._follows(self.stride_order)

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill the memory from offset 0 without gaps."""
        return self._slice_offset == 0 and self.is_contiguous_any

    # --- range ----------------------------------------------------------------------------------------

    @property
    def offset_bounds(self) -> tuple[int, int]:
        """Smallest and largest offset of an element; (0, -1) when there is none."""
        if 0 in self._shape:
            return 0, -1
        reach = [stride * (extent - 1) for stride, extent in zip(self._known_strides(), self._shape, strict=True)]
        offset = self._slice_offset
        return offset + sum(r for r in reach if r < 0), offset + sum(r for r in reach if r > 0)

    @property
    def min_offset(self) -> int:
        """Smallest offset of an element."""
        return self.offset_bounds[0]

    @property
    def max_offset(self) -> int:
        """Largest offset of an element."""
        return self.offset_bounds[1]

    def required_size_in_bytes(self) -> int:
        """Bytes that the memory must have from offset 0 on.

        Raises
        ------
        ValueError
            When elements lie below offset 0.
        """
        lowest, highest = self.offset_bounds
        if lowest < 0:
            raise ValueError(f"the layout reaches {-lowest} elements below the start of the memory")
        return (highest + 1) * self._itemsize

    # --- transformations ------------------------------------------------------------------------------

    def to_dense(self, order: Order = "K") -> _StridedLayout:
        """The same shape without gaps, at offset 0; this layout itself when it is so already."""
        axes = self.stride_order if order == "K" else _axes(order, self.ndim)
        if self._slice_offset == 0 and self._follows(axes):
            return self
        return self._with(self._shape, _dense_strides(self._shape, axes), slice_offset=0)

    def reshaped(self, shape: Sequence[int]) -> _StridedLayout:
        """The same elements in row-major order under another shape, in which one extent may be -1.

        Raises
        ------
        ValueError
            When the volumes differ, or no strides can express it.
        """
        extents = _without_minus_one(tuple(map(index, shape)), self.volume)
        if 0 in extents:
            return self._with(extents, (0,) * len(extents))
        old = list(self._merged(list(range(self.ndim))))
        strides: list[int] = []
        # Fill the axes of the new shape from the right out of the merged runs of the old one.
        extent, stride = old.pop() if old else (1, 1)
        for wanted in reversed(extents):
            while extent == 1 and wanted != 1 and old:
                extent, stride = old.pop()
            if extent % wanted:
                raise ValueError(f"shape {self._shape} with strides {self._strides} cannot become {extents} in place")
            strides.append(stride)
            extent, stride = extent // wanted, stride * wanted
        return self._with(extents, strides[::-1])

    def permuted(self, axes: Sequence[int]) -> _StridedLayout:
        """The axes in another order."""
        order = _axes(tuple(axes), self.ndim)
        strides = self._known_strides()
        return self._with([self._shape[a] for a in order], [strides[a] for a in order])

    def flattened_axis_mask(self) -> int:
        """Bit `i` is set when axis `i` can be merged into axis `i - 1`. AND the masks of layouts to merge alike."""
        strides = self._known_strides()
        return sum(
            1 << axis
            for axis in range(1, self.ndim)
            if self._shape[axis] == 1
            or self._shape[axis - 1] == 1
            or strides[axis - 1] == strides[axis] * self._shape[axis]
        )

    def flattened(self, start_axis: int = 0, end_axis: int = -1, mask: int | None = None) -> _StridedLayout:
        """Merge neighboring axes from `start_axis` to `end_axis` wherever one stride can express both."""
        if self.ndim == 0 and (start_axis, end_axis) == (0, -1):
            return self._with((1,), (1,))
        start, end = self._axis(start_axis), self._axis(end_axis)
        allowed = self.flattened_axis_mask() if mask is None else mask
        merged = self._merged([axis for axis in range(start + 1, end + 1) if allowed >> axis & 1])
        return self._with([extent for extent, _ in merged], [stride for _, stride in merged])

    def squeezed(self) -> _StridedLayout:
        """Without axes of extent 1; an empty layout gets shape (0,)."""
        if 0 in self._shape:
            return self._with((0,), (0,))
        kept = [axis for axis in range(self.ndim) if self._shape[axis] != 1]
        strides = self._known_strides()
        return self._with([self._shape[a] for a in kept], [strides[a] for a in kept])

    def unsqueezed(self, axis: int | Sequence[int]) -> _StridedLayout:
        """With axes of extent 1 at the given places of the result."""
        places = axis if isinstance(axis, tuple | list) else (axis,)
        if not places:
            return self
        ndim = self.ndim + len(places)
        wanted = {_checked_axis(place, ndim) for place in places}
        if len(wanted) != len(places):
            raise ValueError(f"axes {places} are repeated")
        rest = iter(zip(self._shape, self._known_strides(), strict=True))
        pairs: list[tuple[int, int]] = []
        for place in range(ndim):
            pairs.append((1, 0) if place in wanted else next(rest))
        # An axis of extent 1 is never walked along; give it the stride that keeps a contiguous layout contiguous.
        last = self._known_strides()[-1] if self._shape else 1
        for place in range(ndim - 1, -1, -1):
            if place in wanted:
                after = pairs[place + 1] if place + 1 < ndim else (1, last)
                pairs[place] = (1, after[0] * after[1])
        return self._with([extent for extent, _ in pairs], [stride for _, stride in pairs])

    def broadcast_to(self, shape: Sequence[int]) -> _StridedLayout:
        """Repeat axes of extent 1, and new leading ones, with stride 0."""
        wanted = tuple(map(index, shape))
        new = len(wanted) - self.ndim
        if new < 0:
            raise ValueError(f"shape {self._shape} has more dimensions than {wanted}")
        strides = [0] * new
        for extent, stride, target in zip(self._shape, self._known_strides(), wanted[new:], strict=True):
            if extent != target and extent != 1:
                raise ValueError(f"shape {self._shape} cannot be broadcast to {wanted}")
            strides.append(stride if extent == target else 0)
        return self._with(wanted, strides)

    def repacked(self, itemsize: int, data_ptr: int = 0, axis: int = -1, keep_dim: bool = True) -> _StridedLayout:
        """The same memory seen as elements of another size, `axis` becoming shorter or longer.

        Parameters
        ----------
        itemsize : int
            New bytes of an element, a multiple or a divisor of the old.
        data_ptr : int
            Address of the memory, which must be aligned to larger elements.
        axis : int
            The axis to change, of stride 1.
        keep_dim : bool
            Keep the axis when its extent becomes 1.
        """
        if itemsize == self._itemsize:
            return self
        strides = list(self._known_strides())
        shape, old = list(self._shape), self._itemsize
        axis = self._axis(axis)
        if strides[axis] != 1 and shape[axis] != 1:
            raise ValueError(f"axis {axis} must have stride 1 to be repacked, has {strides[axis]}")
        if itemsize <= 0 or (itemsize % old and old % itemsize):
            raise ValueError(f"item size {itemsize} is neither a multiple nor a divisor of {old}")
        if itemsize >= old:
            ratio = itemsize // old
            others = [stride for place, stride in enumerate(strides) if place != axis]
            if any(value % ratio for value in (shape[axis], self._slice_offset, *others)):
                raise ValueError(
                    f"extent {shape[axis]} of axis {axis}, the strides of the others {others} and the offset "
                    f"{self._slice_offset} must be multiples of {ratio} to pack {ratio} elements into one"
                )
            if data_ptr % itemsize:
                raise ValueError(f"address {data_ptr:#x} is not aligned to {itemsize} bytes")
            shape[axis] //= ratio
            strides = [1 if place == axis else stride // ratio for place, stride in enumerate(strides)]
            offset = self._slice_offset // ratio
        else:
            ratio = old // itemsize
            shape[axis] *= ratio
            strides = [1 if place == axis else stride * ratio for place, stride in enumerate(strides)]
            offset = self._slice_offset * ratio
        if not keep_dim and shape[axis] == 1:
            del shape[axis], strides[axis]
        return self._with(shape, strides, itemsize, offset)

    def max_compatible_itemsize(self, max_itemsize: int = 16, data_ptr: int = 0, axis: int = -1) -> int:
        """The largest item size up to `max_itemsize` that `repacked` accepts."""
        self._axis(axis)
        best = self._itemsize
        if max_itemsize < best:
            raise ValueError(f"max_itemsize, {max_itemsize}, is less than the item size, {best}")
        while best * 2 <= max_itemsize:
            try:
                self.repacked(best * 2, data_ptr, axis)
            except ValueError:
                break
            best *= 2
        return best

    def sliced(self, x: int | slice | tuple[int | slice, ...]) -> _StridedLayout:
        """The elements that an index, a slice, or a tuple of them selects; an index removes its axis."""
        keys = x if isinstance(x, tuple) else (x,)
        if len(keys) > self.ndim:
            raise ValueError(f"{len(keys)} indices for {self.ndim} dimensions")
        shape: list[int] = []
        strides: list[int] = []
        offset, nothing = self._slice_offset, False
        for axis, (extent, stride) in enumerate(zip(self._shape, self._known_strides(), strict=True)):
            item = keys[axis] if axis < len(keys) else slice(None)
            if isinstance(item, slice):
                selected = range(extent)[item]
                nothing = nothing or (not selected and axis < len(keys))
                offset += selected.start * stride if selected else 0
                shape.append(len(selected))
                strides.append(stride * selected.step)
                continue
            if not hasattr(type(item), "__index__"):
                raise TypeError(f"a layout is indexed by integers and slices, not {type(item).__name__}")
            place = index(item)
            if not -extent <= place < extent:
                raise ValueError(f"index {place} is out of range for axis {axis} of extent {extent}")
            offset += (place % extent) * stride
        if nothing:
            strides = [0] * len(shape)
        return self._with(shape, strides, slice_offset=offset)

    __getitem__ = sliced

    # --- the value protocol ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a layout is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a layout is immutable; cannot delete {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _StridedLayout):
            return NotImplemented
        return self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str:
        raise TypeError("a layout cannot be pickled")

    def __repr__(self) -> str:
        offset = f", _slice_offset={self._slice_offset}" if self._slice_offset else ""
        return f"_StridedLayout(shape={self._shape}, strides={self._strides}, itemsize={self._itemsize}{offset})"

    # --- helpers --------------------------------------------------------------------------------------

    def _key(self) -> tuple[object, ...]:
        return self._shape, self._strides, self._itemsize, self._slice_offset

    def _known_strides(self) -> tuple[int, ...]:
        if self._strides is not None:
            return self._strides
        return _dense_strides(self._shape, tuple(range(self.ndim)))

    def _axis(self, axis: int) -> int:
        return _checked_axis(axis, self.ndim)

    def _long_axes(self) -> list[tuple[int, int]]:
        return [(s, n) for s, n in zip(self._known_strides(), self._shape, strict=True) if n > 1]

    def _follows(self, axes: Sequence[int]) -> bool:
        """Whether the last of `axes` has stride 1 and each other that of a full turn of the ones behind it."""
        if 0 in self._shape:
            return True
        strides, expected = self._known_strides(), 1
        for axis in reversed(axes):
            if self._shape[axis] > 1:
                if strides[axis] != expected:
                    return False
                expected *= self._shape[axis]
        return True

    def _merged(self, candidates: Sequence[int]) -> list[tuple[int, int]]:
        """(extent, stride) of the axes after merging each of `candidates`, if possible, into the axis before it."""
        possible = self.flattened_axis_mask()
        result: list[tuple[int, int]] = []
        for axis, (extent, stride) in enumerate(zip(self._shape, self._known_strides(), strict=True)):
            if axis in candidates and axis and possible >> axis & 1:
                before, before_stride = result[-1]
                if extent == 1:
                    continue
                if before == 1 or before_stride == stride * extent:
                    result[-1] = (before * extent, stride)
                    continue
            result.append((extent, stride))
        return result


def _dense_strides(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Strides without gaps when the last of `axes` moves fastest; zeros for a layout without elements."""
    if 0 in shape:
        return (0,) * len(shape)
    turns = list(accumulate((shape[axis] for axis in reversed(axes)), mul, initial=1))
    strides = [0] * len(shape)
    for axis, stride in zip(reversed(axes), turns, strict=False):
        strides[axis] = stride
    return tuple(strides)


def _axes(order: Order, ndim: int) -> tuple[int, ...]:
    if order == "C":
        return tuple(range(ndim))
    if order == "F":
        return tuple(range(ndim - 1, -1, -1))
    if isinstance(order, str):
        raise ValueError(f"order must be 'C', 'F' or a permutation of the axes, got {order!r}")
    axes = tuple(_checked_axis(axis, ndim) for axis in order)
    if sorted(axes) != list(range(ndim)):
        raise ValueError(f"{tuple(order)} is not a permutation of the {ndim} axes")
    return axes


def _checked_axis(axis: int, ndim: int) -> int:
    place = index(axis)
    if not -ndim <= place < ndim:
        raise ValueError(f"axis {place} is out of range for {ndim} dimensions")
    return place % ndim


def _without_minus_one(shape: tuple[int, ...], volume: int) -> tuple[int, ...]:
    unknown = shape.count(-1)
    if unknown > 1:
        raise ValueError(f"only one extent may be -1, got {shape}")
    if any(extent < -1 for extent in shape):
        raise ValueError(f"extents must not be negative, got {shape}")
    if unknown:
        known = -prod(shape)
        if known == 0 or volume % known:
            raise ValueError(f"the -1 in {shape} has no single value for {volume} elements")
        shape = tuple(volume // known if extent == -1 else extent for extent in shape)
    if prod(shape) != volume:
        raise ValueError(f"{volume} elements do not fill shape {shape}")
    return shape
