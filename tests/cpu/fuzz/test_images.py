"""Whatever bytes an image has, loading and linking it ends in a CUDA error, or not at all."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from cupola.cpu.compiler.images.containers import open_image
from cupola.cpu.compiler.images.fat_binaries import unpack

from .campaign import campaign
from .image_mutation import elf, images, mutant

pytestmark = pytest.mark.cpu_only

MENDED = [9, 18, 65, 102, 118, 161, 168, 243, 253, 261, 271, 1218, 7224]
"""Seeds that once found a defect; `tools/fuzz_ptx.py --images` goes through as many as one wants."""


def test_images_are_what_they_are_called() -> None:
    for name, image in images().items():
        if name not in ("plain cubin", "fat other"):
            assert ".entry k" in open_image(unpack(image, 90)).ptx
    assert open_image(images()["cubin"]).registers == {"k": 40}


def test_mutants_are_the_same_everywhere() -> None:
    assert mutant(7) == mutant(7) != mutant(8)


@pytest.mark.parametrize("seeds", [MENDED, list(range(2000, 2400))], ids=["mended", "more"])
def test_no_mutant_is_a_defect(seeds: list[int]) -> None:
    outcomes = list(campaign(seeds, child="image_child"))
    assert [outcome.seed for outcome in outcomes] == seeds
    assert [outcome for outcome in outcomes if outcome.is_defect] == []
    if len(seeds) > 20:  # or the mutations would not test much
        assert {"ok", "INVALID_IMAGE", "INVALID_PTX", "NO_BINARY_FOR_GPU"} <= {outcome.text for outcome in outcomes}


@pytest.mark.parametrize("offset", [0x28, 0x3C])  # where the section headers are, and how many
@pytest.mark.parametrize("room", [64, 100, 4096])
def test_headers_are_believed_as_far_as_there_is_memory(device, offset: int, room: int) -> None:
    """An image at the end of what is mapped, whose section headers are said to lie beyond."""
    from cupola.bindings import driver

    libc = ctypes.CDLL(None)
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 2**64 - 1, 0
    start = libc.mmap(None, 2 * mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, *anonymous)
    libc.mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
    image = bytearray(elf([(b".text.k", bytes(32), 1)])[:room].ljust(room, b"\1"))
    image[offset : offset + 2] = b"\xff\x7f"
    address = start + mmap.PAGESIZE - len(image)
    ctypes.memmove(address, bytes(image), len(image))
    status, _ = driver.cuModuleLoadData(address)
    assert status.name == "CUDA_ERROR_INVALID_IMAGE"
    libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(2 * mmap.PAGESIZE))
