"""Kernels made of expressions: one for each structure, compiled at its first use and kept on disk.

An *elementwise* kernel computes one element in each turn of a loop over the grid. A *reduction* computes all elements
that belong to one result and combines them, by a block of threads in a tree whose order does not depend on timing;
where there are few results, several blocks share one and leave partial results. Where each array either has its
elements in one piece in the order of the result, or is a single element, the index is that of memory; else places
follow from strides, which are arguments.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from cupola.core._compile import compile
from cupola.core.program._kernel import Kernel
from cupola.numpy._operations import COMPUTED, MEMORY
from cupola.numpy._report import noted

BLOCK = 256


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
    return (Path(__file__).with_name("kernels") / name).read_text()


def preamble(lines: tuple[str, ...] = (), *chars: str) -> str:
    """What stands before a kernel that has these statements and types; complex numbers only where there are some."""
    with_complex = any(char in "FD" for char in chars) or any("complex_number" in line for line in lines)
    with_random = any("random_source" in line for line in lines)
    more = (file_text("complex.cu") if with_complex else "") + (file_text("random.cu") if with_random else "")
    return file_text("preamble.cu") + more


def compiled(source: str, name: str, **options: Any) -> Kernel:
    """A kernel of this source, compiled or from the disk; `report` counts it."""
    with noted("compile"):
        return compile(source, options={"fma": False, "name": "cupola.numpy", **options}).get_kernel(name)


def _places(count: int, axes: int) -> str:
    """Code that finds the places of element i in arrays with strides."""
    if axes < 0:
        return ""
    lines = ["long long rest = i;", *[f"long long p{k} = 0;" for k in range(count)]]
    for axis in reversed(range(axes)):
        lines.append(f"{{ long long at = rest % layout.extent[{axis}]; rest /= layout.extent[{axis}];")
        lines += [f"p{k} += at * layout.stride[{k}][{axis}];" for k in range(count)]
        lines.append("}")
    return "\n".join(lines)


def _addresses(types: tuple[str, ...], modes: str) -> list[str]:
    """Where the values of arrays lie: in one piece (c), a single element (1), or by strides (g)."""
    return [
        {"c": f"(in{k} + i * sizeof({MEMORY[char]}))", "1": f"in{k}", "g": f"(in{k} + p{k})"}[mode]
        for k, (char, mode) in enumerate(zip(types, modes, strict=True))
    ]


def _body(lines: tuple[str, ...], types: tuple[str, ...], modes: str) -> str:
    places = _addresses(types, modes)
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
) -> Kernel:
    """The kernel ``elementwise(out, n, arrays..., scalars...)``, with a layout behind `n` if there are strides.

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
    """
    place = f"out + i * sizeof({MEMORY[to]})" if modes[-1] == "c" else f"out + p{len(types)}"
    place = f"({MEMORY[to]}*)({place}{' + ' + at if at else ''})"
    store = f"*{place} = ({MEMORY[to]})({result});"
    head = ""
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
    source = f"""{preamble(lines, *types, *scalars, to)}{file_text("combine.cu") if combine else ""}
{layout_struct(len(types) + 1, axes)}{head}
extern "C" __global__ void __launch_bounds__({BLOCK}) elementwise(
    char* out, long long n{layout_parameter(axes)}{_parameters(types, scalars)}) {{
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {{
        {_places(len(types) + 1, axes)}
        {_body(lines, types, modes[:-1])}
        {store}
    }}
}}
"""
    return compiled(source, "elementwise")


@functools.cache
def reduction(
    how: str | tuple[str, str],
    lines: tuple[str, ...],
    result: str,
    types: tuple[str, ...],
    scalars: tuple[str, ...],
    modes: str,
    axes: int,
    to: str,
    alone: bool,
) -> Kernel:
    """The kernel ``reduction(out, results, count, share, arrays..., scalars...)``, with a layout behind `share`.

    Result r is made of the elements r * count to (r + 1) * count, of which each block takes `share`; `alone`: one
    thread makes a result. The partial results of r lie side by side.
    """
    first, combine = COMBINE[how] if isinstance(how, str) else how
    kind = COMPUTED[to]
    combine = (
        combine
        if not isinstance(how, str)
        else combine.format(
            maximum="(a >= b || a != a ? a : b)" if to in "efdFD" else "(a > b ? a : b)",
            minimum="(a <= b || a != a ? a : b)" if to in "efdFD" else "(a < b ? a : b)",
        )
    )
    begin = "true" if first is None else "false"
    start = f"{kind} total = ({kind})({first or 0}); bool empty = {begin};"
    step = f"total = empty ? ({kind})({result}) : combined(total, ({kind})({result})); empty = false;"
    turn = f"{{ {_places(len(types), axes)}\n{_body(lines, types, modes)}\n{step} }}"
    head = f"""{preamble(lines, *types, *scalars, to)}
{layout_struct(len(types), axes)}
static __device__ {kind} combined({kind} a, {kind} b) {{ return ({kind})({combine}); }}
extern "C" __global__ void __launch_bounds__({BLOCK}) reduction(
    char* out, long long results, long long count, long long share{layout_parameter(axes)}
    {_parameters(types, scalars)}) {{
"""
    if alone:
        source = f"""{head}
    for (long long r = (long long)blockIdx.x * blockDim.x + threadIdx.x; r < results; r += gridDim.x * blockDim.x) {{
        {start}
        for (long long i = r * count; i < (r + 1) * count; i++) {turn}
        (({MEMORY[to]}*)out)[r] = ({MEMORY[to]})(total);
    }}
}}
"""
    else:
        source = f"""{head}
    __shared__ char memory[{BLOCK} * sizeof({kind})];
    __shared__ bool without[{BLOCK}];
    {kind}* totals = ({kind}*)memory;
    long long shares = (count + share - 1) / share;
    for (long long part = blockIdx.x; part < results * shares; part += gridDim.x) {{
        long long r = part / shares, from = (part % shares) * share;
        long long end = from + share < count ? from + share : count;
        {start}
        for (long long i = r * count + from + threadIdx.x; i < r * count + end; i += {BLOCK}) {turn}
        totals[threadIdx.x] = total, without[threadIdx.x] = empty;
        for (int half = {BLOCK} / 2; half; half /= 2) {{
            __syncthreads();
            if (threadIdx.x < half && !without[threadIdx.x + half]) {{
                {kind} a = totals[threadIdx.x], b = totals[threadIdx.x + half];
                totals[threadIdx.x] = without[threadIdx.x] ? b : combined(a, b);
                without[threadIdx.x] = false;
            }}
        }}
        if (threadIdx.x == 0) (({MEMORY[to]}*)out)[part] = ({MEMORY[to]})(totals[0]);
        __syncthreads();
    }}
}}
"""
    return compiled(source, "reduction")
