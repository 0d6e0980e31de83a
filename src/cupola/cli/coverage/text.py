"""Coverage as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from cupola._counted import counted

from .model import File


def ranges(file: File, numbers: Sequence[int]) -> str:
    """``lines 3-5, 9``, where those in between that have no code do not matter."""
    found: list[list[int]] = []
    order = {number: place for place, number in enumerate(sorted(file.lines))}
    for number in numbers:
        if found and order[number] == order[found[-1][1]] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [(file.shown(first), file.shown(last)) for first, last in found]
    several = len(numbers) > 1
    return f"line{'s' * several} " + ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in shown)


def percent(part: int, whole: int) -> str:
    """A share; all is 100 %, and nothing else is."""
    if not whole:
        return "-"
    share = 100 * part / whole
    return f"{min(99, round(share)) if part < whole else 100}%"


def way(file: File, line: int, to: int) -> str:
    """Where a way of a branch on a line goes."""
    if not to:
        return "to the end"
    return "to the rest of the line" if to == line else f"to line {file.shown(to)}"


def report(files: Sequence[File]) -> str:
    """All files, and for each what did not run."""
    if not files:
        return "CUDA C++ coverage: no kernels with lines of the program's own sources were loaded on the CPU device\n"
    width = max(len("total"), *(len(file.name) for file in files))
    rows = [f"{'CUDA C++ coverage':{width}}  lines    ran         ways  taken      "]
    total = [0, 0, 0, 0]
    notes: list[str] = []
    for file in files:
        ways, taken = file.ways
        numbers = [len(file.lines), len(file.lines) - len(file.missing), ways, taken]
        total = [a + b for a, b in zip(total, numbers, strict=True)]
        rows.append(_row(file.name, numbers, width))
        notes += [f"{file.name}: {note}" for note in _notes(file)]
    if len(files) > 1:
        rows.append(_row("total", total, width))
    return "\n".join([*(row.rstrip() for row in rows), *([""] if notes else []), *notes]) + "\n"


def _row(name: str, numbers: Sequence[int], width: int) -> str:
    lines, ran, ways, taken = numbers
    return (
        f"{name:{width}}  {lines:5}  {ran:5}  {percent(ran, lines):>4}  {ways:7}  {taken:5}  {percent(taken, ways):>4}"
    )


def _notes(file: File) -> list[str]:
    found = []
    lines = sorted(file.lines.items())
    if missing := file.missing:
        found.append(f"no thread ran {ranges(file, missing)}")
    ran = {name for _, line in lines for name, count in line.functions.items() if count.threads}
    idle: dict[str, list[int]] = {}
    for number, line in lines:
        for name in line.functions if not line.ran else line.idle:
            idle.setdefault(name, []).append(number)
    for name, numbers in idle.items():
        if name not in ran:
            found.append(f"{name} never ran")
        elif several := [number for number in numbers if file.lines[number].ran]:
            found.append(f"{name} never ran {ranges(file, several)}")
    for number, line in lines:
        several_functions = len({branch.function for branch in line.branches}) > 1
        for branch in line.branches:
            never = sorted({to for to, taken in branch.ways if not taken})
            if branch.runs and never:
                where = f" of {branch.function}" if several_functions else ""
                goes = " or ".join(way(file, number, to) for to in never)
                found.append(f"line {file.shown(number)}{where}: no thread went {goes}")
        for barrier in line.barriers:
            if barrier.apart:
                came = f"{barrier.apart} of {counted(barrier.runs, 'warp')} came to the barrier"
                found.append(f"line {file.shown(number)}: {came} without some of their threads")
    whole = [n for n, line in lines if line.ran and line.barriers and not any(b.apart for b in line.barriers)]
    if whole:
        found.append(f"barriers never reached divergent: {ranges(file, whole)}")
    return found
