"""The lines where a kernel loses most, and what to do about it.

What is lost is counted in transactions that would not be needed: sectors of memory, reads of the banks of shared
memory, atomic operations that wait for each other, and instructions that a full warp would have saved. It is no time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cupola._counted import counted

from .model import WARP, Counts, Kernel

MOST = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """A line that loses something.

    Attributes
    ----------
    kernel, source, line
        Where.
    text
        The line.
    kind
        ``"sectors"``, ``"banks"``, ``"atomics"`` or ``"divergence"``.
    lost
        Transactions that would not be needed.
    said, advice
        What happens there, and what to do.
    """

    kernel: str
    source: str
    line: int
    text: str
    kind: str
    lost: int
    said: str
    advice: str


def findings(kernels: Iterable[Kernel]) -> list[Finding]:
    """The `MOST` lines that lose most, of all kernels."""
    found = [
        Finding(kernel.name, source, line, kernel.texts[source, line], kind, lost, said, advice)
        for kernel in kernels
        for (source, line), counts in kernel.lines.items()
        if line
        for kind, lost, said, advice in _of_line(counts)
    ]
    found.sort(key=lambda finding: -finding.lost)
    return found[:MOST]


def _of_line(counts: Counts) -> Iterator[tuple[str, int, str, str]]:
    for kind, access in counts.accesses.items():
        requests, lost = access.global_requests, access.sectors - access.least_sectors
        if lost > 0:
            share = access.least_sectors / access.sectors
            yield (
                "sectors",
                lost,
                f"each {kind} of a warp moves {access.sectors / requests:.1f} sectors of global memory where "
                f"{access.least_sectors / requests:.1f} would do ({share:.0%} used)",
                "let neighbouring threads access neighbouring elements that begin at a multiple of 32 bytes: another "
                "order of the loops or of the array, or a detour through shared memory",
            )
        requests, lost = access.shared_requests, access.wavefronts - access.least_wavefronts
        if lost > 0:
            yield (
                "banks",
                lost,
                f"each {kind} of a warp takes {access.wavefronts / requests:.1f} turns at the banks of shared memory "
                f"where {access.least_wavefronts / requests:.1f} would do",
                "let the threads of a warp access different banks: pad the rows of the array by one element, or "
                "swizzle the index",
            )
        requests = access.global_requests + access.shared_requests
        if kind == "atomic" and access.same > requests:
            yield (
                "atomics",
                access.same - requests,
                f"{access.same / requests:.1f} threads of each warp want the same address, one after the other",
                "combine the values of a warp first (__reduce_add_sync, cooperative groups), or count in shared memory "
                "and add each block's result once",
            )
    lost = counts.instructions - -(-counts.threads // WARP)
    if lost > 0:
        parted = f"; warps parted here {counts.parted:,} of {counted(counts.branches, 'time')}" if counts.parted else ""
        yield (
            "divergence",
            lost,
            f"{counts.lanes:.1f} of 32 threads run here together{parted}",
            "let the threads of a warp take the same way: sort the work, give a warp one kind of it, or make blocks a "
            "multiple of 32 threads",
        )
