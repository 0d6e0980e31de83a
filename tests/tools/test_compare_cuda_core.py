"""The tables of the comparison with cuda.core can be read, and what counts as the same is as it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
TABLES = sorted((TOOLS / "cuda_core_snippets").glob("*.txt"))


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_cuda_core", TOOLS / "compare_cuda_core.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_tables(tool, path):
    setup, rows = tool.read_table(path)
    compile(setup, str(path), "exec")
    assert len(rows) > 10
    lines = [row.source for row in rows]
    assert len(lines) == len(set(lines))
    assert all(path.read_text().splitlines()[row.line - 1] == row.source.splitlines()[0] for row in rows if not row.why)
    assert all(row.why for row in rows if row.why is not None)


def test_the_documentation_says_how_many_there_are(tool):
    count = sum(len(tool.read_table(path)[1]) for path in TABLES)
    assert f"some {round(count, -2):,} snippets" in (TOOLS.parent / "docs" / "migrate.md").read_text()


def test_rows(tool, tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("x = 1\n# rows\nx + 1\n# a comment\nif x:\n    y = 2\n1 / 0  # differs: why not\n")
    setup, rows = tool.read_table(path)
    assert setup == "x = 1\n"
    assert [(row.line, row.why) for row in rows] == [(3, None), (5, None), (7, "why not")]
    outcomes = [tool.run_row(row, {"x": 1})[0] for row in rows]
    assert outcomes == ["int 2", "None", "raises ZeroDivisionError"]
    path.write_text("x = 1\n")
    with pytest.raises(ValueError, match="has no line '# rows'"):
        tool.read_table(path)


class Plain:
    pass


class Named:
    def __repr__(self) -> str:
        return "<Named by itself>"


def test_what_is_the_same(tool):
    assert tool.show(0x7F0000000000) == "int ADDRESS" and tool.show(1) != tool.show(True) != tool.show(1.0)
    assert tool.show([1, {"a": (2,)}]) == "list(int 1, dict{str 'a': tuple(int 2)})"
    assert tool.show(Plain()) == "Plain <Plain object at ADDRESS>"
    assert tool.same("Named <Named object at ADDRESS>", tool.show(Named()))
    assert not tool.same("Named <Named>", tool.show(Named())) and not tool.same("int 1", "int 12")
