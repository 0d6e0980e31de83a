"""The ``cupola`` command.

Each command adds itself to the parser, with the function that carries it out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cupola import __version__

from . import bench, compile, completion, debug, new, profile, reports, start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser, commands = make_parser()
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["nvcc"]:  # all that follows is nvcc's
        from . import nvcc

        return nvcc.run(given[1:])
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None and not unknown:
        parser.print_help(sys.stderr)
        return 2
    if unknown:
        commands.choices.get(options.command, parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    options.given, options.commands = list(given), commands
    return int(options.run(options, commands.choices[options.command]))


def make_parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    """The parser of the command line, and those of the commands."""
    parser = argparse.ArgumentParser(prog="cupola", description="Drive CUDA GPUs from Python, with or without a GPU.")
    parser.add_argument("--version", action="version", version=f"cupola {__version__}")
    commands = parser.add_subparsers(dest="command")
    for module in (reports, start):
        module.add(commands)
    compiler = "compile CUDA C++ with NVIDIA's nvcc, so that the program also runs on the CPU device"
    commands.add_parser("nvcc", help=compiler, add_help=False)
    for module in (compile, bench, profile, debug, new, completion):
        module.add(commands)
    return parser, commands
