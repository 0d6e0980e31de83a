"""The tables of entry points at the ends of files are those that are looked up: a file that is forgotten has none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPU = Path(__file__).resolve().parents[3] / "src" / "cupola" / "cpu"


@pytest.mark.parametrize(("room", "at_least"), [("driver", 30), ("cudart", 10), ("nvml", 5), ("math", 5)])
def test_every_table_is_looked_up(room: str, at_least: int) -> None:
    defined = {
        name
        for path in (CPU / room).rglob("*.c")
        for name in re.findall(r"^const struct (?:nvml_)?entry (\w+)_entries\[\] = \{", path.read_text(), re.MULTILINE)
    }
    lookup = (CPU / room / "lookup.c").read_text()
    listed = re.findall(r"X\((\w+)\)", lookup.partition("#define TABLES(X)")[2].partition("\n\n")[0])
    assert len(listed) == len(set(listed))
    assert set(listed) == defined
    assert len(defined) > at_least
