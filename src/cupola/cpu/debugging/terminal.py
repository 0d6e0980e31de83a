"""The debugger in a terminal: commands like those of pdb."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TextIO

from .dwarf import Variable
from .session import Breakpoint, Debugger, DebuggerError, Seen, Stop, dim3
from .sources import line_of, lines_of, python_line
from .state import BUILTIN, WARP, Frame
from .values import ExpressionError, pointed, show

_ROWS = 11
_MOST_ROWS = 2000
_MORE = "... (the rest is not shown)"
_HISTORY = "~/.cache/cupola/debug-history"

ALIASES = {
    "b": "break",
    "tb": "tbreak",
    "c": "continue",
    "cont": "continue",
    "s": "step",
    "n": "next",
    "r": "finish",
    "return": "finish",
    "fin": "finish",
    "unt": "until",
    "l": "list",
    "w": "where",
    "bt": "where",
    "backtrace": "where",
    "u": "up",
    "d": "down",
    "p": "print",
    "i": "info",
    "q": "quit",
    "exit": "quit",
    "h": "help",
    "cl": "clear",
    "delete": "clear",
    "t": "thread",
    "a": "args",
    "whatis": "ptype",
}

GROUPS = {
    "where to stop": ("break", "tbreak", "clear", "disable", "enable", "watch"),
    "how to go on": ("continue", "step", "next", "finish", "until", "block", "kill", "quit"),
    "what there is": ("print", "ptype", "lanes", "x", "args", "display", "undisplay", "info"),
    "where it is": ("where", "up", "down", "thread", "list"),
    "help": ("help",),
}


class _Usage(ValueError):
    """A command was given what it cannot use."""


class Terminal:
    """Commands for a debugger, read from a terminal or a pipe.

    Parameters
    ----------
    debugger
        The debugger.
    commands
        What to do first, before anything is read.
    stdin, stdout
        Where commands come from, and where answers go; None for those of the process.
    """

    prompt = "(cupola) "

    def __init__(
        self,
        debugger: Debugger,
        commands: Iterable[str] = (),
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.lastcmd = ""
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.debugger = debugger
        self.waiting = list(commands)
        self.stop: Stop | None = None
        self.frame = 0
        self.file = ""
        self.listed = 0
        self.displays: list[str] = []
        self.is_over = False
        self.quitting = False
        self._lock = threading.RLock()
        self._history_read = False
        self.leave: Callable[[], object] | None = None
        """Ends the process on ``quit`` where a kernel is stopped; None: the kernel is ended."""
        debugger.on_stop(self.stopped)
        debugger._over.append(self.over)

    # --- what the debugger tells -------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        """Write a line."""
        with contextlib.suppress(BrokenPipeError):
            self.stdout.write(text + "\n")
            self.stdout.flush()

    def stopped(self, stop: Stop) -> None:
        """A thread has stopped: read commands until one lets it go on."""
        if self.quitting:
            stop.end()
            return
        self.stop, self.frame, self.listed = stop, 0, 0
        try:
            self.show_stop()
            for expression in self.displays:
                self._guarded(partial(self._display, expression))
            self.talk()
        finally:
            self.stop = None

    def over(self, what: str, was_followed: bool) -> None:
        """A launch is over, or something is to be said."""
        if was_followed:
            self.say(f"The thread has ended, and so has the kernel '{what}'.")
        elif " " in what:
            self.say(f"*** {what}")

    def seen(self, seen: Seen) -> None:
        """A watch has seen a value."""
        self.say(watched(seen))

    def show_stop(self) -> None:
        """Say where the thread is, and why it has stopped."""
        stop = self.stop
        assert stop is not None
        if stop.reason == "fault":
            self.say("*** The kernel has failed:")
            self.say(stop.explanation)
            self.say("(it cannot go on; its variables can be looked at)")
        elif stop.reason == "brkpt":
            self.say("__brkpt() in the kernel")
        elif stop.reason == "interrupt":
            self.say("interrupted")
        for each in stop.breakpoints:
            self.say(str(each))
        self.show_place()

    def show_place(self) -> None:
        """The line of the frame that is looked at."""
        frame = self.current()
        if frame is None:
            assert self.stop is not None
            self.say(f"thread {self._who()} has {self.stop.status()}")
            return
        self.file = frame.file
        self.say(f"> {frame.file}:{frame.line} in {frame.function}, {self._who()}{self._with()}")
        text = line_of(frame.code, frame.file, frame.line)
        if text:
            self.say(f"-> {text}")

    def _who(self) -> str:
        stop = self.stop
        assert stop is not None
        return f"block {_index(stop.block)} thread {_index(stop.thread)}"

    def _with(self) -> str:
        stop = self.stop
        assert stop is not None
        count = len(stop.lanes) - 1
        return f" and {count} more of its warp" if count > 0 and stop.thread_number in stop.lanes else ""

    # --- reading commands --------------------------------------------------------------------------------------------

    def talk(self) -> None:
        """Read commands until one goes on."""
        with self._lock:
            while True:
                line = self.read()
                if self.handled(line):
                    return

    def read(self) -> str:
        """The next command."""
        if self.waiting:
            line = self.waiting.pop(0)
            self.say(f"{self.prompt}{line}")
            return line
        try:
            if self.use_rawinput:
                self._start_history()
                return input(self.prompt)
            self.stdout.write(self.prompt)
            self.stdout.flush()
            line = self.stdin.readline()
        except EOFError:
            line = ""
        except KeyboardInterrupt:
            self.say()
            return "#"
        if not line:
            self.say()
            return "quit"
        return line.rstrip("\n")

    def handled(self, line: str) -> bool:
        """Do what a line says; whether the thread goes on."""
        line = line.strip()
        if line.startswith("#"):
            return False
        if not line:
            line = self.lastcmd
            if not line:
                return False
        result = self._guarded(lambda: self.onecmd(line))
        return bool(result)

    def _guarded(self, action: Callable[[], object]) -> object:
        try:
            return action()
        except (ExpressionError, DebuggerError, _Usage) as error:
            self.say(f"*** {error}")
        except Exception as error:  # a defect of the debugger must not end the program that is debugged
            self.say(f"*** the debugger failed: {type(error).__name__}: {error}")
        return False

    def onecmd(self, line: str) -> bool:
        """Do a command; whether the thread goes on."""
        self.lastcmd = line
        match = re.match(r"([A-Za-z]+)(/\w+)?\s*(.*)", line, re.DOTALL)
        if match is None:
            if line[:1] in "0123456789(*&%'!~-":
                self.do_print(line)
                return False
            raise _Usage(f"{line!r} is no command: try help")
        word = ALIASES.get(match[1], match[1])
        command = getattr(self, f"do_{word}", None)
        if command is None:
            candidates = sorted(n for n in self._commands() if n.startswith(match[1]))
            if len(candidates) == 1:
                word, command = candidates[0], getattr(self, f"do_{candidates[0]}")
            elif candidates:
                raise _Usage(f"{match[1]!r} may be {', '.join(candidates)}")
            elif self.stop is not None:
                self.do_print(line)  # the name of a variable
                return False
            else:
                raise _Usage(f"{match[1]!r} is no command: try help")
        rest = f"{match[2]} {match[3]}" if match[2] and word in ("print", "x", "lanes", "display") else match[3]
        if match[2] and word not in ("print", "x", "lanes", "display"):
            raise _Usage(f"{word} takes no {match[2]}")
        return bool(command(rest.strip()))

    def _commands(self) -> list[str]:
        return [name[3:] for name in dir(self) if name.startswith("do_")]

    def _start_history(self) -> None:
        if self._history_read:
            return
        self._history_read = True
        try:
            import readline
        except ImportError:  # a Python without it
            return
        readline.set_completer(self.completed)
        readline.parse_and_bind("tab: complete")
        readline.set_completer_delims(" \t\n()[]+-*/=<>!&|,.")
        path = os.path.expanduser(_HISTORY)
        with contextlib.suppress(OSError):
            readline.read_history_file(path)
        atexit.register(self.save_history)

    def save_history(self) -> None:
        """Keep what was typed for the next time."""
        if not self._history_read:
            return
        import readline

        path = os.path.expanduser(_HISTORY)
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(path)

    def completed(self, text: str, state: int) -> str | None:
        """What a word may go on with: a command, a variable, a function or a file."""
        if state == 0:
            try:
                import readline

                line, begin = readline.get_line_buffer(), readline.get_begidx()
            except ImportError:
                line, begin = text, 0
            self._matches = self.candidates(text, line, begin)
        return self._matches[state] if state < len(self._matches) else None

    def candidates(self, text: str, line: str, begin: int) -> list[str]:
        """The words that begin with a text, for the place in a line where it stands."""
        if not line[:begin].strip():
            words: Iterable[str] = self._commands()
        else:
            command = ALIASES.get(line.split()[0], line.split()[0])
            words = []
            if command in ("break", "tbreak", "watch"):
                for code in self.debugger._codes_now():
                    words += [*code.functions(), *(f"{os.path.basename(file)}:" for file in code.files())]
            elif command == "info":
                words = sorted(_INFOS)
            elif command == "help":
                words = self._commands()
            else:
                frame = self.current()
                if frame is not None:
                    words = [v.name for v in frame.declared()] + list(BUILTIN)
                    words += frame.registers() if text.startswith("%") else []
        return sorted({word for word in words if word.startswith(text)})

    # --- what is looked at -------------------------------------------------------------------------------------------

    def _require(self) -> Stop:
        if self.stop is None:
            raise _Usage("no kernel is stopped: set a breakpoint, and continue")
        return self.stop

    def current(self) -> Frame | None:
        """The frame that is looked at; None if there is none."""
        if self.stop is None:
            return None
        frames = self.stop._frames()
        return frames[min(self.frame, len(frames) - 1)] if frames else None

    def _frame(self) -> Frame:
        stop = self._require()
        frame = self.current()
        if frame is None:
            raise _Usage(f"the thread has {stop.status()}: there is nothing to look at")
        return frame

    def _show(self, expression: str, base: str = "", thread: int | None = None) -> str:
        stop = self._require()
        self._frame()
        return stop.show(expression, thread, self.frame, base)

    # --- where to stop -----------------------------------------------------------------------------------------------

    def do_break(self, argument: str) -> None:
        """break [FUNCTION | FILE:LINE | LINE] [block N] [thread N] [if CONDITION]

        Stop threads where a function begins, or at a line; without a place, at this line. The condition is an
        expression of C++ over the variables there. Blocks and threads are numbers, or x,y,z. Without arguments and
        without a stop, the breakpoints are listed."""
        self._break(argument, temporary=False)

    def do_tbreak(self, argument: str) -> None:
        """tbreak ...

        As break, for one stop only."""
        self._break(argument, temporary=True)

    def _break(self, argument: str, *, temporary: bool) -> None:
        if not argument and self.stop is None:
            self._info_breakpoints()
            return
        place, _, condition = re.sub(r"(^|\s)if(\s|\()", "\0\\2", argument, count=1).partition("\0")
        words = place.replace(", ", ",").split()
        indices: dict[str, tuple[int, ...]] = {}
        for word in ("block", "thread"):
            if word in words:
                at = words.index(word)
                if at + 1 == len(words):
                    raise _Usage(f"{word} needs a number, or x,y,z")
                indices[word] = _numbers(words[at + 1])
                del words[at : at + 2]
        where = " ".join(words)
        if not where:
            frame = self._frame()
            where = f"{frame.file}:{frame.line}"
        elif where.isdigit() and self.file:
            where = f"{self.file}:{where}"
        made = self.debugger.breakpoint(
            where,
            condition=condition.strip(),
            block=indices.get("block"),
            thread=indices.get("thread"),
            temporary=temporary,
        )
        self.say(f"{made}{_places(made, bool(self.debugger._codes_now()))}")

    def do_watch(self, argument: str) -> None:
        """watch FILE:LINE:EXPRESSION

        Print an expression whenever threads come to a line, without stopping."""
        made = self.debugger.watch(argument, tell=self.seen)
        self.say(f"watching {made.expression} at {made.where}")

    def _chosen(self, argument: str) -> list[Breakpoint]:
        stops = [each for each in self.debugger.breakpoints if each.number]
        if not argument:
            return stops
        numbers = {each.number: each for each in stops}
        chosen = []
        for word in argument.replace(",", " ").split():
            if not word.isdigit() or int(word) not in numbers:
                raise _Usage(f"there is no breakpoint {word}: info breakpoints lists them")
            chosen.append(numbers[int(word)])
        return chosen

    def do_clear(self, argument: str) -> None:
        """clear [NUMBER ...]

        Delete breakpoints; without numbers, all of them."""
        for each in self._chosen(argument):
            self.debugger.delete(each)
            self.say(f"deleted {each}")

    def do_disable(self, argument: str) -> None:
        """disable [NUMBER ...]

        Do not stop at breakpoints until they are enabled."""
        for each in self._chosen(argument):
            each.enabled = False

    def do_enable(self, argument: str) -> None:
        """enable [NUMBER ...]

        Stop at breakpoints again."""
        for each in self._chosen(argument):
            each.enabled = True

    # --- how to go on ------------------------------------------------------------------------------------------------

    def do_continue(self, argument: str) -> bool:
        """continue

        Go on to the next breakpoint. Before the program has begun, begin it."""
        if self.stop is not None:
            self.stop.resume()
        return True

    def do_step(self, argument: str) -> bool:
        """step

        Go on to the next line of this thread, also in a function that it calls. Other threads run as they come to:
        those of its warp with it, others when it waits for them."""
        self._require().step()
        return True

    def do_next(self, argument: str) -> bool:
        """next

        Go on to the next line of this function."""
        self._require().next()
        return True

    def do_finish(self, argument: str) -> bool:
        """finish

        Go on until this function has returned."""
        stop = self._require()
        if len(stop._frames()) <= 1:
            self.say("This is the kernel itself: going on to its end.")
        stop.finish()
        return True

    def do_until(self, argument: str) -> bool:
        """until [LINE]

        Go on to a line behind this one, which leaves a loop; or to LINE or one behind it."""
        if argument and not argument.isdigit():
            raise _Usage("until takes the number of a line")
        self._require().until(int(argument or 0))
        return True

    def do_block(self, argument: str) -> bool:
        """block [N | x,y,z]

        Go on until a thread of that block comes to a line. Blocks run one after the other, in ascending order.
        Without a number, say which block this is."""
        stop = self._require()
        if not argument:
            self.say(f"block {_index(stop.block)} of {_index(stop.grid_dim)}")
            return False
        wanted = dim3(_numbers(argument))
        if wanted == stop.block:
            return False
        x, y, z = stop.grid_dim
        order = [block[0] + x * (block[1] + y * block[2]) for block in (wanted, stop.block)]
        if not all(0 <= i < extent for i, extent in zip(wanted, (x, y, z), strict=True)):
            raise _Usage(f"the grid has {x} x {y} x {z} blocks")
        if order[0] < order[1]:
            raise _Usage(
                f"block {_index(wanted)} has run already: set a breakpoint with 'block {argument}', and run again"
            )
        stop.resume()
        self.debugger._wanted_block = wanted
        self.debugger.interrupt()
        return True

    def do_kill(self, argument: str) -> bool:
        """kill

        End the kernel. The program gets CUDA_ERROR_LAUNCH_TIMEOUT."""
        self._require().end()
        return True

    def do_quit(self, argument: str) -> bool:
        """quit

        End the program."""
        self.quitting = True
        if self.stop is not None and self.stop.reason != "fault":
            self.stop.end()
        if self.leave is not None:
            self.leave()
        return True

    # --- what there is -----------------------------------------------------------------------------------------------

    def do_print(self, argument: str) -> None:
        """print[/x|/b|/o|/d] EXPRESSION

        The value of an expression of C++: variables, members, x[i], *p, slices x[0:8], casts, arithmetic, threadIdx
        and the like, registers such as %r1. /x writes whole numbers in base 16."""
        base, expression = _format(argument)
        self.say(self._show(expression, base))

    def do_display(self, argument: str) -> None:
        """display [EXPRESSION]

        Print an expression at each stop; without one, print those that there are."""
        if argument:
            self.displays.append(argument)
        for expression in [argument] if argument else self.displays:
            self._display(expression)

    def _display(self, expression: str) -> None:
        base, text = _format(expression)
        self.say(f"{text} = {self._show(text, base)}")

    def do_undisplay(self, argument: str) -> None:
        """undisplay [EXPRESSION]

        Do not print it any more; without one, none."""
        if argument and argument not in self.displays:
            raise _Usage(f"{argument!r} is not displayed")
        self.displays = [each for each in self.displays if argument and each != argument]

    def do_ptype(self, argument: str) -> None:
        """ptype EXPRESSION

        The type of an expression, with its members."""
        stop = self._require()
        try:
            kind = stop._value(argument, frame=self.frame).type
        except ExpressionError:
            named = self._frame().type_named(argument)
            if named is None:
                raise
            kind = named
        self.say(f"{kind.name}, {kind.size} bytes")
        for each in kind.members:
            bits = f" : {each.bits}" if each.bits else ""
            self.say(f"    {each.type.name} {each.name}{bits};  // at {each.offset}")

    def do_lanes(self, argument: str) -> None:
        """lanes[/x] [EXPRESSION ...]

        Expressions, separated by commas, for all threads of the warp side by side; without any, where they are. A star
        is in front of threads that are stopped here together."""
        stop = self._require()
        base, text = _format(argument)
        expressions = [part.strip() for part in _parts(text)] if text else []
        first = stop.thread_number // WARP * WARP
        last = min(first + WARP, _product(stop.block_dim))
        rows = [["", "thread", *(expressions or ["line", "status"])]]
        here = set(stop.lanes)
        for thread in range(first, last):
            mark = ">" if thread == stop.thread_number else "*" if thread in here else ""
            cells = [mark, _index(stop._launch.place_of(thread))]
            if expressions:
                cells += [self._lane(thread, expression, base) for expression in expressions]
            else:
                frames = stop._frames(thread)
                cells += [f"{frames[0].line} {frames[0].function}" if frames else "", stop.status(thread)]
            rows.append(cells)
        self._table(rows)

    def _lane(self, thread: int, expression: str, base: str) -> str:
        stop = self._require()
        frames = stop._frames(thread)
        if not frames:
            return f"({stop.status(thread)})"
        try:
            return stop.show(expression, thread, min(self.frame, len(frames) - 1), base)
        except ExpressionError:
            return "?"

    def do_x(self, argument: str) -> None:
        """x[/COUNT] EXPRESSION

        Bytes of memory from an address or a variable on."""
        stop = self._require()
        match = re.match(r"/(\d+)\s*(.*)", argument)
        count, expression = (int(match[1]), match[2]) if match else (64, argument)
        value = stop._value(expression, frame=self.frame)
        frame = self._frame()
        if value.type.kind == "pointer" or value.place is None:
            place = pointed(int(value.number) & (1 << 64) - 1, frame.thread)
        else:
            place = value.place
        for offset in range(0, min(count, 4096), 16):
            size = min(16, count - offset)
            data = frame.read(place.at(offset), size)
            if data is None:
                raise ExpressionError(f"there is no memory of {size} bytes at {place.address + offset:#x}")
            text = "".join(chr(b) if 32 <= b < 127 else "." for b in data)
            self.say(f"{place.address + offset:#x}:  {data.hex(' ', 4):<36} {text}")

    def do_args(self, argument: str) -> None:
        """args

        The parameters of the function."""
        frame = self._frame()
        found = [variable for variable in frame.declared() if variable.is_parameter]
        if found:
            self._variables(frame, found)
        else:
            self._ptx_parameters(frame)

    def do_info(self, argument: str) -> None:
        """info WHAT

        breakpoints, locals, args, registers, threads, barriers, kernels, shared, line."""
        words = argument.split()
        matches = [name for name in _INFOS if words and name.startswith(words[0])]
        if words and words[0] == "b":
            matches = ["breakpoints"]
        exact = [name for name in matches if name == words[0]]
        if len(exact or matches) != 1:
            raise _Usage(f"info takes one of {', '.join(sorted(_INFOS))}")
        _INFOS[(exact or matches)[0]](self, " ".join(words[1:]))

    def _info_breakpoints(self, argument: str = "") -> None:
        stops = [each for each in self.debugger.breakpoints if each.number]
        if not stops and not self.debugger.watches:
            self.say("There are no breakpoints.")
        for each in stops:
            state = "" if each.enabled else ", disabled"
            self.say(f"{each}{state}, hit {each.hits} times{_places(each, bool(self.debugger._codes_now()))}")
        for watch in self.debugger.watches:
            self.say(f"watching {watch.expression} at {watch.where}: seen {len(watch.values)} times")

    def _info_locals(self, argument: str) -> None:
        frame = self._frame()
        found = [variable for variable in frame.declared() if not variable.is_parameter]
        if found or frame.code.info.functions:
            self._variables(frame, found)
            if not found:
                self.say("There are no local variables here.")
            return
        why = frame.code.problem or "the program was not compiled with debug=True (nvcc -G)"
        self.say(f"Variables are not known: {why}. There are info registers, and these parameters:")
        self._ptx_parameters(frame)

    def _variables(self, frame: Frame, found: Sequence[Variable]) -> None:
        for variable in found:
            value = frame.value_of(variable)
            name = variable.name
            if value.data is None and value.place is None:
                self.say(f"{name} = <not set yet, not needed any more, or in parts>")
            else:
                self.say(f"{name} = {show(value, frame.read, frame.thread)}")

    def _ptx_parameters(self, frame: Frame) -> None:
        for name, *_ in frame.parameters():
            self.say(f"{name} = {self._show(name)}")

    def _info_registers(self, argument: str) -> None:
        frame = self._frame()
        names = [name for name in frame.registers() if not argument or name in argument.split()]
        for unknown in set(argument.split()) - set(names):
            raise _Usage(f"there is no register {unknown} in this function")
        rows = []
        for name in names:
            value = frame.register(name)
            bits = "" if value.type.kind == "bool" else show(value, frame.read, base="x")
            rows.append([name, show(value, frame.read), bits])
        self._table(rows)

    def _info_threads(self, argument: str) -> None:
        stop = self._require()
        groups: list[tuple[str, str, int, int]] = []
        for thread in range(_product(stop.block_dim)):
            frames = stop._frames(thread)
            place = f"{os.path.basename(frames[0].file)}:{frames[0].line} in {frames[0].function}" if frames else ""
            status = stop.status(thread)
            if groups and groups[-1][:2] == (status, place) and groups[-1][3] == thread - 1:
                groups[-1] = (*groups[-1][:3], thread)
            else:
                groups.append((status, place, thread, thread))
        rows = [["", "threads", "status", "line"]]
        for status, place, first, last in groups:
            mark = ">" if first <= stop.thread_number <= last else ""
            rows.append([mark, f"{first} to {last}" if last > first else str(first), status, place])
        self.say(f"block {_index(stop.block)} of {_index(stop.grid_dim)}, {_index(stop.block_dim)} threads")
        self._table(rows)

    def _info_barriers(self, argument: str) -> None:
        from cupola.cpu import _driver

        stop = self._require()
        found: dict[str, list[int]] = {}
        for thread in range(_product(stop.block_dim)):
            status = stop.status(thread)
            if status.startswith("at ") and status != "at a line":
                found.setdefault(status, []).append(thread)
        counts = {f"at barrier {n}": (arrived, expected) for n, arrived, expected in _driver.debug_barriers()}
        for status in sorted({*found, *counts}):
            threads = found.get(status, [])
            arrived, expected = counts.get(status, (len(threads), 0))
            of = f" of {expected}" if expected else ""
            who = f": {_ranges(threads)}" if threads else ""
            self.say(f"{status.removeprefix('at ')}: {arrived or len(threads)}{of} threads have arrived{who}")
        if not found and not counts:
            self.say("No thread of the block waits at a barrier.")

    def _info_kernels(self, argument: str) -> None:
        for code in self.debugger._codes_now():
            mark = ">" if self.stop is not None and self.stop._launch.code is code else " "
            files = ", ".join(sorted(os.path.basename(file) for file in code.files()))
            has = "variables" if code.is_debug else "lines" if code.has_lines else "registers only"
            self.say(f"{mark} {code.function_of_kernel()} ({has}) from {files}")
        if self.stop is not None:
            stop = self.stop
            launched = f", launched at {stop.launched[0]}:{stop.launched[1]}" if stop.launched else ""
            self.say(f"{stop.kernel}: grid {_index(stop.grid_dim)}, blocks of {_index(stop.block_dim)}{launched}")
        elif not self.debugger._codes_now():
            self.say("No kernel has been launched yet.")

    def _info_shared(self, argument: str) -> None:
        frame = self._frame()
        places = frame.code.facts.layout.places
        found = sorted((place.offset, name, place.size) for name, place in places.items() if place.space == "shared")
        for offset, name, size in found:
            self.say(f"{name}: {size or 'dynamic'} bytes at offset {offset}")
        if not found:
            self.say("The kernel has no variables in shared memory.")

    def _info_line(self, argument: str) -> None:
        frame = self._frame()
        at = frame.call.location
        self.say(f"{frame.file}:{frame.line}, PTX line {at.ptx_line}")
        text = frame.code.variant.module.text.split("\n")
        if 0 < at.ptx_line <= len(text):
            self.say(f"    {text[at.ptx_line - 1].strip()}")

    # --- where it is -------------------------------------------------------------------------------------------------

    def do_where(self, argument: str) -> None:
        """where

        The functions that the thread is in, the innermost first, and the line of Python that launched the kernel."""
        stop = self._require()
        frames = stop._frames()
        if not frames:
            self.say(f"the thread has {stop.status()}")
        for number, frame in enumerate(frames):
            mark = ">" if number == self.frame else " "
            text = line_of(frame.code, frame.file, frame.line)
            self.say(
                f"{mark} #{number} {frame.function} at {frame.file}:{frame.line}" + (f"    {text}" if text else "")
            )
        if stop.launched:
            file, line = stop.launched
            self.say(f"  launched at {file}:{line}    {python_line(file, line)}".rstrip())

    def _move(self, by: int) -> None:
        frames = self._require()._frames()
        if not 0 <= self.frame + by < len(frames):
            raise _Usage("that is the innermost function" if by < 0 else "that is the kernel")
        self.frame += by
        self.listed = 0
        self.show_place()

    def do_up(self, argument: str) -> None:
        """up

        Look at the function that has called this one."""
        self._move(1)

    def do_down(self, argument: str) -> None:
        """down

        Look at the function that this one has called."""
        self._move(-1)

    def do_thread(self, argument: str) -> None:
        """thread [N | x,y,z]

        Look at another thread of the block; without a number, say which one this is."""
        stop = self._require()
        if argument:
            numbers = _numbers(argument)
            stop.select(numbers[0] if len(numbers) == 1 else numbers)
            self.frame = self.listed = 0
        self.say(f"thread {stop.thread_number}, {stop.status()}")
        self.show_place()

    def do_list(self, argument: str) -> None:
        """list [LINE | FUNCTION | .]

        Lines of the source: around this one, then those behind; or around LINE, or a function."""
        frame = self._frame()
        lines = lines_of(frame.code, frame.file)
        if not lines:
            raise _Usage(f"the text of {frame.file} is not known")
        first = self.listed + 1
        if argument.isdigit():
            first = max(1, int(argument) - _ROWS // 2)
        elif argument not in ("", "."):
            found = frame.code.at_function(argument)
            if not found:
                raise _Usage(f"there is no function {argument!r} in this kernel")
            first = max(1, frame.code.line_of(found[0].instruction.location) - _ROWS // 2)
        elif not self.listed or argument == ".":
            first = max(1, frame.line - _ROWS // 2)
        last = min(len(lines), first + _ROWS - 1)
        if first > len(lines):
            raise _Usage("that is the end of the file")
        stops = (
            {line.instruction.location.line for line in frame.code.lines.values() if line.begins}
            if frame.code.has_lines
            else set()
        )
        marked = {int(p.rpartition(" in ")[0].rpartition(":")[2]) for b in self.debugger.breakpoints for p in b.places}
        for number in range(first, last + 1):
            arrow = "->" if number == frame.line else "  "
            point = "B" if number in marked else "." if number in stops else " "
            self.say(f"{number:4d} {point}{arrow} {lines[number - 1]}".rstrip())
        self.listed = last

    # --- help --------------------------------------------------------------------------------------------------------

    def do_help(self, argument: str) -> None:
        """help [COMMAND]

        What a command does."""
        if argument:
            word = ALIASES.get(argument, argument)
            command = getattr(self, f"do_{word}", None)
            if command is None:
                raise _Usage(f"{argument!r} is no command: try help")
            self.say(_dedented(command.__doc__ or ""))
            short = sorted(alias for alias, name in ALIASES.items() if name == word)
            if short:
                self.say(f"Also: {', '.join(short)}")
            return
        for title, names in GROUPS.items():
            shown = []
            for name in names:
                brief = min((alias for alias, full in ALIASES.items() if full == name), key=len, default="")
                shown.append(f"{name} ({brief})" if brief else name)
            self.say(f"{title + ':':18} {', '.join(shown)}")
        self.say("help COMMAND tells more. An empty line repeats the last command; a variable's name prints it.")

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        if not rows:
            self.say("There are none.")
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for number, row in enumerate(rows):
            if number == _MOST_ROWS:
                self.say(_MORE)
                return
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self.say("  ".join(cells).rstrip())


_INFOS: dict[str, Callable[[Terminal, str], None]] = {
    "breakpoints": Terminal._info_breakpoints,
    "locals": Terminal._info_locals,
    "args": Terminal.do_args,
    "registers": Terminal._info_registers,
    "threads": Terminal._info_threads,
    "barriers": Terminal._info_barriers,
    "kernels": Terminal._info_kernels,
    "shared": Terminal._info_shared,
    "line": Terminal._info_line,
}


def watched(seen: Seen) -> str:
    """What a watch has seen, in a line."""
    place = f"{os.path.basename(seen.file)}:{seen.line}"
    return f"{place} block {_index(seen.block)} thread {_index(seen.thread)}: {seen.text}"


def _index(index: Sequence[int]) -> str:
    """``(3, 0, 0)`` for a reader."""
    return f"({', '.join(map(str, index))})"


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.strip("()").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdigit() for part in parts):
        raise _Usage(f"{text!r} is neither a number nor x,y,z")
    return tuple(int(part) for part in parts)


def _places(each: Breakpoint, any_code: bool) -> str:
    if each.places:
        return ": " + ", ".join(each.places)
    return " (no kernel that was launched so far has it)" if any_code else " (pending, until a kernel is launched)"


def _format(argument: str) -> tuple[str, str]:
    match = re.match(r"/(\w+)\s*(.*)", argument, re.DOTALL)
    if match is None:
        return "", argument
    if match[1] not in ("x", "b", "o", "d"):
        raise _Usage(f"/{match[1]} is no format: /x, /b, /o and /d are")
    return match[1], match[2]


def _parts(text: str) -> list[str]:
    """What commas separate outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _ranges(numbers: Sequence[int]) -> str:
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{a} to {b}" if b > a else str(a) for a, b in found)


def _product(extents: Sequence[int]) -> int:
    x, y, z = extents
    return x * y * z


def _dedented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))
