"""Kernels made of expressions: one for each structure, compiled at its first use and kept on disk.

An *elementwise* kernel computes one element in each turn of a loop over the grid. A *reduction* computes all elements
that belong to one result and combines them, by a block of threads in a tree whose order does not depend on timing;
where there are few results, several blocks share one and leave partial results. Where each array either has its
elements in one piece in the order of the result, or is a single element, the index is that of memory; else places
follow from strides, which are arguments. Finding them takes a division for each dimension. Where the rows of all arrays
lie in one piece and are long, blocks go along rows instead.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from cupola.core.program._kernel import Kernel
from cupola.numpy._operations import COMPUTED, MEMORY
from cupola.numpy._report import noted

if TYPE_CHECKING:
    from cupola.core.program._object_code import ObjectCode

BLOCK = 256
ROWS_OF = "rs"  # how arrays lie of which blocks take rows: side by side along one, or one element for all of it


def layout_struct(arrays: int, axes: int) -> str:
    """The type of what a kernel gets of arrays that do not lie in one piece: extents, and the strides of each array."""
    return f"struct Layout {{ long long extent[{axes}], stride[{arrays}][{axes}]; }};" if axes > 0 else ""


def layout_parameter(axes: int) -> str:
    """The parameter of that type, if there is one."""
    return ", const __grid_constant__ Layout layout" if axes > 0 else ""


# How reductions begin and combine, by the kind of the type that they are computed in.
COMBINE = {
    "sum": ("0", "a + b"),
    "prod": ("1", "a * b"),
    "max": (None, "{maximum}"),
    "min": (None, "{minimum}"),
    "any": ("false", "a || b"),
    "all": ("true", "a && b"),
}


@functools.cache
def file_text(name: str) -> str:
    """The text of a file with CUDA C++."""
    with open(os.path.join(os.path.dirname(__file__), "kernels", name), encoding="utf-8") as file:
        return file.read()


def preamble(lines: tuple[str, ...] = (), *chars: str) -> str:
    """What stands before a kernel that has these statements and types; complex numbers only where there are some."""
    with_complex = any(char in "FD" for char in chars) or any("complex_number" in line for line in lines)
    with_rare = any("rare_source" in line for line in lines)
    with_random = with_rare or any("random_source" in line for line in lines)
    more = (file_text("complex.cu") if with_complex else "") + (file_text("random.cu") if with_random else "")
    return file_text("preamble.cu") + more + (file_text("rare.cu") if with_rare else "")


def compiled(source: str, name: str, **options: Any) -> Kernel:
    """A kernel of this source; see `code`."""
    return code(source, **options).get_kernel(name)


def code(source: str, **options: Any) -> ObjectCode:
    """Code of this source, which came with the package, is on the disk, or is compiled; `report` counts it."""
    from cupola.numpy import _ahead

    with noted("compile"):
        return _ahead.code(source, **options)


def _places(count: int, axes: int, wide: bool = True, number: str = "i") -> str:
    """Code that finds the places of element i in arrays with strides; without `wide`, there are less than 2**31."""
    if axes < 0:
        return ""
    index = "unsigned long long" if wide else "unsigned int"
    lines = [f"[[maybe_unused]] {index} rest = {number};", *[f"long long p{k} = 0;" for k in range(count)]]
    for axis in reversed(range(axes)):
        # The first dimension has what is left.
        here = f"rest % ({index})layout.extent[{axis}]" if axis else "rest"
        lines.append(f"{{ const long long at = {here};")
        lines += [f"p{k} += at * layout.stride[{k}][{axis}];" for k in range(count)]
        lines.append(f"}} rest /= ({index})layout.extent[{axis}];" if axis else "}")
    return "\n".join(lines)


def _addresses(types: tuple[str, ...], modes: str, base: str) -> list[str]:
    """Where the values of arrays lie: in one piece (c), a single element (1), or by strides (g) from `base`.

    Along a row, they lie side by side (r), or there is one for all (s).
    """
    return [
        {
            "c": f"(in{k} + i * sizeof({MEMORY[char]}))",
            "1": f"in{k}",
            "g": f"({base}{k} + p{k})",
            "r": f"(row{k} + c * sizeof({MEMORY[char]}))",
            "s": f"row{k}",
        }[mode]
        for k, (char, mode) in enumerate(zip(types, modes, strict=True))
    ]


def _body(lines: tuple[str, ...], types: tuple[str, ...], modes: str, base: str = "in") -> str:
    places = _addresses(types, modes, base)
    text = "\n".join(lines)
    for k in reversed(range(len(places))):
        text = text.replace(f"READ({k})", f"*(const {MEMORY[types[k]]}*){places[k]}").replace(f"AT({k})", places[k])
    return text


def _parameters(types: tuple[str, ...], scalars: tuple[str, ...]) -> str:
    named = [f"const char* in{k}" for k in range(len(types))]
    named += [f"{COMPUTED[char]} s{k}" for k, char in enumerate(scalars)]
    return "".join(f", {parameter}" for parameter in named)


@functools.cache
def elementwise(
    lines: tuple[str, ...],
    result: str,
    types: tuple[str, ...],
    scalars: tuple[str, ...],
    modes: str,
    axes: int,
    to: str,
    at: str = "",
    combine: str = "",
    wide: bool = False,
) -> Kernel:
    """The kernel ``elementwise(out, n, arrays..., scalars...)``, with a layout behind `n` if there are strides.

    Where arrays have rows, in place of `n` there are the number of rows, their length, and how many elements of one a
    block takes; the layout is that of the rows. Such kernels divide once for a row, not for each element.

    Parameters
    ----------
    lines : tuple of str
        Statements of `Text`.
    result : str
        The value to store.
    types, scalars : tuple of str
        Letters of NumPy's types.
    modes : str
        How each array is read, and the result is written.
    axes : int
        Dimensions of the layout; -1 without strides.
    to : str
        The letter of the result's type.
    at : str
        Bytes from there to where the result is stored.
    combine : str
        How it is combined with what is there, ``a`` and ``b``, also if several threads do so; it is stored without.
    wide : bool
        Whether there may be 2**31 elements, where places follow from strides.
    """
    count = len(types)
    place = {
        "c": f"out + i * sizeof({MEMORY[to]})", "g": f"out + p{count}", "s": f"row{count}",
        "r": f"row{count} + c * sizeof({MEMORY[to]})",
    }[modes[-1]]  # fmt: skip
    place = f"({MEMORY[to]}*)({place}{' + ' + at if at else ''})"
    store = f"*{place} = ({MEMORY[to]})({result});"
    head = ""
    alone = bool(combine) and to == "D"
    if combine:
        kind = COMPUTED[to]
        head = f"""
