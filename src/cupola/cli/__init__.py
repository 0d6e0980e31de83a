"""The ``cupola`` command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

COMMANDS = {
    "info": "show the device, who provides it, and which CUDA libraries were found",
    "doctor": "check the whole installation, and say what to do about each problem",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="cupola", description="Drive CUDA GPUs from Python, with or without a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--json", action="store_true", help="print the same as JSON")
    options = parser.parse_args(arguments)

    if options.command == "doctor":
        from . import doctor

        return doctor.run(as_json=options.json)
    from . import info

    return info.run(as_json=options.json)
