"""Kernels of a few lines, ready for the passes."""

from __future__ import annotations

from cupola.cpu.compiler.passes import Analysis, analyze, prepare
from cupola.cpu.compiler.ptx import ast, parse

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<20>; .reg .b16 %rs<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<20>; .reg .f64 %fd<9>;
"""


MEMORY = ".global .u32 g[8]; .const .u32 c[8]; .shared .u32 s[64];"


def kernel(body: str, before: str = "") -> tuple[ast.Module, ast.Function]:
    """A module with the kernel ``k(u32 n, u64 p, u64 q)`` and what ``before`` declares."""
    parameters = ".param .u32 n, .param .u64 p, .param .u64 q"
    module = parse(f"{HEADER}{MEMORY}{before}\n.entry k({parameters}) {{\n{REGISTERS}\n{body}\n}}")
    return module, module.functions["k"]


def analysed(
    body: str,
    before: str = "",
    *,
    width: int = 32,
    x_is_contiguous: bool = True,
    rows_are_whole: bool = True,
    largest_x: int = 1023,
) -> Analysis:
    module, function = kernel(body, before)
    return analyze(
        prepare(module, function),
        width=width,
        x_is_contiguous=x_is_contiguous,
        rows_are_whole=rows_are_whole,
        largest_x=largest_x,
    )
