"""Which entry of a fat binary is taken, and that the others are left alone."""

from __future__ import annotations

import struct

import pytest

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import containers, decompress, fat_binaries

PTX, CUBIN, LTO_IR, TILE_IR, ZSTANDARD = 1, 2, 8, 0x80, 0x8000


def fat_binary(*entries: tuple[int, int, bytes], flags: int = 0) -> bytes:
    """Entries of a kind and an architecture, whose data is said to be compressed."""
    body = b""
    for kind, number, data in entries:
        head = (kind, 0x101, 64, len(data), len(data), 0, 0, 8, number, 0, 0, ZSTANDARD | flags, 0, 1000)
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
    assert fat_binaries.unpack(image, 90) == own
    assert expanded == [b"fits", own]


def test_machine_code_only(expanded: list[bytes]) -> None:
    image = fat_binary(*((CUBIN, number, b"machine code") for number in (75, 80, 86, 90)))
    with pytest.raises(
        ImageError,
        match=r"sm_75, a cubin for sm_80 without its PTX, a cubin for sm_86, .*arch=compute_80,code=compute_80 as well",
    ):
        fat_binaries.unpack(image, 80)
    assert len(expanded) == 1


@pytest.mark.parametrize(
    ("kind", "number", "named"),
    [
        (TILE_IR, 0, "has Tile IR;"),
        (TILE_IR, 100, "has Tile IR for sm_100;"),
        (LTO_IR, 90, "has LTO-IR for sm_90;"),
        (0x77, 90, "has something else for sm_90;"),
        (PTX, 100, "has PTX for sm_100;"),
    ],
)
def test_what_a_fat_binary_has_is_named(expanded: list[bytes], kind: int, number: int, named: str) -> None:
    with pytest.raises(ImageError, match=named) as raised:
        fat_binaries.unpack(fat_binary((kind, number, b"data")), 90)
    assert raised.value.status == "CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert expanded == []


@pytest.mark.parametrize(
    ("number", "flags", "architecture", "runs"),
    [
        (90, 0, 90, True),
        (100, 0, 103, True),
        (103, 0, 100, False),
        (100, 0x100000, 103, False),  # sm_100a
        (100, 0x200000, 103, True),  # sm_100f
        (100, 0x100000, 100, True),
        (90, 0, 100, False),
        (120, 0, 90, False),
    ],
)
def test_cubins_for_other_gpus_are_not_taken(
    expanded: list[bytes], number: int, flags: int, architecture: int, runs: bool
) -> None:
    data = b"\x7fELF".ljust(64, b"\0") + containers.TRAILER
    image = fat_binary((CUBIN, number, data), flags=flags)
    if runs:
        assert fat_binaries.unpack(image, architecture) == data
    else:
        with pytest.raises(ImageError, match=f"a cubin for sm_{number}"):
            fat_binaries.unpack(image, architecture)


def test_a_cubin_is_believed_more_than_its_entry(expanded: list[bytes]) -> None:
    image = fat_binary((CUBIN, 100, containers.make_cubin(".version 9.0\n.target sm_100a\n", 100)))
    assert fat_binaries.unpack(image, 100)
    with pytest.raises(ImageError, match="a cubin for sm_100;"):
        fat_binaries.unpack(image, 103)
