"""Coverage in the formats of other tools: lcov's tracefiles, and Cobertura's XML."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from .model import Line, relative

Placed = Iterable[tuple[str, dict[int, Line]]]


def lcov(placed: Placed) -> str:
    """A tracefile: counts are those of threads.

    Files have the names that coverage.py gives them, so it may be put behind that of ``coverage lcov``.
    """
    rows = ["TN:"]
    for path, lines in placed:
        rows.append(f"SF:{relative(path)}")
        functions: dict[str, tuple[int, int]] = {}
        for number, line in sorted(lines.items()):
            for name, count in line.functions.items():
                functions.setdefault(name, (number, count.threads))
        rows += [f"FN:{number},{name}" for name, (number, _) in functions.items()]
        rows += [f"FNDA:{threads},{name}" for name, (_, threads) in functions.items()]
        rows += [f"FNF:{len(functions)}", f"FNH:{sum(threads > 0 for _, threads in functions.values())}"]
        ways = taken = 0
        for number, line in sorted(lines.items()):
            for block, branch in enumerate(line.branches):
                for way, (_, threads) in enumerate(branch.ways):
                    rows.append(f"BRDA:{number},{block},{way},{threads if branch.runs else '-'}")
                    ways, taken = ways + 1, taken + (threads > 0)
        rows += [f"BRF:{ways}", f"BRH:{taken}"]
        rows += [f"DA:{number},{line.total.threads}" for number, line in sorted(lines.items())]
        rows += [f"LF:{len(lines)}", f"LH:{sum(line.ran for line in lines.values())}", "end_of_record"]
    return "\n".join(rows) + "\n"


def cobertura(placed: Placed, root: str) -> str:
    """Cobertura's XML (coverage-04.dtd), which most services of continuous integration read."""
    files = list(placed)
    lines = [line for _, own in files for line in own.values()]
    ways = [count for line in lines for branch in line.branches for _, count in branch.ways]
    body = []
    for path, own in files:
        name = os.path.relpath(path, root)
        rate = _rate(sum(line.ran for line in own.values()), len(own))
        counts = [count for line in own.values() for branch in line.branches for _, count in branch.ways]
        branch_rate = _rate(sum(count > 0 for count in counts), len(counts))
        body.append(
            f'    <class name={quoteattr(os.path.basename(name))} filename={quoteattr(name)} line-rate="{rate}" '
            f'branch-rate="{branch_rate}" complexity="0"><methods/><lines>'
        )
        for number, line in sorted(own.items()):
            counts = [count for branch in line.branches for _, count in branch.ways]
            condition = ""
            if counts:
                done = sum(count > 0 for count in counts)
                share = 100 * done // len(counts)
                condition = f' branch="true" condition-coverage="{share}% ({done}/{len(counts)})"'
            body.append(f'      <line number="{number}" hits="{line.total.threads}"{condition}/>')
        body.append("    </lines></class>")
    ran, taken = sum(line.ran for line in lines), sum(count > 0 for count in ways)
    head = (
        f'<coverage version="cupola" timestamp="{int(time.time())}" lines-valid="{len(lines)}" lines-covered="{ran}" '
        f'line-rate="{_rate(ran, len(lines))}" branches-valid="{len(ways)}" branches-covered="{taken}" '
        f'branch-rate="{_rate(taken, len(ways))}" complexity="0">'
    )
    return "\n".join(
        [
            '<?xml version="1.0" ?>',
            '<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">',
            head,
            f"  <sources><source>{root}</source></sources>",
            f'  <packages><package name="CUDA C++" line-rate="{_rate(ran, len(lines))}" '
            f'branch-rate="{_rate(taken, len(ways))}" complexity="0"><classes>',
            *body,
            "  </classes></package></packages>",
            "</coverage>",
            "",
        ]
    )


def _rate(part: int, whole: int) -> str:
    return f"{part / whole if whole else 1:.4g}"
