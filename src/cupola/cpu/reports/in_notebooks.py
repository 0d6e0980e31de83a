"""Findings in notebooks: a table with a row for each."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from cupola.cpu.reports.names import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.cpu.reports.findings import Finding, Place

_LEFT = "style='text-align:left;vertical-align:top'"
_HEAD = "".join(f"<th {_LEFT}>{name}</th>" for name in ("check", "kernel", "what is wrong, and where", "times"))


class Findings(list["Finding"]):
    """A list of findings, which notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_of(self)


def html_of(findings: Iterable[Finding]) -> str:
    """The table; a line if there is nothing to be in it."""
    rows = "".join(map(_row, findings))
    return f"<table><tr>{_HEAD}</tr>{rows}</table>" if rows else "<p>nothing was found</p>"


def _row(finding: Finding) -> str:
    advice = [f"<i>{escape(finding.advice)}</i>"] if finding.advice else []
    launched = [f"launched at {escape(finding.launched)}"] if finding.launched else []
    what = "<br>".join(
        [escape(finding.summary), *map(_place, finding.places), *map(escape, finding.details), *launched, *advice]
    )
    cells = (escape(finding.kind), f"<code>{escape(readable(finding.kernel))}</code>", what, f"{finding.count:,}")
    return "<tr>" + "".join(f"<td {_LEFT}>{cell}</td>" for cell in cells) + "</tr>"


def _place(place: Place) -> str:
    first, *_ = str(place).split("\n", 1)
    where = f" at {place.file}:{place.line}" if place.file is not None else ""
    text = f"<br><code>{escape(place.text)}</code>" if place.text else ""
    return f"{escape(first + where)}{text}"
