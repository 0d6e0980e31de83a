"""Which instructions of the PTX ISA the CPU device has, as `isa.toml` and the recorded forms tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cupola.cpu import ptx
from cupola.cpu.ptx import ast, grammar
from tests.ptx.forms import Form, families, forms
from tests.ptx.programs import module

DATA = Path(__file__).with_name("isa.toml")


@dataclass
class Row:
    """An instruction of the ISA."""

    section: str
    name: str
    forms: list[Form] = field(default_factory=list)
    """The recorded forms that use it."""
    tests: list[str] = field(default_factory=list)
    """Other files of tests."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Instructions that are refused, and what they are in words."""

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(self.name.split("."))

    @property
    def status(self) -> str:
        tested = bool(self.forms or self.tests)
        return "no" if not tested else "in part" if self.missing else "yes"


@cache
def data() -> dict[str, object]:
    return tomllib.loads(DATA.read_text())


@cache
def instructions_of(form: Form) -> tuple[ast.Instruction, ...]:
    """The instructions of a form, without those of the kernel around it."""
    text = module([form])
    (line,) = (n for n, text in enumerate(text.splitlines(), 1) if text.strip() == f"{form.code};")
    body = ptx.parse(text).functions[form.name].body or ()
    return tuple(s for s in body if isinstance(s, ast.Instruction) and s.location.ptx_line == line)


def syntax_of(instruction: ast.Instruction) -> grammar.Form:
    form = grammar.form_of(instruction.opcode, instruction.modifiers, len(instruction.operands))
    assert form is not None, instruction.text
    return form


def row_of(found: Iterable[Row], instruction: ast.Instruction) -> Row | None:
    """The row of an instruction: of those in its section, the one that names most of it."""
    section = syntax_of(instruction).section.split(" ")[0]
    words = {instruction.opcode, *instruction.modifiers}
    words |= {f"{word.split('::')[0]}" for word in words}
    # The grammar keeps a few instructions with their kin in another section than the ISA does.
    matching = [row for row in found if row.name.split(".")[0] == instruction.opcode and row.parts <= words]
    matching.sort(key=lambda row: (row.section == section, len(row.parts)))
    return matching[-1] if matching else None


@cache
def rows() -> tuple[Row, ...]:
    """All instructions of the ISA, in its order."""
    table = data()
    found = [
        Row(section["number"], name)
        for section in table["section"]  # type: ignore[attr-defined]
        for name in section["instructions"].split()
    ]
    by_name = {f"{row.section} {row.name}": row for row in found}
    for key, files in table.get("tested", {}).items():  # type: ignore[attr-defined]
        by_name[key].tests += files.split()
    for key, examples in table.get("missing", {}).items():  # type: ignore[attr-defined]
        by_name[key].missing += [(text, words) for text, words in examples]
    for family in families():
        for form in forms(family):
            for row in {id(r): r for i in instructions_of(form) if (r := row_of(found, i))}.values():
                row.forms.append(form)
    return tuple(found)
