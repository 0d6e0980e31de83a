"""The passes that rewrite a kernel, in their order."""

from __future__ import annotations

from cupola.cpu.compiler.passes.call_graph import CallGraph
from cupola.cpu.compiler.passes.carry import make_carry_explicit
from cupola.cpu.compiler.passes.conditions import make_conditions_stores
from cupola.cpu.compiler.passes.frames import make_frames
from cupola.cpu.compiler.passes.join_functions import join_functions
from cupola.cpu.compiler.passes.param_space import make_params_registers
from cupola.cpu.compiler.ptx import ast


def prepare(module: ast.Module, function: ast.Function) -> ast.Function:
    """A kernel made self-contained, ready for `analyze`. The module stays as it is.

    Afterwards calls go to functions without a body only, with registers as arguments and results; functions that are
    not inlined are parts of the kernel; static variables of called functions are among the kernel's ``variables``; the
    carry is an operand; conditions of graphs are set by stores; and ``.param`` space holds nothing but the kernel's
    parameters.

    Raises
    ------
    PtxUnsupportedError
        For calls that do not fit their function, and whatever else the CPU device cannot run.
    """
    joined = join_functions(CallGraph.of(module, function), function)
    return make_frames(make_carry_explicit(make_conditions_stores(make_params_registers(joined))))
