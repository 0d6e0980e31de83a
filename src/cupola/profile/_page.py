"""A timeline as a page for the browser, complete in itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cupola.profile._chrome import details, streams
from cupola.profile._record import Record

TEMPLATE = Path(__file__).with_name("viewer.html")


def page(records: Sequence[Record]) -> str:
    """The text of an HTML file."""
    start = min((record.begin for record in records), default=0)
    threads = list(dict.fromkeys(r.place for r in records if r.device < 0))
    rows: dict[tuple[int, int], str] = {(-1, place): f"thread {place}" for place in threads}
    # Nodes of a graph are in the row of their stream, and lie within its bar.
    rows |= {key: f"device {key[0]}, stream {number}" for number, key in enumerate(streams(records), 1)}
    numbers = {key: number for number, key in enumerate(rows)}
    kinds: dict[str, int] = {}
    names: dict[str, int] = {}
    bars: list[list[Any]] = []
    for record in records:
        bars.append(
            [
                numbers[record.device, record.place],
                kinds.setdefault(record.kind, len(kinds)),
                names.setdefault(record.name, len(names)),
                record.begin - start,
                record.end - record.begin,
                details(record),
            ]
        )
    data = {"rows": list(rows.values()), "kinds": list(kinds), "names": list(names), "bars": bars}
    # "</script>" in a name must not end the script.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/null", text)
