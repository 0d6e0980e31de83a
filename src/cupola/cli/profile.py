"""``cupola profile --timeline``: when the calls, kernels and copies of a Python program happened."""

from __future__ import annotations

import argparse
import os
import sys

from . import native
from . import run as runner

NVTX = "NVTX_INJECTION64_PATH"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "profile",
        help="run a Python program and say where its time went",
        usage="cupola profile --timeline FILE [--device {auto,cpu,gpu}] [--model NAME] [--devices N] "
        "(SCRIPT | -m MODULE) [ARGUMENT ...]",
        description="Run a Python program, as cupola run does, and record when its calls, kernels, copies and named "
        "ranges happened.",
    )
    command.add_argument(
        "--timeline",
        metavar="FILE",
        help="where to write what happened when: .html for a browser, .json for Perfetto and Chrome",
    )
    command.add_argument(
        "--device", choices=("auto", "cpu", "gpu"), help="where to run (default: CUPOLA_DEVICE, or auto)"
    )
    command.add_argument("--model", metavar="NAME", help="the GPU that the CPU device models, such as h200 or t4")
    command.add_argument("--devices", metavar="N", type=int, help="how many of them")
    command.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    command.add_argument("program", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script, and its arguments")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Run the program and record its timeline; returns its exit status."""
    if not options.module and not options.program:
        command.error("name a script, or a module with -m")
    if not options.module and native.find_program(options.program[0]):
        command.error(f"{options.program[0]} is not a Python program: a timeline is recorded of Python programs only")
    if options.timeline is None:
        command.error("--timeline FILE says where to write the timeline")
    from cupola.profile import _nvtx, timeline

    # Libraries that name their ranges with NVTX load what this names, at their first range.
    os.environ.setdefault(NVTX, _nvtx.__file__)
    try:
        runner.choose_device(options.device, options.model, options.devices)
        recorded = timeline(options.timeline)
        recorded.__enter__()
    except (ValueError, RuntimeError) as error:
        command.error(str(error))
    try:
        status = _program(options)
    finally:
        recorded.__exit__(None, None, None)
    print(f"{recorded.summary()}\n\nwritten to {options.timeline}", file=sys.stderr)
    return status


def _program(options: argparse.Namespace) -> int:
    """Run it, and turn how it ends into an exit status."""
    try:
        if options.module:
            return runner.run(options.module[1:], module=options.module[0])
        return runner.run(options.program, module=None)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
