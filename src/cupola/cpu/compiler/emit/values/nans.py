"""When f32 results need the hardware's NaN.

The hardware makes one NaN in single precision, 0x7fffffff; the host keeps payloads and signs. Replacing every NaN
at once would cost as much as the arithmetic (2.8 times the time of a Mandelbrot loop), and seldom matters: other
arithmetic does not look at the bits. So results stay as they are, marked ``raw_nan``, and are settled where an
instruction looks at their bits: a store, a shuffle, an integer operation.

Registers that live across blocks do not carry the mark. `float_registers` finds those that only ever hold results of
f32 arithmetic: reading one of these gives a marked value. In all others values are settled before they are written,
because what they hold may be an integer that only looks like a NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

_SIGNS = frozenset(["neg", "abs"])
_TESTS = frozenset(["testp", "set", "setp"])
_MAKERS = frozenset(
    ["add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "min", "max"]
    + ["sin", "cos", "lg2", "ex2", "tanh"]
)
_COPIES = frozenset(["mov", "selp"])
_WORDS = frozenset(["b32", "u32", "s32", "f32"])


def ignores_nan_bits(instruction: ast.Instruction) -> bool:
    """Whether which NaN an f32 operand holds makes no difference to the results, or only to which NaN they hold."""
    modifiers = instruction.modifiers
    if instruction.opcode in _MAKERS | _SIGNS | _TESTS:
        return modifiers[-1] == "f32" and "xorsign" not in modifiers
    if instruction.opcode in _COPIES:
        return _is_copy(instruction)
    return instruction.opcode == "cvt" and modifiers[-1] == "f32" and modifiers[-2] not in ("f32", "f64")


def _is_copy(instruction: ast.Instruction) -> bool:
    whole = not any(isinstance(operand, ast.Vector) for operand in instruction.operands)
    return instruction.opcode in _COPIES and instruction.modifiers[-1] in _WORDS and whole


def _makes_float(instruction: ast.Instruction) -> bool:
    """Whether the result is that of f32 arithmetic. NaNs that are converted from f64 and bf16 keep their payloads."""
    modifiers = instruction.modifiers
    if instruction.opcode == "cvt":
        return "f32" in modifiers[-2:-1] and modifiers[-1] not in ("f32", "f64", "bf16")
    return instruction.opcode in _MAKERS and modifiers[-1] == "f32"


def float_registers(blocks: Iterable[Block]) -> frozenset[str]:
    """Registers whose every definition is f32 arithmetic, or a copy or sign change of such a register or a literal."""
    candidates: set[str] = set()
    others: set[str] = set()
    copies: list[tuple[str, ast.Instruction]] = []
    for block in blocks:
        instructions = [*block.instructions, *([block.terminator] if block.terminator else [])]
        for instruction, effect in zip(instructions, block.effects, strict=True):
            if not effect.writes:
                continue
            if _makes_float(instruction):
                candidates.update(effect.writes)
            elif _is_copy(instruction) or (instruction.opcode in ("neg", "abs") and instruction.modifiers[-1] == "f32"):
                candidates.update(effect.writes)
                copies += [(name, instruction) for name in effect.writes]
            else:
                others.update(effect.writes)
    result = candidates - others
    changed = True
    while changed:
        changed = False
        for name, instruction in copies:
            if name in result and not all(_is_float(operand, result) for operand in _copied(instruction)):
                result.discard(name)
                changed = True
    return frozenset(result)


def _copied(instruction: ast.Instruction) -> tuple[ast.Operand, ...]:
    """The operands whose bits may become the result."""
    return instruction.operands[1:3] if instruction.opcode == "selp" else instruction.operands[1:2]


def _is_float(operand: ast.Operand, floats: set[str]) -> bool:
    if isinstance(operand, ast.Register):
        return operand.name in floats
    return isinstance(operand, ast.Immediate) and operand.value & 0x7FFFFFFF <= 0x7F800000
