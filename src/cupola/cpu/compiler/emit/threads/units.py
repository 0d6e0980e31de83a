"""The loop over the units of a block, or of neighboring blocks, in kernels in which nobody waits (engine/abi.h).

What is the same for all units is computed in front of the loop, what is the same for all blocks in front of the inner
one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cupola.cpu.compiler.objects import abi

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_NAME = re.compile(r"%[\w.]+")
_WHOLE_CALL, _UNIT, _BLOCK = range(3)


def begin_loops(body: Body) -> list[str]:
    """What follows the stack slots: the beginning of the loops, and the values that hold for a whole unit."""
    lines: tuple[list[str], ...] = ([], [], [])
    depths = {"%warp": _UNIT, "%unit.number": _UNIT, "%block.x": _BLOCK}
    for line in body.entry:
        depth = max((depths.get(name, _WHOLE_CALL) for name in _NAME.findall(line)), default=_WHOLE_CALL)
        name, assigns, _ = line.partition(" = ")
        if assigns:
            depths[name.strip()] = depth
        lines[depth].append(line)
    rows = body.rows_of_blocks
    text = [
        f"  %units.end.at = getelementptr i8, ptr %context, i64 {abi.CONTEXT['units_end']}",
        "  %units.end = load ptr, ptr %units.end.at, !invariant.load !0",
        *lines[_WHOLE_CALL],
    ]
    if rows:
        text += [
            f"  %row.end.at = getelementptr i8, ptr %context, i64 {abi.CONTEXT['row_end']}",
            "  %row.end = load i32, ptr %row.end.at, !invariant.load !0",
            f"  %x.at = getelementptr i8, ptr %context, i64 {abi.CONTEXT['ctaid.x']}",
            "  %row.begin = load i32, ptr %x.at",
        ]
    last = "unit.done" if rows else "done"
    text += ["  br label %unit", "unit:", f"  %warp = phi ptr [ %first.warp, %entry ], [ %next.warp, %{last} ]"]
    if body.counts_units:
        text.append(f"  %unit.number = phi i32 [ 0, %entry ], [ %next.number, %{last} ]")
    text += lines[_UNIT]
    if rows:
        text += [
            "  br label %block",
            "block:",
            "  %block.x = phi i32 [ %row.begin, %unit ], [ %next.x, %done ]",
            "  store i32 %block.x, ptr %x.at",  # for reports of faults
            *lines[_BLOCK],
        ]
    return text


def end_loops(body: Body) -> None:
    """At the label ``done``: go on with the next unit, if there is one."""
    builder = body.builder
    if body.rows_of_blocks:
        builder.line("%next.x = add i32 %block.x, 1")
        builder.line("%is.row.done = icmp eq i32 %next.x, %row.end")
        builder.line("br i1 %is.row.done, label %unit.done, label %block")
        builder.label("unit.done")
    if body.counts_units:
        builder.line("%next.number = add nuw nsw i32 %unit.number, 1")
    builder.line(f"%next.warp = getelementptr i8, ptr %warp, i64 {abi.WARP_BYTES}")
    builder.line("%is.last = icmp eq ptr %next.warp, %units.end")
    builder.line("br i1 %is.last, label %all.done, label %unit")
    builder.label("all.done")
