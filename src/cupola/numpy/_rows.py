"""What is computed along rows of elements that lie side by side: running totals, places, sorting, searching.

The kernels are the files in ``kernels/``, compiled for each type of element. Functions here take arrays of two
dimensions in one piece, or make them: `as_rows` moves an axis behind the others, `back` moves it where it was.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from typing import Any

import numpy

from cupola.bindings import _provider
from cupola.core.program._kernel import Kernel
from cupola.numpy import _ahead
from cupola.numpy._evaluate import device
from cupola.numpy._kernels import BLOCK, COMBINE, file_text, preamble
from cupola.numpy._kernels import code as code_of
from cupola.numpy._lazy import enqueue, make_node, pending
from cupola.numpy._ndarray import empty, ndarray
from cupola.numpy._operations import COMPUTED, MEMORY, expression
from cupola.numpy._report import noted

SCAN_TILE, SORT_TILE = 2048, 512
SCAN_ALONE = 8 * SCAN_TILE  # elements of a row up to which a block takes them all: three launches would take longer
SCAN_PARTS = 1056  # blocks that share the rows: eight for each multiprocessor
FEW = 32  # elements of a row that a thread looks at alone
RADIX_FROM = 1 << 12  # elements for each byte of one; shorter rows are merged
RADIX_PARTS = 528  # blocks that share the rows: four for each multiprocessor
MOST_COUNTED = 2048  # numbers that a block counts in a table of its own
COUNT_SHARE = 8192  # elements that a block counts at least


class _Kernels(dict[str, Kernel]):
    """The kernels of a source by name. Each is compiled by itself when it is needed, since large ones take long."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __missing__(self, name: str) -> Kernel:
        found = self[name] = code_of(only(self._source, name)).get_kernel(name)
        return found

    def load(self, *names: str) -> None:
        """Compile several that are needed now at the same time, as the drivers of GPUs do in several threads."""
        missing = [name for name in names if name not in self]
        if len(missing) < 2 or _provider.current() == "cpu":
            return  # each where it is used
        current = device()

        def one(name: str) -> None:
            current.set_current()
            try:
                self[name] = _ahead.code(only(self._source, name)).get_kernel(name)
            except Exception:
                return  # which comes again where the kernel is used

        with noted("compile"):
            others = [threading.Thread(target=one, args=(name,)) for name in missing[1:]]
            for thread in others:
                thread.start()
            one(missing[0])
            for thread in others:
                thread.join()


# A kernel at the outermost level, with the comment above it.
_KERNEL = re.compile(
    r'^(?://[^\n]*\n)*extern "C" __global__ void (?:__launch_bounds__\(BLOCK\) )?(\w+)\(.*?^\}\n',
    re.MULTILINE | re.DOTALL,
)


def only(source: str, name: str) -> str:
    """A source without its kernels but one."""
    return _KERNEL.sub(lambda found: found[0] if found[1] == name else "", source)


@functools.cache
def _kernels(name: str, char: str, head: str = "", more: str = "") -> _Kernels:
    source = f"""{preamble((), char)}
typedef {MEMORY[char]} T;
typedef {COMPUTED[char]} COMPUTED;
{head}
{file_text("order.cu") if more else ""}{more}
{file_text(name)}"""
    return _Kernels(source)


@functools.cache
def _plain_kernels(name: str, head: str) -> _Kernels:
    """The kernels of a file that needs no types but what is defined in `head`."""
    return _Kernels(head + file_text(name))


def _order(char: str) -> str:
    """What sort, search and best need beside order.cu."""
    return file_text("complex_order.cu") if char in "FD" else " "


def _combined(text: str) -> str:
    return f"static __device__ COMPUTED combined(COMPUTED a, COMPUTED b) {{ return (COMPUTED)({text}); }}"


