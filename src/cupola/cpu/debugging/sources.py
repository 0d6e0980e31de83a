"""The text of CUDA C++ that kernels were compiled from, where it can be found."""

from __future__ import annotations

import linecache

from cupola.cpu.reports.texts import source_of

from .code import Code


def lines_of(code: Code, file: str) -> list[str]:
    """The lines of a file that a kernel's code names; none, if nobody has its text.

    NVRTC's programs are texts in memory, which the driver keeps; others are files.
    """
    if not code.has_lines:
        return code.variant.module.text.split("\n")
    text = source_of(file, code.variant.module.text)
    if text is not None:
        return text.split("\n")
    return [line.rstrip("\n") for line in linecache.getlines(file)]


def line_of(code: Code, file: str, number: int) -> str:
    """A line, without the spaces around it; empty if it is not known."""
    lines = lines_of(code, file)
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def python_line(file: str, number: int) -> str:
    """A line of a program in Python."""
    return linecache.getline(file, number).strip()
