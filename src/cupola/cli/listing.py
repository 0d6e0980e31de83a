"""Code beside the lines of source that it was made of."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from .output import DIM, paint

WIDTH = 58  # of the source

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_SASS_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_SASS_CODE = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/\s*)(.*?);?\s*(?:/\*.*\*/)?\s*$")


class NoDisassembler(Exception):
    """nvdisasm is not installed, or did not work."""


@dataclass
class Part:
    """Instructions of one line of the source, in their order; line 0 is what belongs to none."""

    line: int
    code: list[str] = field(default_factory=list)


@dataclass
class Listing:
    """A program as parts, with the name of its file."""

    file: str
    parts: list[Part]


def of_ptx(text: str) -> Listing:
    """PTX that was compiled with line information."""
    files = {match[1]: match[2] for match in map(_FILE.match, text.splitlines()) if match}
    own = next(iter(files), "1")
    parts = [Part(0)]
    debug = False
    for line in text.rstrip("\0\n").splitlines():
        stripped = line.strip()
        if stripped.startswith(".section"):
            debug = True
        if debug:
            debug = stripped != "}"
            continue
        if location := _LOC.match(line):
            number, row = location.groups()
            # A function that was inlined belongs to the line that called it, where it is of another file.
            if number != own and (outer := _INLINED.search(line)):
                number, row = outer.groups()
            _begin(parts, int(row) if number == own else 0)
        elif not stripped or stripped.startswith((".file", "//")):
            continue
        else:
            if not line[:1].isspace() and stripped not in ("{", ")", "}") and not stripped.startswith("$"):
                _begin(parts, 0)  # the head of a function
            parts[-1].code.append(line.replace("\t", "  ").rstrip())
    return Listing(files.get(own, ""), [part for part in parts if part.code])


def of_sass(cubin: bytes) -> Listing:
    """Machine code with line information.

    Raises
    ------
    NoDisassembler
        There is no nvdisasm, or it does not take the code.
    """
    program = _find()
    if program is None:
        raise NoDisassembler(
            "--show sass needs NVIDIA's disassembler, nvdisasm, which was not found: pip install nvidia-cuda-nvdisasm, "
            "or install the CUDA Toolkit; --show ptx needs nothing"
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([program, "-g", "-c", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoDisassembler(f"{program} failed: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return parse_sass(done.stdout)


def _find() -> str | None:
    from cupola.pathfinder import find_nvidia_binary_utility

    return find_nvidia_binary_utility("nvdisasm") or shutil.which("nvdisasm")


def parse_sass(text: str) -> Listing:
    """What ``nvdisasm -g -c`` prints."""
    parts, own, inside = [Part(0)], "", False
    for line in text.splitlines():
        if line.startswith("\t.section\t") or line.startswith(".section"):
            inside = ".text." in line
            if inside:
                _begin(parts, 0)
                parts[-1].code.append(line.split()[1].split(",")[0].removeprefix(".text."))
        elif not inside:
            continue
        elif location := _SASS_LINE.match(line):
            own = own or location[1]
            _begin(parts, int(location[2]) if location[1] == own else 0)
        elif re.match(r"^\.L_x_\d+:|^\.L_\w+:", line):
            parts[-1].code.append(line.strip())
        elif (code := _SASS_CODE.match(line)) and code[1].strip() != "NOP":
            parts[-1].code.append(f"    {code[1].rstrip()}")
    return Listing(own, [part for part in parts if part.code])


def _begin(parts: list[Part], line: int) -> None:
    if parts[-1].line != line or not line:
        parts.append(Part(line))


def side_by_side(listing: Listing, source: str) -> str:
    """The listing in two columns: on the left the source, on the right the code."""
    texts = source.splitlines()
    digits = len(str(len(texts)))
    width = min(WIDTH, max([len(text.expandtabs(4)) for text in texts], default=0)) + digits + 2
    columns = shutil.get_terminal_size((160, 0)).columns if sys.stdout.isatty() else 10**6
    lines = []
    for part in listing.parts:
        left = ""
        if 0 < part.line <= len(texts):
            left = f"{part.line:>{digits}}  {texts[part.line - 1].expandtabs(4)}"
        for code in part.code:
            shown = left if len(left) <= width else left[: width - 3] + "..."
            lines.append(f"{shown:<{width}} {paint('|', DIM)} {code[: max(20, columns - width - 3)]}")
            left = ""
    return "\n".join(lines)
