"""``cupola profile``: what the kernels of a program do on the CPU device, counted line by line, and what to change.

Imported when it is asked for.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from cupola._device_options import add_device
from cupola.cli import options as common

VARIABLE = "CUPOLA_PROFILE"
"""Names the folder where this process and those that it starts write what they count."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "profile",
        help="count what the kernels of a program do, line by line, and say what to change",
        usage="cupola profile [--model NAME] [--lines] [--json] [--roofline FILE] "
        "(SCRIPT | -m MODULE | PROGRAM) [ARGUMENT ...]\n"
        "       cupola profile --timeline FILE [--device {auto,cpu,gpu}] [--model NAME] [--devices N] "
        "(SCRIPT | -m MODULE) [ARGUMENT ...]",
        description="Run a program on the CPU device and count, for each kernel and line, instructions, memory "
        "traffic, bank conflicts, divergence and contention. Counts are those of the modeled GPU; no time is guessed. "
        "With --timeline, record when calls, kernels, copies and named ranges happened instead, on any device.",
    )
    add_device(command.add_argument, where="where to run: it counts on the CPU device only")
    command.add_argument(
        "--timeline",
        metavar="FILE",
        help="write what happened when: .html for a browser, .json for Perfetto and Chrome",
    )
    command.add_argument("--lines", action="store_true", help="print the counts of every line")
    command.add_argument("--json", action="store_true", help="print all counts as JSON, when the program ends")
    command.add_argument("--roofline", metavar="FILE", help="also draw the roofline of the modeled GPU (SVG)")
    common.program(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Run the program; returns its exit status."""
    from cupola.cli import check, native
    from cupola.cli import run as runner

    common.require_program(options, command)
    if options.timeline is not None:
        from . import timeline

        return timeline.run(options, command)
    if options.device not in (None, "cpu"):
        command.error("kernels are counted on the CPU device only: leave --device out, or ask for a --timeline")
    try:
        if options.roofline is not None:
            common.check_file("--roofline", options.roofline, (".svg",))
        runner.choose_device("cpu", options.model, options.devices)
        runner.check_environment()
    except ValueError as error:
        command.error(str(error))
    is_python = options.module or native.find_program(options.program[0]) is None
    if is_python and not options.module:
        runner.read(Path(options.program[0]))  # or there is nothing to tell
    folder = os.environ[VARIABLE] = tempfile.mkdtemp(prefix="cupola-profile-")
    if not is_python:
        status = check.run_child(options.program)  # which does not come back
        tell(folder, options)
        return status
    atexit.register(tell, folder, options)
    if options.module:
        return runner.run(options.module[1:], module=options.module[0])
    return runner.run(options.program, module=None)


def tell(folder: str, options: argparse.Namespace) -> None:
    """Say what all processes have counted."""
    from cupola.cli.output import show

    from . import roofline, text
    from .model import Profile

    observed = sys.modules.get("cupola.cpu.observed")
    if observed is not None:
        observed.save()
    profile = Profile()
    profile.read_folder(folder)
    kernels = profile.kernels
    shutil.rmtree(folder, ignore_errors=True)
    if options.roofline is not None and kernels:
        try:
            Path(options.roofline).write_text(roofline.draw(profile.model, kernels), "utf-8")
        except OSError as error:
            print(f"cupola profile: {common.not_written('--roofline', options.roofline, error)}", file=sys.stderr)
    if options.json:
        show(json.dumps(text.as_json(kernels, profile.model), indent=1))
    else:
        print(text.report(kernels, profile.model, lines=options.lines), end="", file=sys.stderr)
