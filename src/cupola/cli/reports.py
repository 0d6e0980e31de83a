"""Commands that only tell: ``cupola info``, ``doctor``, ``top``, and ``coverage`` of several runs."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser."""
    for name, text, run in (
        ("info", "show the device, who provides it, and which CUDA libraries were found", _info),
        ("doctor", "check the whole installation, and say what to do about each problem", _doctor),
    ):
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--json", action="store_true", help="print the same as JSON")
        command.set_defaults(run=run)
    command = commands.add_parser(
        "top",
        help="show the devices, how busy they are, and which processes use them, every second",
        description="Show the devices, how busy they are, and the processes that use them, until Ctrl-C.",
    )
    command.add_argument(
        "--interval", metavar="SECONDS", type=float, default=1.0, help="time between updates (default: 1)"
    )
    command.add_argument("-n", "--count", metavar="N", type=int, help="stop after N updates (1: print once)")
    command.add_argument("--json", action="store_true", help="print a line of JSON for each update")
    command.set_defaults(run=_top)
    command = commands.add_parser(
        "coverage",
        help="add up the coverage of several runs",
        description="Add up what several runs have written with --coverage-report.",
    )
    command.add_argument("folders", metavar="DIR", nargs="+", help="the folders that the runs have written")
    command.add_argument("--coverage-report", metavar="DIR", help="the folder for all of them together")
    command.set_defaults(run=_coverage)


def _info(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    from . import info

    return info.run(as_json=options.json)


def _doctor(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    from . import doctor

    return doctor.run(as_json=options.json)


def _top(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    from . import top

    if options.interval < 0 or (options.count is not None and options.count < 1):
        command.error("--interval must not be negative, and --count must be at least 1")
    return top.run(options.interval, options.count, as_json=options.json)


def _coverage(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    from . import coverage

    return coverage.combine(options.folders, options.coverage_report)