def _blocks(elements: int) -> int:
    return -(-elements // BLOCK)


def fresh(shape: Any, dtype: Any) -> ndarray:
    """Memory for a result."""
    return empty(shape, dtype)


def ready(x: ndarray) -> ndarray:
    """The array in one piece, its elements computed in, or visible to, the current stream."""
    if not x.is_contiguous:
        x = x.copy()
    x._compute_now()
    x._join()
    return x


def as_rows(x: ndarray, axis: int) -> tuple[ndarray, tuple[int, ...]]:
    """The array as rows along an axis, and the shape that results of that size have with the axis behind."""
    order = (*[k for k in range(x.ndim) if k != axis], axis)
    moved = x if order == tuple(range(x.ndim)) else x.transpose(order)
    shape = moved.shape
    count = shape[-1]
    return ready(moved).reshape((x.size // count if count else math.prod(shape[:-1]), count)), shape


def back(x: ndarray, shape: tuple[int, ...], axis: int, like: ndarray | None = None) -> ndarray:
    """Rows as an array again, with the axis where it was: in row-major order, or lying as another array does."""
    made = x.reshape(shape)
    if axis != len(shape) - 1:
        order = list(range(len(shape) - 1))
        order.insert(axis, len(shape) - 1)
        made = made.transpose(order)
    return laid(made, like)


def laid(x: ndarray, like: ndarray | None) -> ndarray:
    """The array, or what will be a copy that lies as another one does; None: in row-major order."""
    if x.is_contiguous and (like is None or like.is_contiguous):
        return x
    # An expression that reads it takes it as it lies, so often nothing is copied.
    made = pending(make_node("convert", (x,), (x.dtype,), x.dtype, x.shape), () if like is None else (like,))
    steps = zip(x.shape, made.strides, x.strides, strict=True)
    return x if all([one == other for extent, one, other in steps if extent != 1]) else made


# --- running totals -------------------------------------------------------------------------------------------


def scan(rows: ndarray, how: str) -> ndarray:
    """Running totals along rows, of the type of the elements; `how` is a key of COMBINE."""
    char = rows.dtype.char
    combine = COMBINE[how][1].format(
        maximum="(a >= b || a != a ? a : b)" if char in "efdFD" else "(a > b ? a : b)",
        minimum="(a <= b || a != a ? a : b)" if char in "efdFD" else "(a < b ? a : b)",
    )
    made = fresh(rows.shape, rows.dtype)
    if not made.size:
        return made
    many, count = rows.shape
    code = _kernels("scan.cu", char, _combined(combine))
    parts = max(1, min(SCAN_PARTS // many, -(-count // SCAN_TILE))) if count > SCAN_ALONE else 1
    share = -(-count // (parts * SCAN_TILE)) * SCAN_TILE
    parts = -(-count // share)
    totals = fresh((many, parts), rows.dtype)
    if parts > 1:
        code.load("scan_totals", "scan_carries", "scan_parts")
        enqueue(code["scan_totals"], many * parts, rows, totals, many, count, share, parts)
        enqueue(code["scan_carries"], many, totals, many, parts)
    enqueue(code["scan_parts"], many * parts, rows, made, totals, many, count,
            share, parts)  # fmt: skip
    return made


def fold(rows: ndarray, name: str, running: bool, begin: Any = None, chosen: ndarray | None = None) -> ndarray:
    """Combine the elements of rows one after the other by a ufunc.

    `running`: with all results in between. `begin` is what comes before the first element; without it, none of the
    elements may be left out, which `chosen` does.
    """
    text = expression(name, rows.dtype.kind)
    assert text is not None, "the operation was checked before"
    char = rows.dtype.char
    form = text.replace("T(", "(COMPUTED)(").replace("<T>", "<COMPUTED>").format("a", "b")
    if char == "e":
        form = f"rounded_to_half({form})"
    code = _kernels("fold.cu", char, _combined(form))
    made = fresh(rows.shape if running else rows.shape[:1], rows.dtype)
    if made.size:
        given = rows.dtype.type(0) if begin is None else begin
        enqueue(code["fold"], _blocks(rows.shape[0]), rows, made, *rows.shape, numpy.int32(running),
                numpy.int32(begin is not None), given, chosen)  # fmt: skip
    return made


# --- counting -------------------------------------------------------------------------------------------------


def counts(x: ndarray, bins: int) -> ndarray:
    """How often each integer from 0 to `bins` - 1 occurs in an array; at most MOST_COUNTED bins."""
    x = ready(x)
    made = fresh(bins, numpy.int64)
    made.fill(0)
    share = max(COUNT_SHARE, -(-x.size // RADIX_PARTS))
    if x.size and bins:
        code = _kernels("count.cu", x.dtype.char)
        enqueue(code["count_numbers"], -(-x.size // share), x, made, x.size, bins, share)
    return made


# --- places ---------------------------------------------------------------------------------------------------


def true_places(flags: ndarray) -> ndarray:
    """Where an array of bool in one dimension is true. Waits for the number."""
    flags = ready(flags)
    if flags.size == 0:
        return fresh(0, numpy.int64)
    code = _plain_kernels("compact.cu", "")
    share = -(-max(SCAN_TILE, -(-flags.size // SCAN_PARTS)) // BLOCK) * BLOCK
    parts = -(-flags.size // share)
    counts = fresh(parts, numpy.int64)
    code.load("count_true", "place_true")
    enqueue(code["count_true"], parts, flags, counts, flags.size, share)
    made = fresh(int(counts.to_numpy().sum()), numpy.int64)
    if made.size:
        enqueue(code["place_true"], parts, flags, counts, made, flags.size, share)
    return made


def nonzero(x: ndarray) -> tuple[ndarray, ...]:
    """The indices of what is not zero, an array for each dimension. Waits for their number."""
    flags = x if x.dtype == bool else x.astype(bool)
    places = true_places(flags.reshape(-1))
    if x.ndim == 1:
        return (places,)
    found: list[ndarray] = []
    for extent in reversed(x.shape):
        found.append(places % max(extent, 1))
        places = places // max(extent, 1)
    return tuple(reversed(found))


def best(rows: ndarray, greatest: bool) -> ndarray:
    """Where the greatest or least element of each row is."""
    char = rows.dtype.char
    head = f"#define BETTER (a {'>' if greatest else '<'} b)"
    code = _kernels("best.cu", char, head, _order(char))
    many, count = rows.shape
    if many and 0 < count <= FEW:
        found = fresh((many,), numpy.int64)
        enqueue(code["best_of_few"], -(-many // 256), rows, found, many, count)
        return found
    share = count if many >= 256 else 1 << 14
    shares = -(-count // share)
    found = fresh((many, shares), numpy.int64)
    if found.size == 0:
        return found.reshape(-1)
    if shares > 1:
        code.load("best", "best_of_parts")
    enqueue(code["best"], many * shares, rows, found, many, count, share)
    if shares > 1:
        made = fresh((many, 1), numpy.int64)
        enqueue(code["best_of_parts"], many, rows, found, made, many, count, shares)
        found = made
    return found.reshape(-1)


# --- order ----------------------------------------------------------------------------------------------------


def sort(rows: ndarray, descending: bool, places: bool) -> tuple[ndarray, ndarray | None]:
    """Rows sorted stably, and the places that the elements come from if they are wanted."""
    char = rows.dtype.char
    many, count = rows.shape
    if char not in "FD" and RADIX_FROM * rows.itemsize <= count < 1 << 32:
        return _radix_sort(rows, descending, places)
    head = f"#define DESCENDING {int(descending)}\n#define PAIRS {int(places)}"
    code = _kernels("sort.cu", char, head, _order(char))
    made = fresh(rows.shape, rows.dtype)
    found = fresh(rows.shape, numpy.int64) if places else None
    if rows.size == 0:
        return made, found

    if count > SORT_TILE:
        code.load("sort_tiles", "merge_runs")
    enqueue(code["sort_tiles"], many * -(-count // SORT_TILE), rows, made, found, many,
            count)  # fmt: skip
    width = SORT_TILE
    if width < count:
        other, others = fresh(rows.shape, rows.dtype), fresh(rows.shape, numpy.int64) if places else None
        while width < count:
            enqueue(code["merge_runs"], _blocks(rows.size), made, found, other,
                    others, many, count, width)  # fmt: skip
            made, other, found, others = other, made, others, found
            width *= 2
    return made, found


# Unsigned numbers of so many bytes: their type in CUDA C++, NumPy's, and the bits of infinity of such numbers.
BITS = {
    1: ("unsigned char", numpy.uint8, 0),
    2: ("unsigned short", numpy.uint16, 0x7C00),
    4: ("unsigned int", numpy.uint32, 0x7F800000),
    8: ("unsigned long long", numpy.uint64, 0x7FF0000000000000),
}


def _radix_sort(rows: ndarray, descending: bool, places: bool) -> tuple[ndarray, ndarray | None]:
    """Long rows of numbers sorted by their digits."""
    many, count = rows.shape
    size = rows.itemsize
    name, unsigned, infinite = BITS[size]
    form = {"b": 0, "u": 0, "i": 1, "f": 2}[rows.dtype.kind]
    head = f"typedef {name} BITS;\n#define FORM {form}\n#define INFINITE {infinite}ull\n#define PAIRS {int(places)}\n"
    code = _plain_kernels("radix.cu", head)
    tile = BLOCK * (12 if size == 8 else 16)
    parts = max(1, min(RADIX_PARTS // many, -(-count // tile)))
    share = -(-count // (parts * tile)) * tile
    parts = -(-count // share)
    counts, totals = fresh((many, 256, parts), numpy.uint32), fresh((many, 256), numpy.uint32)
    made, other = fresh(rows.shape, rows.dtype), fresh(rows.shape, rows.dtype) if size > 1 else None
    found = fresh(rows.shape, numpy.int64) if places else None
    spare = [fresh(rows.shape, numpy.uint32) if places and size > 1 else None for _ in range(2 if size > 2 else 1)]
    flip = unsigned(2 ** (8 * size) - 1 if descending else 0)
    shape = (many, count, numpy.int32(parts), share)

    code.load("radix_count", "radix_scan", "radix_move")
    given, old = rows, None
    for digit in range(size):
        last = digit == size - 1
        to = made if (size - digit) % 2 else other
        after = spare[digit % 2] if places and not last else None
        how = (numpy.int32(8 * digit), flip)
        enqueue(code["radix_count"], many * parts, given, counts, *shape, *how)
        enqueue(code["radix_scan"], many * 256, counts, totals, many, numpy.int32(parts))
        enqueue(code["radix_move"], many * parts, given, to, old, after,
                found if last else None, counts, totals, *shape, *how)  # fmt: skip
        assert to is not None
        given, old = to, after
    return made, found


def search(ordered: ndarray, values: ndarray, right: bool) -> ndarray:
    """How many elements of a sorted array come before each of the values, which have the same type."""
    char = ordered.dtype.char
    made = fresh(values.shape, numpy.int64)
    if values.size:
        kernel = _kernels("search.cu", char, "", _order(char))["search"]
        enqueue(kernel, _blocks(values.size), ordered, ordered.size, values, made,
        values.size,
                numpy.int32(right))  # fmt: skip
    return made
