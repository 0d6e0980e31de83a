"""Imports go downward only: cli, core, bindings, pathfinder; nothing but bindings names the CPU device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "src" / "cupola"

# room: the rooms it may import from, besides itself
MAY_IMPORT = {
    "pathfinder": set(),
    "bindings": {"pathfinder", "cpu"},
    "cpu": {"pathfinder"},
    "core": {"bindings", "pathfinder", "typing", "graph"},
    "graph": {"core", "bindings", "typing"},
    "utils": {"core"},
    "typing": set(),
}
IMPORT = re.compile(
    r"^\s*(?:from\s+(?P<from>\.*[\w.]*)\s+c?import\s+(?P<names>[^#\n]+)|c?import\s+(?P<import>[\w., ]+))", re.MULTILINE
)


def imported_rooms(path: Path, room: str) -> set[str]:
    """The rooms of cupola that a file imports from."""
    package = ("cupola", *path.relative_to(ROOT).parts[:-1])
    rooms = set()
    for match in IMPORT.finditer(path.read_text()):
        if match["import"]:
            names = [name.split()[0] for name in match["import"].split(",") if name.strip()]
        else:
            source = match["from"]
            dots = len(source) - len(source.lstrip("."))
            base = ".".join([*package[: len(package) - dots + 1], source.lstrip(".")]) if dots else source
            base = base.rstrip(".")
            listed = re.findall(r"\w+", match["names"])
            names = [f"{base}.{name}" for name in listed] if base == "cupola" else [base]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cupola" and len(parts) > 1:
                rooms.add(parts[1])
    return rooms - {room}


def files() -> list[Path]:
    found = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".pyx", ".pxd"}]
    return [p for p in found if p.relative_to(ROOT).parts[0].removesuffix(".py") in MAY_IMPORT]


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_downward(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    upward = imported_rooms(path, room) - MAY_IMPORT[room]
    assert not upward, f"{room} must not import from {sorted(upward)}"


def test_the_rule_can_fail(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "pathfinder").mkdir()
    bad = tmp_path / "pathfinder" / "bad.py"
    bad.write_text("from ..core import _device\nimport cupola.cpu\nfrom cupola import bindings\n")
    assert imported_rooms(bad, "pathfinder") == {"core", "cpu", "bindings"}
