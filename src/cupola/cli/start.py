"""The command ``cupola run``: its options, and how they go together."""

from __future__ import annotations

import argparse
import atexit

from cupola._device_options import add_device

from . import options as common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "run",
        help="run a program in Python or any other language, unchanged, on cupola",
        usage="cupola run [--device {auto,cpu,gpu}] [--model NAME] [--devices N] [--[no-]cupy] [-n N] [--inject RULE] "
        "[--check CHECKS [--report FILE]] [--coverage] [--coverage-report DIR] [--watch FILE:LINE:EXPRESSION] "
        "(SCRIPT | -m MODULE | PROGRAM) [ARGUMENT ...]",
        description="Run a program written for CUDA Python unchanged: in its process, the names cuda.core, "
        "cuda.bindings and cuda.pathfinder are cupola's. Or run any other program: the CUDA libraries that it loads "
        "are the CPU device's then, or those of the GPU.",
        allow_abbrev=False,  # `_FOR_ALL` and those of ranks.py are found by their names
    )
    add_device(command.add_argument)
    command.add_argument(
        "--cupy",
        action=argparse.BooleanOptionalAction,
        help="let `import cupy` be cupola's stand-in, or CuPy's own (default: CUPOLA_CUPY, or the stand-in on the CPU "
        "device)",
    )
    command.add_argument(
        "-n",
        "--ranks",
        metavar="N",
        type=int,
        help="start N processes of the program, each with a place in LOCAL_RANK and a device by Device.for_rank()",
    )
    command.add_argument(
        "--grace",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="with -n: how long the others may go on when one has failed (default: 10)",
    )
    common.inject(command)
    command.add_argument(
        "--check",
        metavar="CHECKS",
        help="check kernels on the CPU device, and fail when something is found: race, init, sync, memory, leak, "
        "several with commas, or all",
    )
    command.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="write what --check finds to a file, .json or .sarif; may be given for each",
    )
    command.add_argument(
        "--coverage", action="store_true", help="say which lines and branches of CUDA C++ ran on the CPU device"
    )
    command.add_argument(
        "--coverage-report",
        metavar="DIR",
        help="also write the coverage to a folder, as pages (index.html) and for lcov and Cobertura",
    )
    common.watch(command)
    common.program(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Run the program; returns its exit status."""
    from . import check, native
    from . import run as runner

    common.require_program(options, command)
    program = ["-m", *options.module] if options.module else options.program
    is_python = bool(options.module) or native.find_program(program[0]) is None
    try:
        _prepare(options, is_python)
    except ValueError as error:
        command.error(str(error))
    session = None
    if options.coverage or options.coverage_report:
        from . import coverage

        session = coverage.Session(options.coverage_report)
    if options.ranks is not None:
        from . import ranks

        given = ranks.without(options.given[1:], program, _FOR_ALL)
        if options.check is not None:
            status = check.run(given, options.report)
        else:
            status = ranks.run(options.ranks, ranks.without(given, program), grace=options.grace)
        if session is not None:
            session.tell()
        return status
    if session is not None:
        if options.check is None and is_python:
            atexit.register(session.tell)
        else:  # the program is not in this process
            status = check.run(program, options.report) if options.check is not None else check.run_child(program)
            session.tell()
            return status
    if options.watch:
        from . import debug

        return debug.watch(options.module or program, bool(options.module), options.watch)
    if options.check is not None:
        return check.run(program, options.report)
    if options.module:
        return runner.run(options.module[1:], module=options.module[0])
    return runner.run(program, module=None)


_FOR_ALL = ("--inject", "--check", "--report")
"""What all ranks find in their environment, and what there is one of for all of them."""


def _prepare(options: argparse.Namespace, is_python: bool) -> None:
    """Choose the device, and what is injected and checked, for this process and those that it starts.

    Raises
    ------
    ValueError
        For options that make no sense or do not go together.
    """
    from . import check
    from . import run as runner

    if options.ranks is not None and (options.ranks < 1 or not options.grace >= 0):
        raise ValueError("-n must be at least 1, and --grace must not be negative")
    if options.ranks is not None:
        from .ranks import most_ranks

        if options.ranks > (most := most_ranks()):
            raise ValueError(f"-n {options.ranks} is too much: on this machine there can be {most} (see ulimit -u)")
    if options.coverage or options.coverage_report:
        from . import coverage

        options.device = coverage.prepare(options.device, options.coverage_report)
    if options.inject:
        options.device = runner.inject(options.inject, options.device)
    if options.check is not None:
        options.device = check.prepare(options.check, options.report, options.device)
    elif options.report:
        raise ValueError("--report goes with --check")
    if options.watch:
        if options.device not in (None, "cpu"):
            raise ValueError("kernels are watched on the CPU device only: --watch goes with --device cpu")
        if options.check is not None or not is_python:
            raise ValueError("--watch is for programs in Python, and without --check")
        from cupola.cpu.debugging.points import make_watch

        for each in options.watch:
            make_watch(each)
        options.device = "cpu"
    runner.choose_device(options.device, options.model, options.devices)
    runner.choose_cupy(options.cupy)
    runner.check_environment()
