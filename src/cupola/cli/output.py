"""What the commands print: for a reader at a terminal with colours and progress, for others plainly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO, TypeVar

Item = TypeVar("Item")

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"


def show(text: str) -> None:
    """Print to a reader who may leave early, as ``head`` does; what cannot be written ends the command."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.exit(f"cupola: the output cannot be written: {error.strerror}")


def coloured(stream: TextIO) -> bool:
    """Whether colours are wanted: on a terminal, unless NO_COLOR is set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour, where there are colours."""
    return f"\x1b[{colour}m{text}\x1b[0m" if coloured(stream or sys.stdout) else text


def progress(items: Sequence[Item], what: str, *, quiet: bool = False) -> Iterator[Item]:
    """The items, with a bar on a terminal that shows how many are done; none for a single one."""
    bar = not quiet and len(items) > 1 and sys.stderr.isatty()
    for number, item in enumerate(items):
        if bar:
            filled = 24 * number // len(items)
            print(
                f"\r\x1b[K{what} [{'#' * filled}{'.' * (24 - filled)}] {number}/{len(items)}  {item}",
                end="",
                file=sys.stderr,
            )
            sys.stderr.flush()
        yield item
        if bar:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def rows(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as their widest cell; the last column is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    return [
        "  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells
    ]
