"""Coverage as pages: one for each source, and a list of them. Each is one file that needs nothing else.

The picture beside a line is a warp: of 32 threads, how many ran the line together on average. The bar at a branch shows
how its threads parted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from cupola._counted import counted

from .model import Branch, File, Line
from .text import percent, way

_STYLE = """
:root { color-scheme: light dark; --ran: #2f9e5b; --not: #d6454f; --some: #d99a1c; --dim: #8885; --back: #8881; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; }
h1 { font-size: 1.3em; } a { color: inherit; }
table { border-collapse: collapse; }
td, th { padding: 0 .6em; text-align: right; vertical-align: top; white-space: pre; }
th { font-weight: 600; border-bottom: 1px solid var(--dim); } td.text, th.text { text-align: left; }
.code td { font: 12px/1.6 ui-monospace, monospace; } .code td.text { white-space: pre-wrap; tab-size: 4; width: 100%; }
.code td.number { color: #888; border-left: 4px solid transparent; }
tr.ran td.number { border-color: var(--ran); } tr.not td.number { border-color: var(--not); }
tr.not td.text { background: color-mix(in srgb, var(--not) 14%, transparent); }
tr.some td.number { border-color: var(--some); }
tr.some td.text { background: color-mix(in srgb, var(--some) 12%, transparent); }
.note { display: block; color: #888; font: 12px/1.5 system-ui, sans-serif; } .note svg { vertical-align: -1px; }
.bad { color: var(--not); } summary { cursor: pointer; } details { white-space: pre; }
.meter { fill: var(--dim); } .ran-fill { fill: var(--ran); } .way0 { fill: #4c78c8; } .way1 { fill: #d99a1c; }
"""


def _page(title: str, body: Sequence[str]) -> str:
    head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
    return "\n".join([head, f"<style>{_STYLE}</style></head><body>", *body, "</body></html>", ""])


def page_name(number: int) -> str:
    """The file of a source's page."""
    return f"source-{number}.html"


def index(files: Sequence[File], title: str) -> str:
    """The list of the sources."""
    rows = []
    for number, file in enumerate(files):
        ways, taken = file.ways
        ran = len(file.lines) - len(file.missing)
        rows.append(
            f'<tr><td class="text"><a href="{page_name(number)}">{escape(file.name)}</a></td><td>{len(file.lines)}</td>'
            f"<td>{ran}</td><td>{percent(ran, len(file.lines))}</td><td>{_meter(ran, len(file.lines), 100)}</td>"
            f"<td>{ways}</td><td>{taken}</td><td>{percent(taken, ways)}</td></tr>"
        )
    head = (
        '<tr><th class="text">source</th><th>lines</th><th>ran</th><th></th><th></th><th>ways of branches</th>'
        "<th>taken</th><th></th></tr>"
    )
    return _page(title, [f"<h1>{escape(title)}</h1>", "<table>", head, *rows, "</table>"])


def source(file: File, title: str) -> str:
    """The page of a source."""
    head = (
        '<tr><th>line</th><th>threads</th><th>warps</th><th>share</th><th>warp</th><th class="text">'
        f"{escape(file.name)}</th></tr>"
    )
    rows = [_row(file, number, text) for number, text in enumerate(file.text, 1)]
    legend = (
        "<p>threads: how often threads ran the line. warps: how often warps did. share: how many of the threads ever "
        "ran it. warp: how many of 32 threads ran it together, on average.</p>"
    )
    return _page(
        f"{file.name} - {title}",
        [
            f'<h1><a href="index.html">{escape(title)}</a>: {escape(file.name)}</h1>',
            legend,
            '<table class="code">',
            head,
        ]
        + rows
        + ["</table>"],
    )


def _row(file: File, number: int, text: str) -> str:
    line = file.lines.get(number)
    place = file.place(number)
    label = str(file.shown(number))
    if file.pieces and place is not None:
        label = f'<span title="{escape(f"{place[0]}, line {number} of the source")}">{label}</span>'
    if line is None:
        cells = f'<td class="number">{label}</td><td></td><td></td><td></td><td></td>'
        return f'<tr id="{number}">{cells}<td class="text">{escape(text)}</td></tr>'
    total = line.total
    cells = f'<td class="number">{label}</td><td>{total.threads}</td><td>{total.runs}</td>'
    cells += f"<td>{percent(total.distinct, total.launched)}</td><td>{_warp(total.lanes) if total.runs else ''}</td>"
    notes = "".join(_notes(file, number, line))
    return f'<tr id="{number}" class="{_kind(line)}">{cells}<td class="text">{escape(text)}{notes}</td></tr>'


def _kind(line: Line) -> str:
    if not line.ran:
        return "not"
    partly = line.idle or any(branch.runs and not all(taken for _, taken in branch.ways) for branch in line.branches)
    return "some" if partly else "ran"


def _notes(file: File, number: int, line: Line) -> list[str]:
    found = []
    several = len(line.functions) > 1
    for branch in line.branches:
        if branch.runs:
            found.append(f'<span class="note">{_branch(file, number, branch, several)}</span>')
    for barrier in line.barriers:
        how = f"{barrier.apart} of {counted(barrier.runs, 'warp')} came without some of their threads"
        if barrier.runs:
            found.append(f'<span class="note">barrier: {how if barrier.apart else "all warps came whole"}</span>')
    if several:
        rows = []
        for name, count in sorted(line.functions.items()):
            mark = ' class="bad"' if not count.threads else ""
            rows.append(f"<span{mark}>{count.threads:>12}  {escape(name)}</span>")
        heading = f"{len(line.functions)} functions" + (f", not in {len(line.idle)}" if line.idle else "")
        found.append(f'<details class="note"><summary>{heading}</summary>' + "\n".join(rows) + "</details>")
    return found


def _branch(file: File, number: int, branch: Branch, several: bool) -> str:
    total = sum(taken for _, taken in branch.ways) or 1
    where = f" in {escape(branch.function)}" if several else ""
    bar, at = [], 0.0
    for place, (_, taken) in enumerate(branch.ways):
        width = 64 * taken / total
        bar.append(f'<rect class="way{place % 2}" x="{at:.1f}" width="{width:.1f}" height="9"/>')
        at += width
    ways = []
    for to, taken in branch.ways:
        goes = way(file, number, to)
        ways.append(f"{goes}: {taken}" if taken else f'<span class="bad">{goes}: never</span>')
    parted = f"; {branch.parted} of {counted(branch.runs, 'warp')} parted" if branch.parted else ""
    return f'<svg width="64" height="9">{"".join(bar)}</svg> branch{where}: {", ".join(ways)}{parted}'


def _warp(lanes: float) -> str:
    """32 cells, of which as many are filled as threads ran."""
    whole = math.floor(lanes)
    cells = [f'<rect class="meter" width="95" height="8"/><rect class="ran-fill" width="{3 * whole}" height="8"/>']
    if lanes > whole:
        cells.append(f'<rect class="ran-fill" x="{3 * whole}" width="3" height="8" opacity="{lanes - whole:.2f}"/>')
    cells.append('<path d="' + "".join(f"M{3 * i - 0.5} 0v8" for i in range(1, 32)) + '" stroke="Canvas"/>')
    return f'<svg width="95" height="8"><title>{lanes:.1f} of 32 threads</title>{"".join(cells)}</svg>'


def _meter(part: int, whole: int, width: int) -> str:
    filled = width * part / whole if whole else width
    return (
        f'<svg width="{width}" height="9"><rect class="meter" width="{width}" height="9"/>'
        f'<rect class="ran-fill" width="{filled:.1f}" height="9"/></svg>'
    )
