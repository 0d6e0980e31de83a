"""The command ``info``: breakpoints, variables, registers, threads, barriers, kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from cupola._counted import counted
from cupola.cpu import _driver

from ..dwarf import Variable
from ..state import Frame
from ..values import show
from .screen import Screen
from .words import Usage, index, places, product, ranges


class Infos(Screen):
    """What there is, in lists."""

    def do_info(self, argument: str) -> None:
        """info WHAT

        breakpoints, locals, args, registers, threads, barriers, kernels, shared, line."""
        words = argument.split()
        matches = [name for name in INFOS if words and name.startswith(words[0])]
        if words and words[0] == "b":
            matches = ["breakpoints"]
        exact = [name for name in matches if name == words[0]]
        if len(exact or matches) != 1:
            raise Usage(f"info takes one of {', '.join(sorted(INFOS))}")
        INFOS[(exact or matches)[0]](self, " ".join(words[1:]))

    def _info_breakpoints(self, argument: str = "") -> None:
        stops = [each for each in self.debugger.breakpoints if each.number]
        if not stops and not self.debugger.watches:
            self.say("There are no breakpoints.")
        for each in stops:
            state = "" if each.enabled else ", disabled"
            self.say(f"{each}{state}, hit {counted(each.hits, 'time')}{places(each, bool(self.debugger._codes_now()))}")
        for watch in self.debugger.watches:
            self.say(f"watching {watch.expression} at {watch.where}: seen {counted(len(watch.values), 'time')}")

    def _info_args(self, argument: str) -> None:
        frame = self._frame()
        found = [variable for variable in frame.declared() if variable.is_parameter]
        if found:
            self._variables(frame, found)
        else:
            self._ptx_parameters(frame)

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
            raise Usage(f"there is no register {unknown} in this function")
        rows = []
        for name in names:
            value = frame.register(name)
            bits = "" if value.type.kind == "bool" else show(value, frame.read, base="x")
            rows.append([name, show(value, frame.read), bits])
        self._table(rows)

    def _info_threads(self, argument: str) -> None:
        stop = self._require()
        groups: list[tuple[str, str, int, int]] = []
        for thread in range(product(stop.block_dim)):
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
        self.say(f"block {index(stop.block)} of {index(stop.grid_dim)}, {index(stop.block_dim)} threads")
        self._table(rows)

    def _info_barriers(self, argument: str) -> None:
        stop = self._require()
        found: dict[str, list[int]] = {}
        for thread in range(product(stop.block_dim)):
            status = stop.status(thread)
            if status.startswith("at ") and status != "at a line":
                found.setdefault(status, []).append(thread)
        counts = {f"at barrier {n}": (arrived, expected) for n, arrived, expected in _driver.debug_barriers()}
        for status in sorted({*found, *counts}):
            threads = found.get(status, [])
            arrived, expected = counts.get(status, (len(threads), 0))
            of = f" of {expected}" if expected else ""
            who = f": {ranges(threads)}" if threads else ""
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
            self.say(f"{stop.kernel}: grid {index(stop.grid_dim)}, blocks of {index(stop.block_dim)}{launched}")
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


INFOS: dict[str, Callable[[Infos, str], None]] = {
    "breakpoints": Infos._info_breakpoints,
    "locals": Infos._info_locals,
    "args": Infos._info_args,
    "registers": Infos._info_registers,
    "threads": Infos._info_threads,
    "barriers": Infos._info_barriers,
    "kernels": Infos._info_kernels,
    "shared": Infos._info_shared,
    "line": Infos._info_line,
}
