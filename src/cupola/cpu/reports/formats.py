"""Findings in files: JSON with all that is known, and SARIF 2.1.0, which code hosts and editors show."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from cupola.cpu.reports.findings import Finding, Place
from cupola.cpu.reports.kinds import CHECKS


def write(path: str, findings: Sequence[Finding]) -> None:
    """Write findings to a file: SARIF when its name ends with ``.sarif``, else JSON."""
    content = _sarif(findings) if path.endswith(".sarif") else [finding.as_dict() for finding in findings]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in CHECKS.items()]
    driver = {"name": "cupola", "informationUri": "https://github.com/cupola-project/cupola", "rules": rules}
    results = [_result(finding) for finding in findings]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    places = [place for place in finding.places if place.file is not None]
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "level": "error",
        "message": {"text": str(finding)},
        "locations": [_location(place) for place in places[:1]],
        "relatedLocations": [{"id": n, **_location(place)} for n, place in enumerate(places[1:], 1)],
        "occurrenceCount": finding.count,
        "properties": {"kernel": finding.kernel},
    }
    if finding.silenced is not None:
        result["suppressions"] = [{"kind": "external", "justification": finding.silenced}]
    return result


def _location(place: Place) -> dict[str, Any]:
    """Where a reader of the report can look: in the Python program, when the source is a string there."""
    assert place.file is not None
    file, line = place.file, place.line
    if place.python:
        file, _, number = place.python.rpartition(":")
        line = int(number)
    physical = {
        "artifactLocation": {"uri": file.replace(os.sep, "/")},
        "region": {"startLine": max(1, line)},
    }
    return {"physicalLocation": physical, "message": {"text": str(place)}}
