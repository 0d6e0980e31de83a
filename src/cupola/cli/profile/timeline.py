"""``cupola profile --timeline``: when the calls, kernels and copies of a Python program happened."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cupola.cli import native
from cupola.cli import run as runner
from cupola.cli.options import check_file, not_written

NVTX = "NVTX_INJECTION64_PATH"


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Run the program and record its timeline; returns its exit status."""
    if not options.module and native.find_program(options.program[0]):
        command.error(f"{options.program[0]} is not a Python program: a timeline is recorded of Python programs only")
    if options.json or options.roofline or options.lines:
        command.error("--lines, --json and --roofline are about counts: run it once for these, once for the timeline")
    from cupola.profile import _nvtx, timeline

    # Libraries that name their ranges with NVTX load what this names, at their first range.
    os.environ.setdefault(NVTX, _nvtx.__file__)
    try:
        recorded = timeline(options.timeline)
        check_file("--timeline", options.timeline, (".html", ".json"))
        runner.choose_device(options.device, options.model, options.devices)
        runner.check_environment()
        if not options.module:
            runner.read(Path(options.program[0]))
        recorded._share()
    except (ValueError, RuntimeError) as error:
        command.error(str(error))
    status = 1
    said = f"written to {options.timeline}"
    try:
        status = _program(options)
    finally:
        try:
            recorded._end_sharing()
        except OSError as error:
            said = f"cupola profile: {not_written('--timeline', options.timeline, error)}"
            status = status or 1
    print(f"{recorded.summary()}\n\n{said}", file=sys.stderr)
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
