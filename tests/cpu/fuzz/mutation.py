"""Changes to PTX that leave it looking like PTX: most mutants are parsed, and many run."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.:]*.*;\s*$")
_REGISTER = re.compile(r"%[a-z]+\d+")
_NUMBER = re.compile(r"(?<![\w.%$])-?\d+(?![\w.])")
_LABEL = re.compile(r"\$L\w+")
_MODIFIER = re.compile(r"(?<=[a-z0-9])\.([a-z]\w*)")
_NUMBERS = ["0", "1", "-1", "2", "31", "32", "33", "63", "64", "255", "4096", "65536", "2147483647", "-2147483648"]
_NUMBERS += ["4294967295", "9223372036854775807", "18446744073709551615", "99999999999999999999"]
_MODIFIERS = [
    "u8",
    "s8",
    "u16",
    "s16",
    "b16",
    "u32",
    "s32",
    "b32",
    "u64",
    "s64",
    "b64",
    "b128",
    "f16",
    "f32",
    "f64",
    "pred",
    "lo",
    "hi",
    "wide",
    "sat",
    "ftz",
    "rn",
    "rz",
    "approx",
    "full",
]
_MODIFIERS += [
    "global",
    "shared",
    "local",
    "const",
    "param",
    "volatile",
    "relaxed",
    "acquire",
    "release",
    "gpu",
    "sys",
    "cta",
    "v2",
    "v4",
    "sync",
    "warp",
    "uni",
]
_MODIFIERS += [
    "add",
    "min",
    "max",
    "exch",
    "cas",
    "and",
    "or",
    "xor",
    "inc",
    "dec",
    "lt",
    "gt",
    "eq",
    "ne",
    "nan",
    "cc",
    "x16",
    "trans",
    "aligned",
    "down",
    "up",
    "bfly",
    "idx",
]


@cache
def corpus() -> dict[str, str]:
    """The modules that are changed, by name."""
    return {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.ptx"))}


def mutant(seed: int) -> str:
    """The text for a seed, always the same."""
    source = random.Random(seed)
    names = list(corpus())
    lines = corpus()[names[seed % len(names)]].splitlines()
    for _ in range(source.choice((1, 1, 2, 3, 5, 9))):
        _change(source, lines)
    return "\n".join(lines) + "\n"


def _change(source: random.Random, lines: list[str]) -> None:
    places = [i for i, line in enumerate(lines) if _INSTRUCTION.match(line)] or list(range(len(lines)))
    place, other = source.choice(places), source.choice(places)
    line = lines[place]
    match source.randrange(12):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[other])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case 3 | 4:
            lines[place] = _replace(source, _REGISTER, line, _REGISTER.findall("\n".join(lines[max(0, place - 30) :])))
        case 5 | 6:
            lines[place] = _replace(source, _NUMBER, line, _NUMBERS)
        case 7:
            lines[place] = _replace(source, _LABEL, line, _LABEL.findall("\n".join(lines)))
        case 8 | 9:
            lines[place] = _replace(source, _MODIFIER, line, _MODIFIERS, group=1)
        case 10:
            block = lines[place : place + source.randrange(1, 12)]
            lines[other:other] = block
        case 11:  # any line: declarations, directives
            place = source.randrange(len(lines))
            pattern, values = source.choice([(_NUMBER, _NUMBERS), (_MODIFIER, _MODIFIERS)])
            lines[place] = _replace(source, pattern, lines[place], values)


def _replace(source: random.Random, pattern: re.Pattern[str], line: str, values: list[str], group: int = 0) -> str:
    found = list(pattern.finditer(line))
    if not found or not values:
        return line
    match = source.choice(found)
    return line[: match.start(group)] + source.choice(values) + line[match.end(group) :]
