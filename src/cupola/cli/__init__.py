"""The ``cupola`` command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="cupola", description="Drive CUDA GPUs from Python, with or without a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="show the device, who provides it, and which CUDA libraries were found")
    info.add_argument("--json", action="store_true", help="print the same as JSON")
    options = parser.parse_args(arguments)

    from . import info as info_command

    return info_command.run(as_json=options.json)
