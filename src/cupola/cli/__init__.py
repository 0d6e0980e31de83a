"""The ``cupola`` command."""

from __future__ import annotations

import argparse
import atexit
import sys
from collections.abc import Sequence

from cupola import __version__

from . import bench, compile, completion, debug, new, profile

REPORTS = {
    "info": "show the device, who provides it, and which CUDA libraries were found",
    "doctor": "check the whole installation, and say what to do about each problem",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser, commands = make_parser()
    runner, watcher = commands.choices["run"], commands.choices["top"]
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

    if hasattr(options, "run"):
        options.given, options.commands = list(given), commands
        return int(options.run(options, commands.choices[options.command]))
    if options.command == "run":
        from . import check, native, run

        if not options.module and not options.program:
            runner.error("name a script, or a module with -m")
        session = None
        try:
            if options.coverage or options.coverage_report:
                from . import coverage

                options.device = coverage.prepare(options.device)
                session = coverage.Session(options.coverage_report)
        except ValueError as error:
            runner.error(str(error))
        if options.ranks is not None:
            from . import ranks

            if options.ranks < 1 or options.grace < 0:
                runner.error("-n must be at least 1, and --grace must not be negative")
            program = ["-m", *options.module] if options.module else options.program
            status = ranks.run(options.ranks, ranks.without_ranks(given[1:], program), grace=options.grace)
            if session is not None:
                session.tell()
            return status
        try:
            if options.inject:
                options.device = run.inject(options.inject, options.device)
            if options.check is not None:
                options.device = check.prepare(options.check, options.report, options.device)
            elif options.report is not None:
                raise ValueError("--report goes with --check")
            if options.watch:
                if options.device not in (None, "cpu"):
                    raise ValueError("kernels are watched on the CPU device only: --watch goes with --device cpu")
                options.device = "cpu"
            run.choose_device(options.device, options.model, options.devices)
            run.choose_cupy(options.cupy)
        except ValueError as error:
            runner.error(str(error))
        if session is not None:
            if options.check is None and (options.module or native.find_program(options.program[0]) is None):
                atexit.register(session.tell)
            else:  # the program is not in this process
                command = ["-m", *options.module] if options.module else options.program
                is_checked = options.check is not None
                status = check.run(command, options.report) if is_checked else check.run_child(command)
                session.tell()
                return status
        if options.watch:
            from . import debug

            if options.check is not None or (not options.module and native.find_program(options.program[0])):
                runner.error("--watch is for programs in Python, and without --check")
            return debug.watch(options.module or options.program, bool(options.module), options.watch, runner)
        if options.check is not None:
            return check.run(["-m", *options.module] if options.module else options.program, options.report)
        if options.module:
            return run.run(options.module[1:], module=options.module[0])
        return run.run(options.program, module=None)
    if options.command == "top":
        from . import top

        if options.interval < 0 or (options.count is not None and options.count < 1):
            watcher.error("--interval must not be negative, and --count must be at least 1")
        return top.run(options.interval, options.count, as_json=options.json)
    if options.command == "coverage":
        from . import coverage

        return coverage.combine(options.folders, options.coverage_report)
    if options.command == "doctor":
        from . import doctor

        return doctor.run(as_json=options.json)
    from . import info

    return info.run(as_json=options.json)


def make_parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    """The parser of the command line, and those of the commands."""
    parser = argparse.ArgumentParser(prog="cupola", description="Drive CUDA GPUs from Python, with or without a GPU.")
    parser.add_argument("--version", action="version", version=f"cupola {__version__}")
    commands = parser.add_subparsers(dest="command")
    for name, text in REPORTS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--json", action="store_true", help="print the same as JSON")
    watcher = commands.add_parser(
        "top",
        help="show the devices, how busy they are, and which processes use them, every second",
        description="Show the devices, how busy they are, and the processes that use them, until Ctrl-C.",
    )
    watcher.add_argument(
        "--interval", metavar="SECONDS", type=float, default=1.0, help="time between updates (default: 1)"
    )
    watcher.add_argument("-n", "--count", metavar="N", type=int, help="stop after N updates (1: print once)")
    watcher.add_argument("--json", action="store_true", help="print a line of JSON for each update")
    runner = commands.add_parser(
        "run",
        help="run a program in Python or any other language, unchanged, on cupola",
        usage="cupola run [--device {auto,cpu,gpu}] [--model NAME] [--devices N] [--[no-]cupy] [-n N] [--inject RULE] "
        "[--check CHECKS [--report FILE]] [--coverage] [--coverage-report DIR] [--watch FILE:LINE:EXPRESSION] "
        "(SCRIPT | -m MODULE | PROGRAM) [ARGUMENT ...]",
        description="Run a program written for CUDA Python unchanged: in its process, the names cuda.core, "
        "cuda.bindings and cuda.pathfinder are cupola's. Or run any other program: the CUDA libraries that it loads "
        "are the CPU device's then, or those of the GPU.",
    )
    runner.add_argument(
        "--device", choices=("auto", "cpu", "gpu"), help="where to run (default: CUPOLA_DEVICE, or auto)"
    )
    runner.add_argument("--model", metavar="NAME", help="the GPU that the CPU device models, such as h200 or t4")
    runner.add_argument("--devices", metavar="N", type=int, help="how many of them")
    runner.add_argument(
        "--cupy",
        action=argparse.BooleanOptionalAction,
        help="let `import cupy` be cupola's stand-in, or CuPy's own (default: CUPOLA_CUPY, or the stand-in on the CPU "
        "device)",
    )
    runner.add_argument(
        "-n",
        "--ranks",
        metavar="N",
        type=int,
        help="start N processes of the program, each with a place in LOCAL_RANK and a device by Device.for_rank()",
    )
    runner.add_argument(
        "--grace",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="with -n: how long the others may go on when one has failed (default: 10)",
    )
    runner.add_argument(
        "--inject",
        metavar="RULE",
        action="append",
        default=[],
        help="a fault to inject on the CPU device, such as call=cuMemAlloc*,nth=3; may be repeated",
    )
    runner.add_argument(
        "--check",
        metavar="CHECKS",
        help="check kernels on the CPU device, and fail when something is found: race, init, sync, memory, leak, "
        "several with commas, or all",
    )
    runner.add_argument("--report", metavar="FILE", help="write what --check finds to a file, .json or .sarif")
    runner.add_argument(
        "--coverage", action="store_true", help="say which lines and branches of CUDA C++ ran on the CPU device"
    )
    runner.add_argument(
        "--coverage-report",
        metavar="DIR",
        help="also write the coverage to a folder, as pages (index.html) and for lcov and Cobertura",
    )
    runner.add_argument(
        "--watch",
        metavar="FILE:LINE:EXPRESSION",
        action="append",
        default=[],
        help="print an expression whenever threads come to a line on the CPU device, such as kernel.cu:12:x[i]",
    )
    runner.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    runner.add_argument(
        "program", metavar="SCRIPT", nargs=argparse.REMAINDER, help="the script or program, and its arguments"
    )
    combiner = commands.add_parser(
        "coverage",
        help="add up the coverage of several runs",
        description="Add up what several runs have written with --coverage-report.",
    )
    combiner.add_argument("folders", metavar="DIR", nargs="+", help="the folders that the runs have written")
    combiner.add_argument("--coverage-report", metavar="DIR", help="the folder for all of them together")
    compiler = "compile CUDA C++ with NVIDIA's nvcc, so that the program also runs on the CPU device"
    commands.add_parser("nvcc", help=compiler, add_help=False)
    compile.add(commands)
    bench.add(commands)
    profile.add(commands)
    debug.add(commands)
    new.add(commands)
    completion.add(commands)
    return parser, commands
