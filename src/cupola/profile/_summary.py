"""A timeline in words: where the time went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cupola._counted import counted
from cupola.profile._record import Record

TOP = 10
WAITS = ("Synchronize", "EventQuery", "StreamQuery")
GAP = 10_000  # ns: shorter gaps between operations are not told


def summary(records: Sequence[Record], begin: int, end: int, lost: int) -> str:
    """The text of :meth:`Timeline.summary`."""
    lines = [f"{(end - begin) / 1e6:.3f} ms, {counted(len(records), 'record')}"]
    if lost:
        lines.append(f"{lost} more found no room: record a shorter part, or raise `most`")
    total = max(end - begin, 1)
    lines += _table("kernels", (r for r in records if r.kind == "kernel"), total)
    lines += _copies([r for r in records if r.kind in ("copy", "fill")])
    lines += _devices(records, begin, end)
    lines += _table("ranges", (r for r in records if r.kind == "range"), total)
    calls = [r for r in records if r.kind == "call"]
    lines += _table("waiting of the host", (r for r in calls if any(word in r.name for word in WAITS)), total)
    lines += _table("calls", calls, total)
    failed = [r for r in records if r.status and not _is_question(r)]
    if failed:
        lines += ["", "failed:"]
        lines += [f"  {r.kind} {r.name}: error {r.status}" for r in failed[:TOP]]
    return "\n".join(lines)


def _is_question(record: Record) -> bool:
    """A call whose status is an answer: not ready, not found, no such attribute of a pointer."""
    return record.kind == "call" and (record.status == 600 or "Get" in record.name)


def _table(title: str, records: Iterable[Record], total: int) -> list[str]:
    groups: dict[str, list[int]] = defaultdict(list)
    for record in records:
        groups[record.name].append(record.end - record.begin)
    if not groups:
        return []
    lines = ["", f"{title:<40} {'times':>7} {'total ms':>10} {'mean us':>10} {'longest us':>10} {'share':>6}"]
    by_time = sorted(groups.items(), key=lambda item: -sum(item[1]))
    for name, times in by_time[:TOP]:
        spent = sum(times)
        lines.append(
            f"  {_short(name):<38} {len(times):>7} {spent / 1e6:>10.3f} {spent / len(times) / 1e3:>10.1f} "
            f"{max(times) / 1e3:>10.1f} {spent / total:>6.1%}"
        )
    if len(by_time) > TOP:
        lines.append(f"  and {len(by_time) - TOP} more")
    return lines


def _copies(records: Sequence[Record]) -> list[str]:
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[record.name].append(record)
    if not groups:
        return []
    lines = ["", f"{'copies and fills':<40} {'times':>7} {'total ms':>10} {'MB':>10} {'GB/s':>10}"]
    for name, group in sorted(groups.items(), key=lambda item: -sum(r.end - r.begin for r in item[1])):
        spent, size = sum(r.end - r.begin for r in group), sum(r.bytes for r in group)
        lines.append(
            f"  {name:<38} {len(group):>7} {spent / 1e6:>10.3f} {size / 1e6:>10.3f} {size / max(spent, 1):>10.3f}"
        )
    return lines


def _devices(records: Sequence[Record], begin: int, end: int) -> list[str]:
    lines: list[str] = []
    for device in sorted({r.device for r in records if r.device >= 0}):
        own = [r for r in records if r.device == device]
        work = sorted((r.begin, r.end) for r in own if r.kind in ("kernel", "copy", "fill", "library", "host function"))
        busy, gaps, last = 0, [], begin
        for start, stop in work:
            if start > last:
                gaps.append((start - last, last))
            busy += max(0, stop - max(start, last))
            last = max(last, stop)
        gaps.append((end - last, last))
        long = sorted((gap for gap in gaps if gap[0] >= GAP), reverse=True)
        share = busy / max(end - begin, 1)
        gap = counted(len(long), "gap")
        lines += ["", f"device {device}: busy for {busy / 1e6:.3f} ms ({share:.1%}), {gap} of 10 us or more"]
        for length, at in long[:3]:
            lines.append(f"  nothing ran for {length / 1e6:.3f} ms from {(at - begin) / 1e6:.3f} ms on")
        peak = max((r.memory for r in own), default=0)
        if peak:
            lines.append(f"  memory in use: at most {peak / 1e6:.3f} MB")
    return lines


def _short(name: str) -> str:
    return name if len(name) <= 38 else f"{name[:35]}..."
