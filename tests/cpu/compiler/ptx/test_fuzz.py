"""Whatever happens to a text, the parser answers with a module or with PtxSyntaxError, in linear time."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable

import pytest

from cupola.cpu.compiler.ptx import PtxSyntaxError, parse

from . import nvrtc, sources
from .sample import SAMPLE

ODD = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "/*",
    '"',
    "%",
    "\\",
    "\n",
    " ",
    "=",
    "?",
]
ODD += [
    ".",
    "::",
    "_",
    "0x",
    "0f3F800000",
    "99999999999999999999999",
    "1e999",
    "%r1",
    "%tid.x",
    ".reg",
    ".entry",
    "bra",
    "add.s32",
]
ODD += [
    "é",
    "\x01",
    "generic(",
    ".loc 1 1 1",
    ".align 16",
    ".b8",
    ".param",
    "{ .reg .b32 %r<5>;",
    "L:",
    "call",
    "generic",
]


def mutate(text: str, random: random.Random) -> str:
    """One to three changes: words deleted, doubled, exchanged, replaced, or lines moved."""
    words = re.findall(r"[\w.$%:]+|\s+|.", text)
    for _ in range(random.randrange(1, 4)):
        place = random.randrange(len(words))
        other = random.randrange(len(words))
        match random.randrange(7):
            case 0:
                del words[place : place + random.randrange(1, 4)]
            case 1:
                words.insert(place, random.choice(ODD))
            case 2:
                words[place] = random.choice(ODD)
            case 3:
                words[place], words[other] = words[other], words[place]
            case 4:
                words[place:place] = words[other : other + random.randrange(1, 30)]
            case 5:
                words[place] = words[place][: random.randrange(3)]
            case 6:
                del words[place:]
        if not words:
            break
    return "".join(words)


def survives(text: str) -> bool:
    """Whether the text is parsed; only PtxSyntaxError may come instead."""
    try:
        parse(text)
    except PtxSyntaxError as error:
        assert error.line >= 1 and error.column >= 1
        return False
    return True


def test_sample_is_right() -> None:
    assert survives(SAMPLE)


@pytest.mark.parametrize("seed", range(6))
def test_mutations_of_the_sample(seed: int) -> None:
    source = random.Random(seed)
    parsed = [survives(mutate(SAMPLE, source)) for _ in range(150)]
    assert any(parsed) and not all(parsed)  # or the mutations would not test much


@pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("name", ["reduce", "inline_asm", "calls", "warp", "tensor"])
def test_mutations_of_real_modules(name: str) -> None:
    code, options = sources.SOURCES[name]
    text = nvrtc.compile_ptx(code, *options, "-lineinfo")
    source = random.Random(name)
    parsed = [survives(mutate(text, source)) for _ in range(60)]
    assert not all(parsed)


@pytest.mark.parametrize("end", range(0, len(SAMPLE), 23))
def test_texts_cut_short(end: int) -> None:
    survives(SAMPLE[:end])


def test_random_characters() -> None:
    source = random.Random(1)
    letters = [*ODD, *"abc xyz 0123 .;,{}[]()%$_"]
    for _ in range(300):
        garbage = "".join(source.choice(letters) for _ in range(source.randrange(60)))
        assert not survives(garbage)
        survives(".version 9.0 .target sm_90 .address_size 64 .entry k { .reg .b32 %r<4>; " + garbage)
        survives(".version 9.0 .target sm_90 .address_size 64 .global .u32 x = " + garbage)


# --- linear growth ------------------------------------------------------------------------------------------

MODULE = ".version 9.0\n.target sm_90\n.address_size 64\n"
KERNEL = MODULE + ".entry k(.param .u64 p) {\n.reg .pred %p<9>; .reg .b32 %r<99>;\n"

SHAPES: dict[str, Callable[[int], str]] = {
    "instructions": lambda n: KERNEL + "add.s32 %r1, %r2, 3;\n" * n + "}",
    "labels": lambda n: KERNEL + "".join(f"L{i}: @%p1 bra L{n - 1 - i};\n" for i in range(n)) + "}",
    "nested scopes": lambda n: KERNEL + "{ .reg .u32 a; mov.u32 a, %r1; bra E;\n" * n + "}" * n + "E: ret; }",
    "labels in nested scopes": lambda n: (
        KERNEL + "".join(f"{{ bra E{i};\n" for i in range(n)) + "}" * n + "".join(f"E{i}:" for i in range(n)) + "}"
    ),
    "scopes side by side": lambda n: KERNEL + "{ .reg .pred q; L: @q bra L; }\n" * n + "}",
    "registers": lambda n: KERNEL + "".join(f".reg .b32 a{i}; mov.u32 a{i}, 1;\n" for i in range(n)) + "}",
    "numbers": lambda n: MODULE + ".global .b8 x[] = {" + "1, " * n + "2};",
    "rows": lambda n: MODULE + f".global .b8 x[{n + 1}][4] = {{" + "{1, 2}, " * n + "{3}};",
    "variables": lambda n: MODULE + "".join(f".global .b8 x{i};\n" for i in range(n)),
    "functions": lambda n: MODULE + "".join(f".func f{i} {{ ret; }}\n" for i in range(n)),
    "locations": lambda n: KERNEL + ".loc 1 1 1, function_name f, inlined_at 1 1 1\nret;\n" * n + "}",
    "expressions": lambda n: KERNEL + "mov.u32 %r1, 1" + " + 2 * 3" * n + ";}",
    "signs": lambda n: KERNEL + "mov.u32 %r1, " + "- ~ " * n + "1;}",
    "digits": lambda n: KERNEL + "mov.u32 %r1, " + "1" * n + ";}",
    "register with many digits": lambda n: KERNEL + "mov.u32 %r1, %r" + "1" * n + ";}",
    "operands": lambda n: KERNEL + "mov.u32 " + "%r1, " * n + "%r2;}",
    "errors at the end": lambda n: KERNEL + "ret;\n" * n,
}


def calls(text: str) -> int:
    """How many functions are called to parse a text: a measure of the work that no clock disturbs."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(trace)
    try:
        survives(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str) -> None:
    make = SHAPES[shape]
    survives(make(10))
    small, large = calls(make(200)), calls(make(800))
    assert large < 4.6 * small
