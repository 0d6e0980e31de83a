"""Files of pieces: what is written is found, and other files are refused."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from cupola._packed import Packed

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from packed import packed, write


@pytest.mark.parametrize("lengths", [[], [0], [1, 1, 5], [0, 3, 700, 699, 2000, 1]])
def test_pieces_are_found(tmp_path, lengths):
    """In one chunk, or in several."""
    make = random.Random(1)
    pieces = {make.randbytes(16): make.randbytes(length) for length in lengths}
    path = tmp_path / "pieces.bin"
    for chunk_bytes in (1, 800, 1 << 20):
        write(path, packed(pieces, chunk_bytes))
        known = Packed(path.read_bytes())
        assert known.names == set(pieces)
        assert {name: known.get(name) for name in pieces} == pieces
        assert known.get(bytes(16)) is None
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("data", [b"", b"something else", b"\x7fELF" + bytes(100)])
def test_another_file_is_refused(data):
    with pytest.raises(ValueError, match="install cupola again"):
        Packed(data)
