"""Accesses of variables by name: what counts is where the access is, not where it is in the variable."""

from __future__ import annotations

import re

import pytest

from cupola.cpu.compiler.emit.threads.layout import Place
from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

# name: PTX of the access, the bytes of shared memory in front of `box`, what is said about it
CASES = {
    "first_word": ("ld.shared.u32 %0, [box];", 1, r"misaligned read of 4 bytes in shared memory"),
    "word_behind": ("ld.shared.u32 %0, [box+8];", 2, r"misaligned read of 4 bytes in shared memory"),
    "vector": (
        "{.reg .b32 x; ld.shared.v2.u32 {%0, x}, [box+8]; add.u32 %0, %0, x;}",
        4,
        r"misaligned read of 8 bytes in shared memory",
    ),
    "stored": ("mov.u32 %0, 1; st.shared.u32 [box+4], %0;", 3, r"misaligned write of 4 bytes in shared memory"),
    "watched": ("ld.volatile.shared.u32 %0, [box];", 1, r"misaligned read of 4 bytes in shared memory"),
    "makes_up": ("ld.shared.u32 %0, [box+3];", 1, "no error"),
    "aligned": ("ld.shared.u32 %0, [box+4];", 4, "no error"),
    "byte": ("ld.shared.u8 %0, [box];", 1, "no error"),
    "of_the_module": ("ld.global.u32 %0, [bytes+4];", 4, "no error"),
    "of_the_module_odd": ("ld.global.u32 %0, [bytes+5];", 4, r"misaligned read of 4 bytes"),
}
SOURCE = 'extern "C" __device__ char bytes[64];\n' + "".join(
    f'extern "C" __global__ void {name}(int *data, int *other, int n) {{\n'
    f"    int x;\n"
    f'    asm volatile("{{.shared .align 1 .b8 pad[{pad}]; .shared .align 1 .b8 box[64]; .reg .b32 at; '
    f'mov.u32 at, pad; {code}}}" : "=r"(x));\n'
    f"    data[threadIdx.x] = x + bytes[threadIdx.x];\n"
    f"}}\n"
    for name, (code, pad, _) in CASES.items()
)


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    return explanations(SOURCE, {name: {} for name in CASES})


@pytest.mark.parametrize("name", CASES)
def test_variables_by_name(name: str, said: dict[str, str]) -> None:
    assert re.search(CASES[name][2], said[name]), said[name]


@pytest.mark.parametrize(
    ("space", "place", "align", "offset", "size", "misaligned"),
    [
        ("shared", 1, 1, 0, 4, True),
        ("shared", 1, 1, 3, 4, False),
        ("shared", 4, 1, 4, 8, False),
        ("param", 4, 1, 0, 8, True),
        ("global", 3, 4, 8, 4, False),  # 3 is the number of the variable
        ("global", 3, 4, 8, 8, True),
        ("const", 0, 16, 8, 8, False),
        ("const", 0, 1, 0, 1, False),
    ],
)
def test_what_is_certainly_aligned(space: str, place: int, align: int, offset: int, size: int, misaligned: bool):
    assert bool(Place(space, place, 64, align=align).misalignment(offset, size)) is misaligned
