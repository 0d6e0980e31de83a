"""Every form of the grammar that only maps values to values has a meaning, or is listed here as having none."""

from __future__ import annotations

import random
import re

import pytest

from cupola.cpu.compiler.emit.instructions import operand_types, supported
from cupola.cpu.compiler.emit.instructions.registry import LLVM_TYPE, TABLE
from cupola.cpu.compiler.ptx import grammar
from cupola.cpu.compiler.ptx.grammar.sets import SETS
from tests.ptx.harness import compile_all, parse

SECTIONS = re.compile(r"9\.7\.(1|2|3|4|5|6|7|8) ")
OTHERS = {"mov", "prmt", "cvt", "shfl", "vote", "match", "activemask", "redux", "elect"}


def value_forms() -> list[grammar.Form]:
    return [
        form
        for opcode in grammar.opcodes()
        for form in grammar.forms(opcode)
        if SECTIONS.match(form.section) or opcode in OTHERS
    ]


def example(form: grammar.Form, rng: random.Random) -> str:
    """An instruction of the form with modifiers drawn at random."""
    modifiers = []
    for group in form.groups:
        if not group.optional or rng.random() < 0.5:
            modifiers.append(rng.choice(sorted(group.choices)))
    operands = []
    for index, kind in enumerate(form.operands):
        if kind.optional and rng.random() < 0.5:
            break
        operands.append("0xE8" if kind.name == "table" else f"{'d' if kind.written else 's'}{index}")
        if "<narrow_four>" in form.syntax and kind.name == "a":
            operands[-1] = "{e, f, g, h}"
        if kind.name.endswith("|p"):
            operands[-1] += "|p"
    return " ".join([".".join([form.opcode, *modifiers]), ", ".join(operands)]).strip()


def plausible(text: str) -> bool:
    """Whether the ISA has this choice of modifiers; the grammar's lines are wider than that here and there."""
    instruction = parse(text)
    names = set(instruction.modifiers)
    types = [m for m in instruction.modifiers if m in LLVM_TYPE]
    type = types[-1] if types else ""
    match instruction.opcode:
        case "cvt" if "pack" in names:
            wide = bool(names & {"u16", "s16"})
            return wide == ("b32" not in names) and len(instruction.operands) == (3 if wide else 4)
        case "cvt":
            return plausible_conversion(names, types, len(instruction.operands))
        case "set" | "setp":
            if type in ("b8", "u8", "s8", "b128"):
                return False
            floating = type in ("f32", "f64") or "16" in type and type[0] in "fb" and type != "b16"
            if type.endswith("x2") and types[0] not in ("f16x2", "bf16x2", "u32", "s32"):
                return False
            if floating:
                return not names & {"lo", "ls", "hi", "hs"} and ("ftz" not in names or type != "f64")
            ordered = names & {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}
            return not ordered and "ftz" not in names and (type[0] != "b" or bool(names & {"eq", "ne"}))
        case "selp" | "slct":
            return types[0] in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
        case "mov":
            return type not in ("u8", "s8")
        case "min" | "max":
            return ("xorsign" in names) == ("abs" in names)
        case "rcp" | "sqrt" | "div":
            return True
    return True


def plausible_conversion(names: set[str], types: list[str], operands: int) -> bool:
    to, source = types[0], types[-1]
    narrow = SETS["narrow_pair"] | SETS["narrow_four"] | {"ue8m0x2", "s2f6x2"}
    if {to, source} & narrow or len(types) == 2 and "rs" in names and to in ("f16x2", "bf16x2"):
        return True  # their lines are exact
    packed = {"f16x2", "bf16x2"}
    if "rs" in names or len(types) != 2:
        return False
    if to in packed and source == "f32":
        return operands == 3 and not names & {"rni", "rzi", "rmi", "rpi", "rna", "sat", "ftz"}
    if source in packed or to in packed:
        return False
    return operands == 2 and source != "tf32" and (to != "tf32" or source == "f32")


@pytest.mark.parametrize("form", value_forms(), ids=lambda form: form.syntax)
def test_every_form_is_lowered(form: grammar.Form) -> None:
    rng = random.Random(form.syntax)
    tried: set[str] = set()
    for _ in range(60):
        text = example(form, rng)
        if text in tried or not plausible(text):
            continue
        instruction = parse(text)
        if grammar.form_of(instruction.opcode, instruction.modifiers, len(instruction.operands)) is None:
            continue
        tried.add(text)
        with_carry(instruction)
        assert supported(instruction) is None, f"{text}: {supported(instruction)}"
        operand_types(instruction)
    assert tried, "no example of the form could be made"


def with_carry(instruction) -> None:
    """Make the condition code explicit, as the pass does."""
    if "cc" in instruction.modifiers:
        first = parse("x d|cc").operands[0]
        instruction.operands = (first, *instruction.operands[1:])
    if instruction.opcode in ("addc", "subc", "madc"):
        instruction.operands = (*instruction.operands, parse("x cc").operands[0])


def test_the_table_has_nothing_that_the_grammar_does_not_know() -> None:
    known = set(grammar.opcodes())
    assert {opcode.partition(".")[0] for opcode, _ in TABLE} <= known


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo.u32 d, a", "the opcode 'foo' is not supported"),
        ("popc.f32 d, a", "'popc' is not supported for the type 'f32'"),
        ("add.approx.u32 d, a, b", "the modifier '.approx' is not supported for 'add.u32'"),
        ("add.u32 d, a", "'add' takes 2 source operands, not 1"),
        ("cvt.rn.f16x2.f32 d, a", "'cvt.f16x2.f32' takes 2 source operands, not 1"),
        ("cvt.rn.f16x2.f64 d, a", "there is no conversion 'f16x2.f64'"),
        ("set.eq.f32.f16x2 d, a, b", "a packed comparison has no result of type 'f32'"),
    ],
)
def test_reasons(text: str, reason: str) -> None:
    assert supported(parse(text)) == reason


def test_a_wider_selection_compiles() -> None:
    rng = random.Random(6)
    for form in rng.sample(value_forms(), 40):
        text = example(form, rng)
        if not plausible(text):
            continue
        instruction = parse(text)
        if "cc" in text or form.opcode in ("addc", "subc", "madc") or supported(instruction):
            continue
        compile_all(text, widths=(1, 16), mixed=False)
