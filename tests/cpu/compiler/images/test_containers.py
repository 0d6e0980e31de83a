"""Which entry of a fat binary is taken, and that the others are left alone."""

from __future__ import annotations

import struct

import pytest

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import containers, decompress

PTX, CUBIN, ZSTANDARD = 1, 2, 0x8000


def fat_binary(*entries: tuple[int, int, bytes]) -> bytes:
    """Entries of a kind and an architecture, whose data is said to be compressed."""
    body = b""
    for kind, number, data in entries:
        head = (kind, 0x101, 64, len(data), len(data), 0, 0, 8, number, 0, 0, ZSTANDARD, 0, 1000)
        body += struct.pack("<HHIQIIHHIIIQQQ", *head) + data
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def expanded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What has been decompressed."""
    found: list[bytes] = []

    def zstandard(data: bytes, size: int) -> bytes:
        found.append(data)
        return data

    monkeypatch.setattr(decompress, "zstandard", zstandard)
    return found


def test_only_what_may_run_is_decompressed(expanded: list[bytes]) -> None:
    own = b".version 8.8\n.target sm_80\n"
    image = fat_binary(
        (CUBIN, 75, b"older"), (CUBIN, 90, b"fits"), (CUBIN, 120, b"newer"), (PTX, 80, own), (PTX, 120, b"newest")
    )
    assert containers.unpack(image, 90) == own
    assert expanded == [b"fits", own]


def test_machine_code_only(expanded: list[bytes]) -> None:
    image = fat_binary(*((CUBIN, number, b"machine code") for number in (75, 80, 86, 90)))
    with pytest.raises(
        ImageError,
        match=r"sm_75, a cubin for sm_80 without its PTX, a cubin for sm_86, .*arch=compute_80,code=compute_80 as well",
    ):
        containers.unpack(image, 80)
    assert len(expanded) == 1