struct combined {{
    static __device__ {MEMORY[to]} of({MEMORY[to]} there, {kind} b) {{
        {kind} a = there;
        return ({MEMORY[to]})({combine});
    }}
}};"""
        store = f"combine<combined>({place}, ({kind})({result}));"
        if combine == "a + b" and to in "iIlLqQfd":
            store = f"add_there({place}, ({MEMORY[to]})({result}));"
        if to == "D":  # nothing compares and swaps 16 bytes: one thread does it
            store = f"*{place} = combined::of(*{place}, ({kind})({result}));"
    if modes[-1] in ROWS_OF:
        return compiled(_row_by_row(lines, types, scalars, modes, axes, to, store, wide), "elementwise")
    source = f"""{preamble(lines, *types, *scalars, to)}{file_text("combine.cu") if combine else ""}
{layout_struct(len(types) + 1, axes)}{head}
extern "C" __global__ void __launch_bounds__({BLOCK}) elementwise(
    char* out, long long n{layout_parameter(axes)}{_parameters(types, scalars)}) {{
    {"if (blockIdx.x || threadIdx.x) return;" if alone else ""}
    long long step = {"1" if alone else "(long long)gridDim.x * blockDim.x"};
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {{
        {_places(len(types) + 1, axes, wide)}
        {_body(lines, types, modes[:-1])}
        {store}
    }}
}}
"""
    return compiled(source, "elementwise")


def _row_by_row(
    lines: tuple[str, ...],
    types: tuple[str, ...],
    scalars: tuple[str, ...],
    modes: str,
    axes: int,
    to: str,
    store: str,
    wide: bool,
) -> str:
    """The source of an elementwise kernel whose blocks go along rows."""
    arrays = [*[f"in{k}" for k in range(len(types))], "out"]
    rows = "\n".join([
        f"{'' if name == 'out' else 'const '}char* row{k} = {name} + p{k};"
        for k, name in enumerate(arrays) if modes[k] in ROWS_OF
    ])  # fmt: skip
    return f"""{preamble(lines, *types, *scalars, to)}
{layout_struct(len(arrays), axes)}
typedef {"unsigned long long" if wide else "unsigned int"} INDEX;
extern "C" __global__ void __launch_bounds__({BLOCK}) elementwise(
    char* out, long long rows, long long all_length,
    long long all_share{layout_parameter(axes)}{_parameters(types, scalars)}) {{
    const INDEX length = all_length, share = all_share, shares = (length + share - 1) / share, parts = rows * shares;
#pragma unroll 1
    for (INDEX part = blockIdx.x; part < parts; part += gridDim.x) {{
        const INDEX row = part / shares, from = part % shares * share;
        const INDEX end = length - from < share ? length : from + share;
        {_places(len(arrays), axes, wide, "row")}
        {rows}
#pragma unroll 1
        for (INDEX c = from + threadIdx.x; c < end; c += {BLOCK}) {{
            [[maybe_unused]] const long long i = (long long)row * length + c;
            {_body(lines, types, modes[:-1])}
            {store}
        }}
    }}
}}
"""


def product(char: str) -> Kernel:
    """The kernel of products of small matrices."""
    types = f"typedef {MEMORY[char]} T;\ntypedef {COMPUTED[char]} COMPUTED;\n"
    return compiled(preamble((), char) + types + file_text("product.cu"), "product")


# How a reduction is shared out: a thread for each result; a block for each, or for a share of one; a block for 32
# results that lie side by side, or for shares of them.
THREAD, ROWS, COLUMNS = range(3)


def _split_places(modes: str, kept: int, axes: int) -> tuple[str, str]:
    """Code that finds where a result begins in arrays with strides, and from there the places of its element c."""
    if axes < 0:
        return "", ""
    spread = [k for k, mode in enumerate(modes) if mode == "g"]
    found = []
    for name, variable, first, last in (("b", "r", 0, kept), ("p", "c", kept, axes)):
        start = [f"const char* b{k} = in{k};" if name == "b" else f"long long p{k} = 0;" for k in spread]
        lines = [*start, f"{{ INDEX rest = {variable};"] if last > first else start
        for axis in reversed(range(first, last)):
            # The first dimension has what is left.
            here = "rest" if axis == first else f"rest % (INDEX)layout.extent[{axis}]"
            lines.append(f"{{ const long long at = {here};")
            lines += [f"{name}{k} += at * layout.stride[{k}][{axis}];" for k in spread]
            lines.append("}" if axis == first else f"}} rest /= (INDEX)layout.extent[{axis}];")
        found.append("\n".join([*lines, "}"] if last > first else lines))
    return found[0], found[1]


@functools.cache
def reduction(
    how: str | tuple[str, str],
    lines: tuple[str, ...],
    result: str,
    types: tuple[str, ...],
    scalars: tuple[str, ...],
    modes: str,
    kept: int,
    axes: int,
    to: str,
    sharing: int,
    wide: bool,
) -> Kernel:
    """The kernel ``reduction(out, partial, counters, results, count, share, arrays..., scalars...)``.

    A layout stands behind `share` if there are strides: its first `kept` dimensions are those of the results.

    Result r is made of `count` elements. Where blocks share one, each takes `share` of them and leaves what it has
    found in `partial`; the last of them to finish, by `counters`, combines that. So the order is the same in each run.
    """
    first, combine = COMBINE[how] if isinstance(how, str) else how
    kind, memory = COMPUTED[to], MEMORY[to]
    if isinstance(how, str):
        combine = combine.format(
            maximum="(a >= b || a != a ? a : b)" if to in "efdFD" else "(a > b ? a : b)",
            minimum="(a <= b || a != a ? a : b)" if to in "efdFD" else "(a < b ? a : b)",
        )
    base, places = _split_places(modes, kept, axes)
    text = _body(lines, types, modes, "b")

    def element(variable: str, index: str) -> str:
        where = places if axes >= 0 else "[[maybe_unused]] const INDEX i = r * count + c;"
        return f"{{ [[maybe_unused]] const INDEX c = {index}; {where}\n{text}\n{variable} = ({kind})({result}); }}"

    def begin(index: str) -> str:
        """A value that changes nothing: the first element, where there is no other."""
        return element("total", index) if first is None else f"total = ({kind})({first});"

    def turns(step: int) -> str:
        return f"""
        for (; k + 3 * {step} < end; k += 4 * {step}) {{
            {kind} value[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {element("value[u]", f"k + u * {step}")}
#pragma unroll
            for (int u = 0; u < 4; u++) total = combined(total, value[u]);
        }}
        for (; k < end; k += {step}) {{
            {kind} value;
            {element("value", "k")}
            total = combined(total, value);
        }}"""

    head = f"""{preamble(lines, *types, *scalars, to)}
{layout_struct(len(types), axes)}
typedef {"unsigned long long" if wide else "unsigned int"} INDEX;
static __device__ {kind} combined({kind} a, {kind} b) {{ return ({kind})({combine}); }}
extern "C" __global__ void __launch_bounds__({BLOCK}) reduction(
    {memory}* out, {memory}* partial, unsigned int* counters, long long all_results, long long all_counts,
    long long all_share{layout_parameter(axes)}{_parameters(types, scalars)}) {{
    const INDEX results = all_results, count = all_counts, share = all_share;
    [[maybe_unused]] const INDEX shares = share ? (count + share - 1) / share : 1;
"""
    if sharing == THREAD:
        return compiled(f"""{head}
    for (INDEX r = blockIdx.x * {BLOCK} + threadIdx.x; r < results; r += gridDim.x * {BLOCK}) {{
        {base}
        {kind} total;
        {begin("0")}
        for (INDEX k = 0; k < count; k++) {{
            {kind} value;
            {element("value", "k")}
            total = combined(total, value);
        }}
        out[r] = ({memory})(total);
    }}
}}
""", "reduction")  # fmt: skip
    if sharing == ROWS:
        # Half of the threads add the others' totals to theirs, then half of these, and so on. One warp does that for
        # all, in the same order, since a barrier of the block costs more than the additions.
        tree = f"""
        __syncthreads();
        if (threadIdx.x < 32) {{
            {kind} value[{BLOCK} / 32];
#pragma unroll
            for (int k = 0; k < {BLOCK} / 32; k++) value[k] = totals[threadIdx.x + 32 * k];
#pragma unroll
            for (int half = {BLOCK} / 64; half; half /= 2)
#pragma unroll
                for (int k = 0; k < half; k++) value[k] = combined(value[k], value[k + half]);
            totals[threadIdx.x] = value[0];
//CPU #pragma unroll 1
            for (int half = 16; half; half /= 2) {{
                __syncwarp();
                if (threadIdx.x < half) totals[threadIdx.x] = combined(totals[threadIdx.x], totals[threadIdx.x + half]);
            }}
        }}"""
        return compiled(f"""{head}
    __shared__ alignas(16) char memory[{BLOCK} * sizeof({kind})];
    __shared__ bool last;
    {kind}* totals = ({kind}*)memory;
    for (INDEX part = blockIdx.x; part < results * shares; part += gridDim.x) {{
        const INDEX r = part / shares, from = part % shares * share, end = count - from < share ? count : from + share;
        {base}
        INDEX k = from + threadIdx.x;
        {kind} total;
        {begin("from")}
        {turns(BLOCK)}
#pragma unroll 1
        for (bool all = shares == 1;; all = true) {{
            totals[threadIdx.x] = total;
            {tree}
            if (threadIdx.x == 0) {{
                if (all) {{
                    out[r] = ({memory})(totals[0]);
                    last = false;
                }} else {{
                    partial[part] = ({memory})(totals[0]);
                    __threadfence();
                    last = atomicInc(&counters[r], shares - 1) == shares - 1;
                    __threadfence();
                }}
            }}
            __syncthreads();
            if (!last) break;
            total = ({kind})partial[r * shares + (threadIdx.x < shares ? threadIdx.x : 0)];
            if (threadIdx.x >= shares) {begin_again(first, kind)}
//CPU #pragma unroll 1
            for (INDEX k = threadIdx.x + {BLOCK}; k < shares; k += {BLOCK})
                total = combined(total, ({kind})partial[r * shares + k]);
        }}
    }}
}}
""", "reduction")  # fmt: skip
    add_up = """
        if (y == 0)
