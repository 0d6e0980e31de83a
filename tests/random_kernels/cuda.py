"""Random kernels as CUDA C++."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.random_kernels.program import (
    STATES,
    Apply,
    Array,
    Assign,
    Atomic,
    Barrier,
    Break,
    Call,
    Constant,
    Continue,
    Expression,
    Function,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    LoadVector,
    Loop,
    Mix,
    Return,
    Statement,
    Store,
    StoreVector,
    Switch,
    SyncWarp,
    Variable,
    Warp,
)
from tests.random_kernels.scalars import F16, F32, F64, PRED, Scalar

PRELUDE = Path(__file__).with_name("prelude.cuh")

_VECTORS = {"u8": "uchar", "i8": "char", "u16": "ushort", "i16": "short", "u32": "uint", "i32": "int"} | {
    "u64": "ulonglong", "i64": "longlong", "f32": "float", "f64": "double"
}  # fmt: skip


def source(kernels: Iterable[Kernel]) -> str:
    """One program with all these kernels, named ``k`` and the seed."""
    return PRELUDE.read_text() + "".join(text(kernel) for kernel in kernels)


def name(kernel: Kernel) -> str:
    return f"k{kernel.seed}"


def text(kernel: Kernel) -> str:
    """The functions, the constants and the kernel itself."""
    lines = [f"\n// seed {kernel.seed}: grid {kernel.grid}, block {kernel.block}", f"namespace n{kernel.seed} {{"]
    for array in kernel.in_space("constant"):
        values = ", ".join(_constant(array.type, value) for value in array.values)
        lines.append(f"__constant__ {array.type} {array.name}[{array.length}] = {{{values}}};")
    for function in kernel.functions:
        lines += _function(function)
    lines.append("}")
    parameters = "".join(f", {p.type} {p.name}" for p in kernel.parameters)
    lines.append(f'extern "C" __global__ void __launch_bounds__({kernel.block_threads}) {name(kernel)}(')
    lines.append(f"    const u64* in, u64* out, u8* slices, u64* totals{parameters}) {{")
    lines.append(f"  using namespace n{kernel.seed};")
    lines.append("  const u32 tid = linear_thread(), lane = tid & 31, threads = blockDim.x * blockDim.y * blockDim.z;")
    lines.append("  const u32 block = blockIdx.x + gridDim.x * blockIdx.y, gid = block * threads + tid;")
    lines.append(f"  u64* mine = out + (u64)gid * {kernel.words};")
    lines.append("  u64 " + ", ".join(f"s{i} = gid * {2 * i + 3}ull" for i in range(STATES)) + ";")
    lines += [f"  {line}" for array in kernel.arrays for line in _declaration(kernel, array)]
    if kernel.in_space("shared", "shared total"):
        lines.append("  __syncthreads();")
    lines += _block(kernel.body, "  ")
    for index in range(STATES):
        lines.append(f"  mine[{index}] = s{index};")
    for index, variable in enumerate(kernel.results):
        lines.append(f"  mine[{STATES + index}] = {_word(variable)};")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _declaration(kernel: Kernel, array: Array) -> list[str]:
    type = array.type
    if array.space == "local":
        return [_local(array)]
    if array.space in ("shared", "shared total"):
        return [
            f"__shared__ __align__(16) {type} {array.name}[{array.length}];",
            f"for (u32 i = tid; i < {array.length}; i += threads) {array.name}[i] = ({type})(i * {array.values[0]}u);",
        ]
    if array.space == "own":
        return [f"{type}* {array.name} = ({type}*)(slices + {kernel_offset(kernel, array)}) + gid * {array.length};"]
    if array.space == "column":
        return [f"{type}* {array.name} = ({type}*)(slices + {kernel_offset(kernel, array)}) + gid;"]
    if array.space == "input":
        return [f"const {type}* {array.name} = (const {type}*)in;"]
    if array.space == "total":
        return [f"{type}* {array.name} = ({type}*)(totals + {kernel_offset(kernel, array)});"]
    return []


def _local(array: Array) -> str:
    values = ", ".join(_constant(array.type, value) for value in array.values)
    return f"__align__(16) {array.type} {array.name}[{array.length}] = {{{values}}};"


def kernel_offset(kernel: Kernel, array: Array) -> int:
    """Where an array of the buffers ``slices`` (bytes, for all threads) or ``totals`` (words) starts."""
    offset = 0
    total = array.space == "total"
    for other in kernel.in_space("total") if total else kernel.in_space("own", "column"):
        if other is array:
            return offset
        size = other.length * other.type.bits // 8
        offset += -(-size // 8) if total else -(-size * kernel.threads // 16) * 16
    raise AssertionError("an array of the kernel")


def _function(function: Function) -> list[str]:
    parameters = ", ".join(f"{p.type} {p.name}" for p in function.parameters)
    qualifier = "__forceinline__" if function.inline else "__noinline__"
    lines = [f"__device__ {qualifier} {function.result} {function.name}({parameters}) {{"]
    lines += [f"  {_local(array)}" for array in function.arrays]
    return [*lines, *_block(function.body, "  "), "}"]


def _block(statements: list[Statement], indent: str) -> list[str]:
    return [line for statement in statements for line in _statement(statement, indent)]


def _statement(s: Statement, indent: str) -> list[str]:
    inner = indent + "  "
    match s:
        case If():
            lines = [f"{indent}if ({expression(s.condition)}) {{", *_block(s.then, inner)]
            if s.otherwise:
                lines += [f"{indent}}} else {{", *_block(s.otherwise, inner)]
            return [*lines, f"{indent}}}"]
        case Switch():
            lines = [f"{indent}switch ({expression(s.selector)}) {{"]
            for labels, body, falls in s.cases:
                head = " ".join(f"case {label}:" for label in labels) or "default:"
                lines += [f"{inner}{head} {{", *_block(body, inner + "  "), f"{inner}}}" + ("" if falls else " break;")]
            return [*lines, f"{indent}}}"]
        case Loop():
            i, limit = s.counter.name, expression(s.limit)
            head, tail = {
                "for": (f"for (u32 {i} = 0, {i}_end = {limit}; {i} < {i}_end; ++{i}) {{", "}"),
                "down": (f"for (u32 {i} = {limit}; {i}-- > 0;) {{", "}"),
                "do": (f"u32 {i} = 0; const u32 {i}_end = {limit}; do {{", f"}} while (++{i} < {i}_end);"),
                "endless": (f"for (u32 {i} = 0;; ++{i}) {{", "}"),
            }[s.form]
            return [indent + head, *_block(s.body, inner), indent + tail]
    return [indent + _simple(s)]


def _simple(s: Statement) -> str:
    match s:
        case Let():
            return f"{s.variable.type} {s.variable.name} = {expression(s.value)};"
        case Assign():
            return f"{s.variable.name} = {expression(s.value)};"
        case Store():
            return f"{_element(s.array, s.index, s.as_bytes)} = {expression(s.value)};"
        case LoadVector():
            vector = f"{_VECTORS[s.array.type.name]}{len(s.targets)}"
            const = "const " if s.array.space in ("input", "constant") else ""
            parts = " ".join(f"{t.name} = v.{part};" for t, part in zip(s.targets, "xyzw", strict=False))
            return f"{{ const {vector} v = (({const}{vector}*){s.array.name})[{expression(s.index)}]; {parts} }}"
        case StoreVector():
            vector = f"{_VECTORS[s.array.type.name]}{len(s.values)}"
            values = ", ".join(map(expression, s.values))
            return f"(({vector}*){s.array.name})[{expression(s.index)}] = make_{vector}({values});"
        case Mix():
            return f"s{s.state} = mixed(s{s.state}, {_word(s.value)});"
        case Break():
            return "break;"
        case Continue():
            return "continue;"
        case Leave():
            return f"{{ mine[0] = s0 ^ {s.site}; mine[1] = s1; return; }}"
        case Return():
            return f"return {expression(s.value)};"
        case Barrier():
            if not s.kind:
                return "__syncthreads();"
            assert s.target is not None and s.value is not None
            return f"{s.target.type} {s.target.name} = __syncthreads_{s.kind}({expression(s.value)});"
        case SyncWarp():
            return f"__syncwarp({expression(s.mask)});"
        case Atomic():
            function = "add_by_exchange" if s.array.atomic == "exchange" else f"atomic{s.array.atomic}"
            return f"{function}(&{s.array.name}[{expression(s.index)}], {expression(s.value)});"
    raise AssertionError(s)


def _element(array: Array, index: Expression, as_bytes: bool) -> str:
    place = expression(index)
    if array.space == "column":
        place = f"{place} * gridDim.x * gridDim.y * threads"
    return f"((u8*){array.name})[{place}]" if as_bytes else f"{array.name}[{place}]"


def _word(e: Expression) -> str:
    """A value as 64 bits, NaNs made one."""
    inner = expression(e)
    if e.type in (F32, F64):
        return f"(u64)bits({inner})"
    return f"(u64)bits_of_half({inner})" if e.type is F16 else f"(u64){inner}"


def _constant(type: Scalar, bits: int) -> str:
    if type is PRED:
        return "true" if bits else "false"
    if type in (F32, F64):
        value = float(np.array(bits, f"u{type.bits // 8}").view(type.dtype))
        if math.isfinite(value):
            return value.hex() + ("f" if type is F32 else "")
        return f"__uint_as_float({bits:#x}u)" if type is F32 else f"__longlong_as_double({bits:#x}ll)"
    return f"({type}){bits:#x}" + ("ull" if type.bits == 64 else "u")


def expression(e: Expression) -> str:
    match e:
        case Variable():
            return e.name
        case Constant():
            return f"({_constant(e.type, e.bits)})"
        case Apply():
            return f"({e.operation.text.format(*map(expression, e.operands))})"
        case Load():
            return _element(e.array, e.index, e.as_bytes)
        case Call():
            callee = e.function.name
            if e.other is not None and e.selector is not None:
                callee = f"({expression(e.selector)} ? {e.other.name} : {e.function.name})"
            return f"{callee}({', '.join(map(expression, e.arguments))})"
        case Warp():
            return _warp(e)
    raise AssertionError(e)


def _warp(e: Warp) -> str:
    operands = ", ".join([expression(e.mask), *map(expression, e.operands)])
    if e.name.startswith("shuffle"):
        return f"{e.name}({operands}, {e.width})"
    if e.name == "matched_all":
        return f"matched_all({operands})"
    return f"({e.type})__{e.name}_sync({operands})"
