"""Which instructions of the PTX ISA the CPU device has, as `isa.toml` and the recorded forms tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.ptx import ast, grammar
from cupola.cpu.compiler.ptx.names import SPECIAL_REGISTERS
from tests.ptx.forms import Form, computed_families, families, forms
from tests.ptx.programs import kernel

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
    lines = kernel(form).splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.strip() == f"{form.code};")
    constants = ".const .align 32 .b8 constants[4096];"
    version, target = form.options.get("version", "8.7"), form.options.get("target", "sm_90a")
    head = f".version {version} .target {target} .address_size 64 {constants}"
    body = ptx.parse(head + "\n".join(lines[1:])).functions
    found = body[form.name].body or ()
    return tuple(s for s in found if isinstance(s, ast.Instruction) and s.location.ptx_line == line - 1)


def syntax_of(instruction: ast.Instruction) -> grammar.Form:
    form = grammar.form_of(instruction.opcode, instruction.modifiers, len(instruction.operands))
    assert form is not None, instruction.text
    return form


def row_of(found: Iterable[Row], instruction: ast.Instruction) -> Row | None:
    """The row of an instruction: of those in its section the one that names most of it."""
    section = syntax_of(instruction).section.split(" ")[0]
    words = frozenset([instruction.opcode, *instruction.modifiers])
    words |= frozenset(word.split("::")[0] for word in words)
    # The grammar keeps a few instructions with their kin, in another section than the ISA's.
    matching = [row for row in found if row.name.split(".")[0] == instruction.opcode and row.parts <= words]
    return max(matching, key=lambda row: (len(row.parts), row.section == section), default=None)


def listed() -> list[Row]:
    """All instructions of the ISA, in its order, and nothing about them."""
    return [
        Row(section["number"], name)
        for section in data()["section"]  # type: ignore[attr-defined]
        for name in section["instructions"].split()
    ]


@cache
def rows() -> tuple[Row, ...]:
    """All instructions of the ISA, in its order, with what the tables and all forms tell of them: it takes seconds."""
    table = data()
    found = listed()
    by_name = {f"{row.section} {row.name}": row for row in found}
    for key, files in table.get("tested", {}).items():  # type: ignore[attr-defined]
        by_name[key].tests += files.split()
    for key, examples in table.get("missing", {}).items():  # type: ignore[attr-defined]
        by_name[key].missing += [(text, words) for text, words in examples]
    for family in (*families(), *computed_families()):
        for form in forms(family):
            for row in {id(r): r for i in instructions_of(form) if (r := row_of(found, i))}.values():
                row.forms.append(form)
    return tuple(found)


REGISTERS = (
    ".reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %l<8>; .reg .b128 %q<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; "
    ".reg .pred %p<8>;"
)


def example(text: str) -> str:
    """A module of which the only line that matters, the third one, stands for line 7 of example.cu."""
    lines = [
        '.version 8.7 .target sm_90a .address_size 64 .file 1 "example.cu"',
        f".visible .entry k() {{ {REGISTERS} .loc 1 7 3",
        f"{text};",
        "ret; }",
    ]
    if text.startswith("call"):
        lines[1] += " prototype: .callprototype (.reg .b32 _) _ (.reg .b32 _);"
    return "\n".join(lines)


def page() -> str:
    """The page of the documentation, in Markdown."""
    table = data()
    count = {status: sum(row.status == status for row in rows()) for status in ("yes", "in part", "no")}
    lines = [
        "# PTX on the CPU device",
        "",
        "Every instruction of the PTX ISA 9.0, by its sections, and whether the CPU device runs it: "
        f"{count['yes']} fully, {count['in part']} in part, {count['no']} not.",
        "What is not supported is refused when the module is loaded, by an error that names the instruction and its",
        "place in the PTX and, with `-lineinfo`, in the CUDA source.",
        "",
        "Supported means: with all the modifiers and types that the instruction has on the compute capabilities of the",
        "modeled GPUs, 7.5 to 12.0. The programs in `tests/ptx/forms` show it: on the CPU device each of them gives",
        "what an H200 gave, to the bit where the ISA defines the result, and what an H200 does not have gives what the",
        "ISA's text says ([Testing](testing.md)). A module is refused what its `.version` and `.target` do not have.",
        "",
        "This page is made by `tools/ptx_support.py write`, and a test checks that it is true.",
    ]
    for section in table["section"]:  # type: ignore[attr-defined]
        lines += [
            "",
            f"## {section['number']} {section['title']}",
            "",
            "| instruction | supported | |",
            "|---|---|---|",
        ]
        for row in rows():
            if row.section == section["number"]:
                words = "; ".join(words for _, words in row.missing if words)
                remark = f"not {words}" if row.status == "in part" else words
                lines.append(f"| `{row.name}` | {row.status} | {remark} |")
    names = sorted(name for name in SPECIAL_REGISTERS if "." not in name)
    lines += ["", "## 10 Special registers", "", "All of them can be read:", ""]
    lines += [", ".join(f"`{name}`" for name in names) + ".", ""]
    lines += [
        "`%globaltimer` and its halves count the host's time, and `%clock` the cycles that the modeled GPU has in it; "
        "`%smid` deals the blocks out to the multiprocessors of the launch; "
        "`%pm0` to `%pm7` and the `%envreg` that nothing sets are zero.",
        "",
    ]
    return "\n".join(lines)
