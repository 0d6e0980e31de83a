"""For which GPUs PTX and cubins are."""

from __future__ import annotations

import struct

import pytest

from cupola import Program, ProgramOptions
from cupola.cpu.compiler.images import targets
from cupola.cpu.compiler.images.containers import make_cubin
from cupola.cpu.compiler.images.targets import Target
from tests.cpu.fuzz.image_mutation import elf

RUNS = {  # target -> GPUs that run it as PTX, and as a cubin
    Target(75): ([75, 80, 89, 90, 100, 103, 120], [75]),
    Target(80): ([80, 89, 90, 100, 103, 120], [80, 89]),
    Target(86): ([89, 90, 100, 103, 120], [89]),
    Target(90): ([90, 100, 103, 120], [90]),
    Target(90, "a"): ([90], [90]),
    Target(100): ([100, 103, 120], [100, 103]),
    Target(100, "a"): ([100], [100]),
    Target(100, "f"): ([100, 103], [100, 103]),
    Target(103): ([103, 120], [103]),
    Target(120, "f"): ([120], [120]),
    Target(121): ([], []),
}


@pytest.mark.parametrize("target", RUNS, ids=str)
def test_who_runs_what(target: Target) -> None:
    gpus = (75, 80, 89, 90, 100, 103, 120)
    assert RUNS[target] == ([g for g in gpus if target.runs_as_ptx(g)], [g for g in gpus if target.runs_as_cubin(g)])


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (b".version 9.0\n.target sm_90a\n", Target(90, "a")),
        (b".target compute_100f, debug", Target(100, "f")),
        (b".version 9.0 .target  sm_52 ", Target(52)),
        (b"nothing", None),
    ],
)
def test_ptx(text: bytes, target: Target | None) -> None:
    assert targets.of_ptx(text) == target


def cubin(abi: int, flags: int, compatibility: bytes | None = None) -> bytes:
    sections = [] if compatibility is None else [(b".nv.compat", compatibility, 0)]
    image = bytearray(elf(sections))
    image[8] = abi
    struct.pack_into("<I", image, 48, flags)
    return bytes(image)


# As ptxas 12.9 and 13.5 write them.
PLAIN, LIMITED = bytes.fromhex("02090000020c000003070101"), bytes.fromhex("040b080009020902090209000209 0100")


@pytest.mark.parametrize(
    ("image", "target"),
    [
        (cubin(7, 0x5A055A), Target(90)),
        (cubin(7, 0x5A0D5A), Target(90, "a")),
        (cubin(8, 0x9006402), Target(100)),
        (cubin(8, 0x900640A), Target(100, "a")),  # of CUDA 12.9
        (cubin(8, 0x9005A04, PLAIN), Target(90)),
        (cubin(8, 0x9005A04, LIMITED), Target(90, "a")),
        (cubin(8, 0x9005A04, PLAIN[:-1]), Target(90)),
        (cubin(7, 0), None),
        (make_cubin(".target sm_90a", 90), Target(90, "a")),
        (make_cubin(".target sm_80", 90), Target(90)),
        (cubin(8, 0x9005A04, PLAIN)[:100], None),
        (b"\x7fELF", None),
    ],
)
def test_cubins(image: bytes, target: Target | None) -> None:
    assert targets.of_cubin(image) == target


@pytest.mark.parametrize("architecture", ["sm_75", "sm_86", "sm_90", "sm_90a", "sm_100a", "sm_120"])
def test_cubins_of_the_compiler(architecture: str) -> None:
    program = Program('extern "C" __global__ void k() {}', "c++", ProgramOptions(arch=architecture))
    assert str(targets.of_cubin(bytes(program.compile("cubin").code))) == architecture
