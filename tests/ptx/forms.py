"""The forms of instructions that `tools/record_ptx.py` records on a GPU: what a line of `forms/*.txt` says.

Forms that an H200 does not have are in tables of their own, and `computed` says what they give.

A form is a short program, most often of one instruction, that every thread runs on a row of inputs of its own::

    add<.rn|.rz>.f32      %d:b32, %a:f32, %b:f32
    sin.approx.f32        %d:f32, %a:angle            // absolute=2**-20.5
    add.cc.u32 %d0:b32, %a:u32, %b:u32; addc.u32 %d1:b32, %c:u32, %e:u32

- ``<a|b>`` stands for one form with each of the alternatives. ``<T=a|b>`` gives the choice a name: ``<T>`` further on
  is the same text again, and ``<T:x|y>`` the text of the same number in another list.
- ``%name:type`` is a register, declared by its first mention. The first letter tells what for: ``d`` a destination that
  is recorded, ``t`` a temporary, ``io`` one that is filled and recorded, anything else an input. The type is one of
  `inputs.SETS`: it tells the width of the register, the values of an input, and how a result is compared. Results of
  the types ``b8`` to ``b128`` and ``pred``, and of integer types, count to the bit; of those whose type is a floating
  one (``f32``), any NaN is as good as another.
- ``%d[16]:b32`` is short for ``%d0:b32, %d1:b32, ... %d15:b32``.
- ``%G``, ``%S``, ``%L`` and ``%C`` are addresses of 32 bytes in global, shared, local and constant memory that belong
  to the thread alone and are filled with random bytes; ``%G0`` and ``%S0`` are where those of the block's first thread
  are, and those of the next threads follow. What a form leaves in memory is recorded by loading it. The parameters
  of the kernel that may be loaded are ``first`` and ``second``, 64 bits each.
- ``%T_name``, ``%S_name`` and ``%M_name`` are the texture and surface objects and the tensor maps of `objects.TABLE`,
  made anew for each form. A tensor map is its address; 128 bytes behind it are room for another one, and 256 bytes
  behind it its tensor begins.
- After ``//`` come options: ``error=`` (relative), ``absolute=`` or ``ulp=`` bounds of what the ISA calls approximate,
  all those given must be missed for a result to be wrong; ``block=`` and ``grid=`` (threads and blocks, in one
  dimension, 128 and 1), ``cluster=``, ``target=`` and ``version=`` of the module (``sm_90`` and ``8.7``).

``$name: text`` gives a name to text that many forms have in common; ``$name`` in a line below stands for it.

Lines that begin with ``#`` are comments; a line that begins with white space goes on where the previous one ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import product
from pathlib import Path

FOLDER = Path(__file__).with_name("forms")
COMPUTED = Path(__file__).with_name("computed")
CELL = 32
"""Bytes of memory that belong to a thread in each space."""

_REGISTER = re.compile(r"%([a-z]\w*):(\w+)")
_OBJECT = re.compile(r"%([TSM]_\w+)")
_SHORT = re.compile(r"\$(\w+)")
_DEFINITION = re.compile(r"\$(\w+):\s*(.*)")
_ROW = re.compile(r"%([a-z]\w*)\[(\d+)\]:(\w+)")
_NUMBERS = ("error", "absolute", "ulp", "block", "grid", "cluster")
_TEXTS = ("target", "version")
_TAKEN = {"in", "out", "cells", "at", "wide", "row", "byte", "corner", "low", "high"}
"""Registers of the kernels around the forms."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form, its alternatives chosen.

    Attributes
    ----------
    family
        The name of the table.
    line
        Normalised text of the line, options included: what identifies the form.
    whole
        The same with the text that ``$name`` stands for.
    code
        PTX statements; registers without their types.
    registers
        Type of each register by name, in order of mention.
    options
        Numbers and texts after ``//``.
    """

    family: str
    line: str
    whole: str
    code: str
    registers: dict[str, str] = field(hash=False)
    options: dict[str, float | str] = field(hash=False)

    @property
    def inputs(self) -> list[str]:
        """Names of the registers that are filled."""
        return [name for name in self.registers if name.startswith("io") or name[0] not in "dt"]

    @property
    def outputs(self) -> list[str]:
        """Names of the registers that are recorded."""
        return [name for name in self.registers if name.startswith("io") or name[0] == "d"]

    def size(self, name: str, default: int) -> int:
        return int(self.options.get(name, default))

    @property
    def objects(self) -> list[str]:
        """Names of the textures and surfaces that it uses."""
        return sorted(set(_OBJECT.findall(self.code)))

    @property
    def threads(self) -> int:
        return self.size("block", 128) * self.size("grid", 1)

    @property
    def name(self) -> str:
        """The name of its kernel: the same as long as the form is the same."""
        return "form_" + blake2b(self.whole.encode(), digest_size=6).hexdigest()


def families() -> list[str]:
    """The names of the tables whose forms are recorded."""
    return sorted({path.stem for path in FOLDER.glob("*.txt")} - set(computed_families()))


def computed_families() -> list[str]:
    """The names of the tables whose forms an H200 does not have; each has a module in `computed`."""
    return sorted(path.stem for path in COMPUTED.glob("[a-z]*.py"))


def model_of(form: Form) -> str:
    """The model of the CPU device that has the target of a form."""
    return _MODELS[str(form.options.get("target", "sm_90")).strip("smaf_")[:-1]]


_MODELS = {"9": "h200", "10": "b200", "12": "rtx5090"}


@cache
def forms(family: str) -> tuple[Form, ...]:
    """The forms of a table, in its order."""
    found: dict[str, Form] = {}
    short: dict[str, str] = {}
    for number, line in _lines((FOLDER / f"{family}.txt").read_text()):
        try:
            if match := _DEFINITION.match(line):
                short[match[1]] = _spell_out(match[2], short)
                continue
            for text in _expand(line):
                form = _parse(family, text, short)
                if form.line in found:
                    raise ValueError(f"{form.line!r} is in the table twice")
                found[form.line] = form
        except ValueError as error:
            raise ValueError(f"tests/ptx/forms/{family}.txt:{number}: {error}") from None
    return tuple(found.values())


def _lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            at, start = lines.pop()
            lines.append((at, f"{start} {line.strip()}"))
        else:
            lines.append((number, line.strip()))
    return lines


_CHOICE = re.compile(r"<(?:([A-Z])([=:]))?([^<>]*)>")


def _expand(line: str) -> list[str]:
    """The line with each choice of its alternatives."""
    names: list[str] = []  # of the independent choices, the nameless ones numbered
    lists: dict[str, list[str]] = {}
    pieces: list[tuple[str, str, list[str]]] = []  # text before, name of the choice, alternatives
    end = 0
    for match in _CHOICE.finditer(line):
        name, sign, body = match.groups()
        texts = body.split("|")
        if sign is None and len(texts) == 1 and body in lists:  # <T>
            name, texts = body, lists[body]
        elif sign != ":":
            if name in lists:
                raise ValueError(f"<{name}=...> is there twice")
            name = name or str(len(names))
            names.append(name)
            lists[name] = texts
        if name not in lists or len(texts) != len(lists[name]):
            raise ValueError(f"{match[0]} does not fit a choice before it")
        pieces.append((line[end : match.start()], name, texts))
        end = match.end()
    found = []
    for numbers in product(*(range(len(lists[name])) for name in names)):
        chosen = dict(zip(names, numbers, strict=True))
        found.append("".join(before + texts[chosen[name]] for before, name, texts in pieces) + line[end:])
    return found


def _spell_out(text: str, short: dict[str, str]) -> str:
    """The text with what its ``$name`` stand for."""
    for name in _SHORT.findall(text):
        if name not in short:
            raise ValueError(f"${name} is not defined above")
    return _SHORT.sub(lambda match: short[match[1]], text)


def _parse(family: str, text: str, short: dict[str, str]) -> Form:
    from tests.ptx.inputs import SETS

    text = " ".join(text.split())
    line, _, comment = text.partition("//")
    spelled = _spell_out(line, short)
    code = _ROW.sub(lambda m: ", ".join(f"%{m[1]}{i}:{m[3]}" for i in range(int(m[2]))), spelled)
    registers: dict[str, str] = {}
    for name, type in _REGISTER.findall(code):
        if type not in SETS:
            raise ValueError(f"there is no type or set of inputs {type!r}")
        if name in _TAKEN:
            raise ValueError(f"the register name %{name} is taken")
        if registers.setdefault(name, type) != type:
            raise ValueError(f"%{name} has two types")
    options: dict[str, float | str] = {}
    for item in comment.split():
        key, sign, value = item.partition("=")
        if not sign or key not in (*_NUMBERS, *_TEXTS):
            raise ValueError(f"there is no option {item!r}")
        options[key] = _number(value) if key in _NUMBERS else value
    end = f" // {' '.join(comment.split())}" if options else ""
    plain = _REGISTER.sub(r"%\1", code).strip().rstrip(";")
    return Form(family, line.strip() + end, spelled.strip() + end, plain, registers, options)


def _number(text: str) -> float:
    """A number or a power of two, ``2**-22``."""
    base, _, exponent = text.partition("**")
    return float(base) ** float(exponent or 1)
