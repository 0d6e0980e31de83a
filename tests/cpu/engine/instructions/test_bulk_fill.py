"""``st.bulk`` (PTX ISA 9.7.9): a GPU of compute capability 10.0 or later, or a CPU device that stands for one."""

from __future__ import annotations

import pytest

PROGRAM = r"""
import numpy as np
from cupola import CUDAError
from tests.cpu.engine.kernels import run

SOURCE = r'''
extern "C" __global__ void fill(const unsigned *starts, const unsigned long long *sizes, unsigned char *out) {
    __shared__ __align__(16) unsigned char box[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) box[i] = i | 128;
    __syncthreads();
    const unsigned long long size = sizes[threadIdx.x];
    const unsigned to = (unsigned)__cvta_generic_to_shared(box) + starts[threadIdx.x];
    if (INSTRUCTION == 0) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" :: "r"(to), "l"(size) : "memory");
    else asm volatile("st.bulk [%0], %1, 0;" :: "l"(box + starts[threadIdx.x]), "l"(size) : "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = box[i];
}
extern "C" __global__ void elsewhere(unsigned char *out) {
    asm volatile("st.bulk [%0], %1, 0;" :: "l"(out), "l"(64ull) : "memory");
}
'''

def check(starts, sizes, generic):
    out = np.zeros(256, np.uint8)
    source = SOURCE.replace("INSTRUCTION", str(generic))
    starts, sizes = np.array(starts, np.uint32), np.array(sizes, np.uint64)
    run(source, "fill", 1, len(starts), starts, sizes, out)
    expected = np.arange(256, dtype=np.uint8) | 128
    for start, size in zip(starts, sizes):
        expected[int(start) : int(start) + int(size)] = 0
    assert (out == expected).all(), (starts, sizes, generic, out)
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("checks", ["memory", "race,init,sync"])
def test_bulk_fill(run_python, checks: str) -> None:
    program = (
        PROGRAM
        + """
for generic in (0, 1):
    check([8], [64], generic)
    check([0], [256], generic)
    check([16], [0], generic)
    check([0, 64, 136, 240], [8, 16, 64, 16], generic)
"""
    )
    done = run_python(program, CUPOLA_DEVICE="cpu", CUPOLA_CPU_MODEL="b200", CUPOLA_CHECK=checks)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("check([0], [12], 0)", "st.bulk of 12 bytes: it must be a multiple of 8 and at most 16777216"),
        ("check([0], [1 << 40], 0)", "st.bulk of 1099511627776 bytes"),
        ("check([200], [64], 0)", "shared"),
        ("check([4], [8], 0)", "aligned"),
        (
            "run(SOURCE.replace('INSTRUCTION', '0'), 'elsewhere', 1, 1, np.zeros(64, np.uint8))",
            "not in the shared memory",
        ),
    ],
)
def test_a_bulk_fill_in_the_wrong_place_is_a_fault(run_python, call: str, text: str) -> None:
    program = f"{PROGRAM}\ntry:\n    {call}\nexcept CUDAError as error:\n    print(error)\n"
    done = run_python(program, CUPOLA_DEVICE="cpu", CUPOLA_CPU_MODEL="b200")
    assert text in done.stdout, done.stdout + done.stderr
