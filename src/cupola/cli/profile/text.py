"""A profile as text and as JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

from cupola._counted import counted
from cupola.cli.output import rows

from . import roofline
from .advice import Finding, findings
from .model import Access, Counts, Kernel
from .occupancy import Occupancy, occupancy

_SHOWN_CLASSES = 6
_WIDTH = 110


def of_kernel(kernel: Kernel, model: dict[str, Any]) -> Occupancy:
    """The occupancy of a kernel on the modeled GPU."""
    shared = kernel.static_shared + kernel.dynamic_shared
    return occupancy(model, threads=kernel.threads_of_block, registers=kernel.registers, shared=shared)


def report(kernels: Sequence[Kernel], model: dict[str, Any], *, lines: bool = False) -> str:
    """All kernels, with each of their ``lines`` if that is wanted, and the lines that matter most."""
    if not kernels:
        return "cupola profile: no kernel ran on the CPU device\n"
    parts = [f"{model['name']}: what kernels did. Counts are exact; nothing is said about time.", ""]
    for kernel in kernels:
        parts += [*_kernel(kernel, model), *(_lines(kernel) if lines else ()), ""]
    found = findings(kernels)
    if found:
        parts.append("The lines that matter most:")
        for number, finding in enumerate(found, 1):
            parts += _finding(number, finding)
    else:
        parts.append("No line wastes transactions.")
    return "\n".join(parts) + "\n"


def _kernel(kernel: Kernel, model: dict[str, Any]) -> list[str]:
    total = kernel.total
    shape = " x ".join("x".join(map(str, _short(extent))) for extent in (kernel.grid, kernel.block))
    times = "once" if kernel.launches == 1 else counted(kernel.launches, "time")
    said = [f"{kernel.name}, launched {times} with {shape}"]
    classes = sorted(total.classes.items(), key=lambda item: -item[1][0])
    shown = ", ".join(f"{name} {_share(runs, total.instructions)}" for name, (runs, _) in classes[:_SHOWN_CLASSES])
    said.append(_item("instructions", f"{total.instructions:,} of warps: {shown}"))
    said.append(_item("threads", f"{total.lanes:.1f} of 32 run an instruction together" + _parted(total)))
    for kind, access in sorted(total.accesses.items()):
        said += _access(kind, access)
    if total.operations and total.intensity is not None:
        side = "memory" if total.intensity < roofline.ridge(model) else "arithmetic"
        what = (
            f"{counted(total.operations, 'operation')} on {counted(total.bytes, 'byte')}, {total.intensity:.3g} a byte"
        )
        said.append(_item("intensity", f"{what}: {side} limits (the ridge is at {roofline.ridge(model):.3g})"))
    held, warps = of_kernel(kernel, model), -(-kernel.threads_of_block // 32)
    blocks = f"{counted(held.blocks, 'block')} of {counted(warps, 'warp')} on a multiprocessor"
    said.append(_item("occupancy", f"{held.share:.0%}: {blocks}, limited by {' and '.join(held.limited_by)}"))
    return said


def _lines(kernel: Kernel) -> list[str]:
    cells = [["", "line", "instructions", "threads", "sectors", "needed", "conflicts", "one address", ""]]
    for place, counts in sorted(kernel.lines.items()):
        accesses = counts.accesses.values()
        sectors, needed = sum(a.sectors for a in accesses), sum(a.least_sectors for a in accesses)
        conflicts = sum(a.wavefronts - a.least_wavefronts for a in accesses)
        atomic = counts.accesses.get("atomic")
        requests = atomic.global_requests + atomic.shared_requests if atomic else 0
        cells.append(
            [
                "",
                str(place[1] or "-"),
                f"{counts.instructions:,}",
                f"{counts.lanes:.1f}",
                f"{sectors:,}" if sectors else "",
                _share(needed, sectors) if sectors else "",
                f"{conflicts:,}" if conflicts else "",
                f"{atomic.same / requests:.1f}" if atomic and requests else "",
                kernel.texts[place],
            ]
        )
    return [row.rstrip() for row in rows(cells)]


def _access(kind: str, access: Access) -> list[str]:
    found = []
    if access.global_requests:
        used = _share(access.least_sectors, access.sectors)
        found.append(
            f"{counted(access.global_requests, 'request')} of global memory, {counted(access.sectors, 'sector')}, "
            f"{used} of them needed"
        )
    if access.shared_requests:
        found.append(
            f"{counted(access.shared_requests, 'request')} of shared memory, "
            f"{counted(access.wavefronts - access.least_wavefronts, 'bank conflict')}"
        )
    if kind == "atomic" and found:
        requests = access.global_requests + access.shared_requests
        found.append(f"{access.same / requests:.1f} threads of a warp at one address")
    names = {"load": "loads", "store": "stores", "atomic": "atomics"}
    return [_item(names[kind], "; ".join(found))] if found else []


def _parted(counts: Counts) -> str:
    if not counts.branches:
        return ""
    return f"; at {_share(counts.branches - counts.parted, counts.branches)} of branches warps stay together"


def _finding(number: int, finding: Finding) -> list[str]:
    said = [f"{number}. {finding.source}:{finding.line} in {finding.kernel}", "   " + finding.text[:_WIDTH]]
    for text in (f"{finding.said}: {finding.lost:,} too many.", f"To do: {finding.advice}."):
        said += textwrap.wrap(text, _WIDTH, initial_indent="   ", subsequent_indent="   ")
    return said


def _item(name: str, text: str) -> str:
    return f"  {name:13} {text}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _short(extent: Sequence[int]) -> list[int]:
    found = list(extent)
    while len(found) > 1 and found[-1] == 1:
        found.pop()
    return found


def as_json(kernels: Sequence[Kernel], model: dict[str, Any]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "model": model,
        "roofline": {
            "bytes_per_second": roofline.bandwidth(model) if model else None,
            "operations_per_second": roofline.peak(model) if model else None,
            "double_operations_per_second": roofline.peak(model, double=True) if model else None,
        },
        "kernels": [_kernel_as_json(kernel, model) for kernel in kernels],
        "findings": [dataclasses.asdict(finding) for finding in findings(kernels)],
    }


def _kernel_as_json(kernel: Kernel, model: dict[str, Any]) -> dict[str, Any]:
    facts = ("name", "launches", "grid", "block", "cluster", "dynamic_shared")
    limits = ("registers", "static_shared", "local_bytes")
    return {
        **{name: getattr(kernel, name) for name in (*facts, *limits)},
        "occupancy": dataclasses.asdict(of_kernel(kernel, model)),
        "total": _counts_as_json(kernel.total),
        "lines": [
            {"source": source, "line": line, "text": kernel.texts[source, line], **_counts_as_json(counts)}
            for (source, line), counts in sorted(kernel.lines.items())
        ],
    }


def _counts_as_json(counts: Counts) -> dict[str, Any]:
    return {
        "instructions": counts.instructions,
        "thread_instructions": counts.threads,
        "classes": {name: {"warps": runs, "threads": threads} for name, (runs, threads) in counts.classes.items()},
        "operations": counts.operations,
        "global_bytes_moved": counts.bytes,
        "branches": counts.branches,
        "branches_parted": counts.parted,
        "accesses": {kind: dataclasses.asdict(access) for kind, access in counts.accesses.items()},
    }
