"""What is typed and what is written: names of commands, numbers, indices, lists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..points import Breakpoint, Seen

ALIASES = {
    "b": "break",
    "tb": "tbreak",
    "c": "continue",
    "cont": "continue",
    "s": "step",
    "n": "next",
    "r": "finish",
    "return": "finish",
    "fin": "finish",
    "unt": "until",
    "l": "list",
    "w": "where",
    "bt": "where",
    "backtrace": "where",
    "u": "up",
    "d": "down",
    "p": "print",
    "i": "info",
    "q": "quit",
    "exit": "quit",
    "h": "help",
    "cl": "clear",
    "delete": "clear",
    "t": "thread",
    "a": "args",
    "whatis": "ptype",
}
ELSEWHERE = {
    "set": "variables are read only",
    "run": "continue starts the program",
    "start": "continue starts the program",
    "frame": "up and down choose a call, where lists them",
}
"""Commands of other debuggers, and what is here instead."""

GROUPS = {
    "where to stop": ("break", "tbreak", "clear", "disable", "enable", "watch"),
    "how to go on": ("continue", "step", "next", "finish", "until", "block", "kill", "quit"),
    "what there is": ("print", "ptype", "lanes", "x", "args", "display", "undisplay", "info"),
    "where it is": ("where", "up", "down", "thread", "list"),
    "help": ("help",),
}


class Usage(ValueError):
    """A command was given what it cannot use."""


def watched(seen: Seen) -> str:
    """What a watch has seen, in a line."""
    place = f"{os.path.basename(seen.file)}:{seen.line}"
    return f"{place} block {index(seen.block)} thread {index(seen.thread)}: {seen.text}"


def index(index: Sequence[int]) -> str:
    """``(3, 0, 0)`` for a reader."""
    return f"({', '.join(map(str, index))})"


def numbers(text: str) -> tuple[int, ...]:
    """``5`` or ``3,0,0``."""
    parts = text.strip("()").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() for part in parts):
        raise Usage(f"{text!r} is neither a number nor x,y,z")
    return tuple(int(part) for part in parts)


def places(each: Breakpoint, any_code: bool) -> str:
    """Where a breakpoint is in the code of kernels."""
    if each.places:
        return ": " + ", ".join(each.places)
    return " (no kernel that was launched so far has it)" if any_code else " (pending, until a kernel is launched)"


def format_of(argument: str) -> tuple[str, str]:
    """The base of ``/x value``, and the rest."""
    match = re.match(r"/(\w+)\s*(.*)", argument, re.DOTALL)
    if match is None:
        return "", argument
    if match[1] not in ("x", "b", "o", "d"):
        raise Usage(f"/{match[1]} is no format: /x, /b, /o and /d are")
    return match[1], match[2]


def parts(text: str) -> list[str]:
    """What commas separate outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def ranges(numbers: Sequence[int]) -> str:
    """``0 to 31, 40``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a} to {b}" if b > a else str(a) for a, b in found)


def product(extents: Sequence[int]) -> int:
    """How many there are of three extents."""
    x, y, z = extents
    return x * y * z


def dedented(text: str) -> str:
    """A docstring for a reader."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))
