"""The passes that rewrite a kernel, in their order."""

from __future__ import annotations

from cupola.cpu.passes.carry import make_carry_explicit
from cupola.cpu.passes.conditions import make_conditions_stores
from cupola.cpu.passes.inline_calls import inline_calls
from cupola.cpu.passes.param_space import make_params_registers
from cupola.cpu.ptx import ast


def prepare(module: ast.Module, function: ast.Function) -> ast.Function:
    """A kernel made self-contained, ready for `analyse`. The module stays as it is.

    Afterwards calls go to functions without a body only, with registers as arguments and results; static variables of
    called functions are among the kernel's ``variables``; the carry is an operand; conditions of graphs are set by
    stores; and ``.param`` space holds nothing but the kernel's parameters.

    Raises
    ------
    PtxUnsupportedError
        For recursion, calls through pointers, and whatever else the CPU device cannot run.
    """
    return make_carry_explicit(make_conditions_stores(make_params_registers(inline_calls(module, function))))
