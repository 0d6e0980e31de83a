"""The rooms of the C that all modules of the bindings share include headers only downward."""

import re
from pathlib import Path

import pytest

from bindgen.libraries import BINDINGS

SUPPORT = BINDINGS / "support"
ROOMS = ["library", "memory", "scalars", "records", "arguments", "module"]  # from the bottom up
FILES = sorted(path for path in SUPPORT.rglob("*.[ch]") if path.parent != SUPPORT)


def included(path: Path) -> list[str]:
    """The rooms whose headers a file includes."""
    return re.findall(r'^#include "(\w+)/\w+\.h"', path.read_text(), re.MULTILINE)


def test_every_room_is_listed():
    assert {path.parent.name for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_headers_are_of_the_same_room_or_below(path):
    rooms = [room for room in included(path) if room in ROOMS]
    assert rooms or path.name in ("library.h", "threads.h"), "a file that includes no room"
    own = ROOMS.index(path.parent.name)
    assert [room for room in rooms if ROOMS.index(room) > own] == []
