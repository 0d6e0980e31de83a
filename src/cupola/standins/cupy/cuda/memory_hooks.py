"""Hooks of memory pools that show what happens: each call, or what lines of the program take."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from cupola.standins.cupy.cuda.memory_hook import MemoryHook

_PACKAGE = str(Path(__file__).parents[3])  # cupola, whose lines are not those of the program


class DebugPrintHook(MemoryHook):
    """Prints a line for each time that a pool gets, gives or takes back memory.

    Parameters
    ----------
    file : file, optional
        Where lines go; by default to the standard output.
    flush : bool
        Whether they go there at once.
    """

    name = "DebugPrintHook"

    def __init__(self, file: Any = None, flush: bool = True) -> None:
        self.file, self.flush = sys.stdout if file is None else file, flush

    def _print(self, hook: str, **what: Any) -> None:
        fields = [f'"hook":"{hook}"', *[f'"{name}":{value}' for name, value in what.items()]]
        self.file.write(f"{{{','.join(fields)}}}\n")
        if self.flush:
            self.file.flush()

    def alloc_postprocess(self, *, device_id: int, mem_size: int, mem_ptr: int) -> None:  # type: ignore[override]
        """Print it."""
        self._print("alloc", device_id=device_id, mem_size=mem_size, mem_ptr=mem_ptr)

    def malloc_postprocess(  # type: ignore[override]
        self, *, device_id: int, size: int, mem_size: int, mem_ptr: int, pmem_id: int
    ) -> None:
        """Print it."""
        self._print(
            "malloc", device_id=device_id, size=size, mem_size=mem_size, mem_ptr=mem_ptr, pmem_id=f'"{hex(pmem_id)}"'
        )

    def free_postprocess(  # type: ignore[override]
        self, *, device_id: int, mem_size: int, mem_ptr: int, pmem_id: int
    ) -> None:
        """Print it."""
        self._print("free", device_id=device_id, mem_size=mem_size, mem_ptr=mem_ptr, pmem_id=f'"{hex(pmem_id)}"')


class _Frame:
    """A line of the program, and what it and the lines that it has called took."""

    def __init__(self, name: str) -> None:
        self.name, self.used, self.acquired = name, 0, 0
        self.called: dict[str, _Frame] = {}

    def print(self, file: Any, depth: int = 0) -> None:
        """Print the line and those below."""
        file.write(f"{'  ' * depth}{self.name} ({_bytes(self.used)}, {_bytes(self.acquired)})\n")
        for one in self.called.values():
            one.print(file, depth + 1)


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.2f}{unit}"
        count /= 1024
    return f"{count:.2f}TB"


class LineProfileHook(MemoryHook):
    """Adds up what lines of the program take from pools, and what pools get from the device for them.

    Parameters
    ----------
    max_depth : int
        How many lines of a chain of calls are told apart, from the outermost one; 0: all.
    """

    name = "LineProfileHook"

    def __init__(self, max_depth: int = 0) -> None:
        self._depth, self._root = max_depth, _Frame("_root")

    def malloc_preprocess(self, *, device_id: int, size: int, mem_size: int) -> None:  # type: ignore[override]
        """Add it."""
        for one in self._frames():
            one.used += mem_size

    def alloc_preprocess(self, *, device_id: int, mem_size: int) -> None:  # type: ignore[override]
        """Add it."""
        for one in self._frames():
            one.acquired += mem_size

    def _frames(self) -> list[_Frame]:
        """The lines that are executed, from the outermost one."""
        lines = [one for one in traceback.extract_stack() if not one.filename.startswith(_PACKAGE)]
        found = [self._root]
        for one in lines[: self._depth] if self._depth else lines:
            name = f"{one.filename}:{one.lineno}:{one.name}"
            found.append(found[-1].called.setdefault(name, _Frame(name)))
        return found

    def print_report(self, file: Any = None) -> None:
        """Print a line of the program on each line, with the bytes used and acquired."""
        self._root.print(sys.stdout if file is None else file)
