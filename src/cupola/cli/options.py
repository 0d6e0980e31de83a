"""Options that several commands have: what is run and watched, how CUDA C++ is compiled, and what is written where."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence


def inject(command: argparse.ArgumentParser) -> None:
    """``--inject``."""
    command.add_argument(
        "--inject",
        metavar="RULE",
        action="append",
        default=[],
        help="a fault to inject on the CPU device, such as call=cuMemAlloc*,nth=3; may be repeated",
    )


def watch(command: argparse.ArgumentParser) -> None:
    """``--watch``."""
    command.add_argument(
        "--watch",
        metavar="FILE:LINE:EXPRESSION",
        action="append",
        default=[],
        help="print an expression whenever threads come to a line on the CPU device, such as kernel.cu:12:x[i]; may be "
        "repeated",
    )


def program(command: argparse.ArgumentParser, what: str = "the script or program, and its arguments") -> None:
    """What is run: a script, a module with ``-m``, or another program, and all arguments behind it."""
    command.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    command.add_argument("program", metavar="SCRIPT", nargs=argparse.REMAINDER, help=what)


def require_program(options: argparse.Namespace, command: argparse.ArgumentParser) -> None:
    """End with a message unless there is something to run."""
    if not options.module and not options.program:
        command.error("name a script, or a module with -m")


def compiler(command: argparse.ArgumentParser) -> None:
    """How CUDA C++ is compiled."""
    command.add_argument("--std", metavar="NAME", default="c++17", help="the dialect (default: c++17)")
    command.add_argument("-I", "--include", metavar="FOLDER", action="append", default=[], help="where headers are")
    command.add_argument("-D", "--define", metavar="NAME[=VALUE]", action="append", default=[], help="a macro")
    command.add_argument("--fast-math", action="store_true", help="faster and less precise functions")
    command.add_argument("--max-registers", metavar="N", type=int, help="the most registers for a thread")


def check_file(option: str, path: str, endings: Sequence[str]) -> None:
    """Refuse a file that has another ending, or that cannot be written: before the program runs, not at its end.

    Raises
    ------
    ValueError
        With the reason.
    """
    if not path.endswith(tuple(endings)):
        raise ValueError(f"{option} {path}: the name must end with {' or '.join(endings)}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"{option} {path}: there is no such folder")
    if os.path.isdir(path):
        raise ValueError(f"{option} {path}: that is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise ValueError(f"{option} {path}: it cannot be written, permission denied")


def not_written(option: str, path: str, error: OSError) -> str:
    """What is told when a file could not be written at the end of a run, whose results are told all the same."""
    return f"{option} {path}: it could not be written: {error.strerror or error}"


def check_folder(option: str, path: str) -> None:
    """Refuse a folder that cannot be made, or in which nothing can be written.

    Raises
    ------
    ValueError
        With the reason.
    """
    there = os.path.abspath(path)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise ValueError(f"{option} {path}: {os.path.relpath(there)} is no folder")
    if not os.access(there, os.W_OK):
        raise ValueError(f"{option} {path}: nothing can be written to {os.path.relpath(there)}, permission denied")