//CPU #pragma unroll 1
            for (int k = 1; k < 8; k++) total = combined(total, totals[k * 32 + x]);"""
    return compiled(f"""{head}
    __shared__ alignas(16) char memory[{BLOCK} * sizeof({kind})];
    __shared__ bool last;
    {kind}* totals = ({kind}*)memory;
    const INDEX tiles = (results + 31) / 32;
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    for (INDEX part = blockIdx.x; part < tiles * shares; part += gridDim.x) {{
        const INDEX tile = part % tiles, from = part / tiles * share, end = count - from < share ? count : from + share;
        const bool valid = tile * 32 + x < results;
        const INDEX r = valid ? tile * 32 + x : results - 1;
        {base}
        INDEX k = from + y;
        {kind} total;
        {begin("from")}
        {turns(8)}
        totals[threadIdx.x] = total;
        __syncthreads();
        {add_up}
        if (shares == 1) {{
            if (y == 0 && valid) out[r] = ({memory})(total);
            __syncthreads();
            continue;
        }}
        if (y == 0 && valid) {{
            partial[part / tiles * results + r] = ({memory})(total);
            __threadfence();
        }}
        __syncthreads();
        if (threadIdx.x == 0) {{
            last = atomicInc(&counters[tile], shares - 1) == shares - 1;
            __threadfence();
        }}
        __syncthreads();
        if (last) {{
            total = ({kind})partial[(y < shares ? y : 0) * results + r];
            if (y >= shares) {begin_again(first, kind)}
//CPU #pragma unroll 1
            for (INDEX k = y + 8; k < shares; k += 8) total = combined(total, ({kind})partial[k * results + r]);
            totals[threadIdx.x] = total;
            __syncthreads();
            {add_up}
            if (y == 0 && valid) out[r] = ({memory})(total);
        }}
        __syncthreads();
    }}
}}
""", "reduction")  # fmt: skip


def begin_again(first: str | None, kind: str) -> str:
    """What a thread without partial results has: those of the first one do no harm where there is no other value."""
    return ";" if first is None else f"total = ({kind})({first});"
