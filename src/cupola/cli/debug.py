"""``cupola debug``: a program in Python, with its kernels on the CPU device under a debugger."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import FrameType

from cupola._device_options import add_device

from . import options as common
from . import run as runner


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    command = commands.add_parser(
        "debug",
        help="run a program in Python, and stop its kernels at breakpoints",
        usage="cupola debug [--model NAME] [--devices N] [--inject RULE] [-c COMMAND] [--watch FILE:LINE:EXPRESSION] "
        "(SCRIPT | -m MODULE) [ARGUMENT ...]",
        description="Run a program in Python on the CPU device, with a debugger for its kernels: breakpoints by "
        "function and line, steps, variables, registers, the threads of a warp side by side. At the prompt, help lists "
        "the commands.",
        epilog="The exit status is that of the program; 0 after quit.",
    )
    add_device(command.add_argument, choices=())
    common.inject(command)
    command.add_argument(
        "-c",
        "--command",
        dest="typed",
        metavar="COMMAND",
        action="append",
        default=[],
        help="what to do first, as if it were typed, such as 'b saxpy'; may be repeated",
    )
    common.watch(command)
    common.program(command, "the script, and its arguments")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Run a script or a module under the debugger."""
    common.require_program(options, command)
    from cupola.cpu.debugging.points import make_watch

    from . import native

    if not options.module and native.find_program(options.program[0]):
        command.error(f"{options.program[0]} is a program of another language: cupola debug takes those in Python")
    try:
        if options.inject:
            runner.inject(options.inject, "cpu")
        runner.choose_device("cpu", options.model, options.devices)
        runner.check_environment()
        for each in options.watch:
            make_watch(each)
    except ValueError as error:
        command.error(str(error))
    if not options.module:
        runner.read(Path(options.program[0]))  # before somebody is asked for breakpoints
    program = options.module or options.program
    return session(program, is_module=bool(options.module), typed=options.typed, watches=options.watch)


def session(program: list[str], *, is_module: bool, typed: list[str], watches: list[str]) -> int:
    """Run a program, with commands that somebody types."""
    from cupola.cpu.debugging import Debugger
    from cupola.cpu.debugging.terminal import Terminal

    with Debugger() as debugger:
        terminal = Terminal(debugger, typed)
        for each in watches:
            debugger.watch(each, tell=terminal.seen)
        _take_signals(terminal, debugger)
        terminal.leave = partial(_leave, terminal)
        terminal.say(
            f"cupola debug: {program[0]} on the CPU device. Set breakpoints, then continue; help lists commands."
        )
        terminal.talk()
        if terminal.quitting:
            return 0
        status = _run(program, is_module=is_module)
        if not terminal.quitting:
            _finish(terminal)
        if terminal.quitting:
            return 0
        for text in debugger.never_reached():
            terminal.say(text)
        return status


def watch(program: list[str], is_module: bool, watches: list[str]) -> int:
    """Run a program, and print the values of expressions wherever threads come to a line."""
    from cupola.cpu.debugging import Debugger, Seen
    from cupola.cpu.debugging.terminal import watched

    def tell(seen: Seen) -> None:
        print(watched(seen), flush=True)

    with Debugger() as debugger:
        for each in watches:
            debugger.watch(each, tell=tell)
        try:
            return _run(program, is_module=is_module)
        finally:
            for text in debugger.never_reached():
                print(f"cupola run: {text}", file=sys.stderr)


def _run(program: list[str], *, is_module: bool) -> int:
    """The exit status of the program."""
    try:
        return runner.run(program[1:] if is_module else program, module=program[0] if is_module else None)
    except KeyboardInterrupt:
        print("KeyboardInterrupt", file=sys.stderr)
        return 130
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1


def _leave(terminal: object) -> None:
    """End the process where somebody has typed ``quit``, whatever its threads are doing."""
    from cupola.cpu.debugging.terminal import Terminal

    assert isinstance(terminal, Terminal)
    if terminal.stop is None:
        return  # the program has not begun
    terminal.save_history()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _take_signals(terminal: object, debugger: object) -> None:
    """Ctrl-C stops a kernel that runs, and interrupts the program otherwise."""
    from cupola.cpu import _driver
    from cupola.cpu.debugging import Debugger
    from cupola.cpu.debugging.terminal import Terminal

    assert isinstance(terminal, Terminal) and isinstance(debugger, Debugger)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if terminal.stop is not None:  # at the prompt, on another thread
            terminal.say("\n(quit ends the program)")
        elif not _driver.is_idle() and not debugger.is_interrupted:
            debugger.interrupt()
        else:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)


def _finish(terminal: object) -> None:
    """Kernels that still run when the program has ended may still stop."""
    from cupola.cpu import _driver
    from cupola.cpu.debugging.terminal import Terminal

    assert isinstance(terminal, Terminal)
    try:
        while not _driver.is_idle() and not terminal.quitting:
            time.sleep(0.005)
    except KeyboardInterrupt:
        return
