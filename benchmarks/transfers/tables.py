"""Tables of what was measured, as docs/performance.md has them: python -m benchmarks.transfers.tables FILE.json ..."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.transfers.__main__ import text_of

NAMES = {"mpi": "MPI", "nccl": "NCCL"}


def short(device: str) -> str:
    """What the tables call a device."""
    return "CPU device" if "CPU device" in device else device.removeprefix("NVIDIA ")


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if seconds < 100e-6 else f"{seconds * 1e6:.0f}"


def of_transfers(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "| | | bytes | C | cupola | cupola − C | ratio |"
    yield "|---|---|---|---|---|---|---|"
    for job in found:
        ranks = f"{job['ranks']} rank{'s' * (job['ranks'] > 1)}"
        name = f"{NAMES[job['engine']]}, {ranks}, {short(job['device'])}"
        for row in job["rows"]:
            c, ours = row["c"], row["cupola"]
            yield (
                f"| {name} | {row['operation']} | {text_of(row['bytes'])} | {microseconds(c)} "
                f"| {microseconds(ours)} | {(ours - c) * 1e6:+.1f} | {ours / c:.2f} |"
            )


def of_scaling(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| ranks | strong: ms for a step | speed-up | weak: ms for a step | efficiency |"
    yield "|---|---|---|---|---|"
    for row in rows:
        speed, share = rows[0]["strong"] / row["strong"] * rows[0]["ranks"], rows[0]["weak"] / row["weak"]
        strong, weak = row["strong"] * 1e3, row["weak"] * 1e3
        yield f"| {row['ranks']} | {strong:.2f} | {speed:.2f} | {weak:.2f} | {share:.0%} |"


def table(found: list[dict[str, Any]]) -> str:
    """The table of what ``--json`` has left."""
    return "\n".join((of_transfers if "rows" in found[0] else of_scaling)(found))


if __name__ == "__main__":
    print("\n\n".join(table(json.loads(Path(name).read_text())) for name in sys.argv[1:]))
