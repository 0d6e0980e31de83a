"""What the CPU device says when products of warpgroups go wrong. Each fault happens on a device of its own."""

from __future__ import annotations

import re

import pytest

from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
using u64 = unsigned long long;
__device__ u64 descriptor(unsigned start, unsigned leading, unsigned stride) {
    return (u64)(start >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32;
}
__device__ void multiply(int (&d)[4], u64 a, u64 b, int keeps = 1) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;"  // LINE multiply
                 "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 "
                 "{%0, %1, %2, %3}, %4, %5, p; }"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "l"(a), "l"(b), "r"(keeps) : "memory");
}
__device__ void finish() {
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");  // LINE wait
}
#define BEGIN                                                                                                          \
    __shared__ __align__(128) unsigned tile[1024];                                                                     \
    tile[threadIdx.x] = 0;                                                                                             \
    __syncthreads();                                                                                                   \
    int d[4] = {0, 0, 0, 0};                                                                                           \
    const unsigned at = (unsigned)__cvta_generic_to_shared(tile);                                                      \
    u64 a = descriptor(at, 128, 256), b = descriptor(at + 2048, 128, 256);
#define END out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
extern "C" __global__ void three_warps(int* out) { BEGIN multiply(d, a, b); finish(); END }
extern "C" __global__ void last_group(int* out) { BEGIN multiply(d, a, b); finish(); END }
extern "C" __global__ void one_lane_has_ended(int* out) {
    BEGIN
    if (threadIdx.x == 70) return;
    multiply(d, a, b);
    finish();
    END
}
extern "C" __global__ void one_warp_has_ended(int* out) {
    BEGIN
    if (threadIdx.x / 32 == 2) return;
    multiply(d, a, b);
    finish();
    END
}
extern "C" __global__ void half_a_warp(int* out) {
    BEGIN
    if (threadIdx.x % 32 < 16) {
        multiply(d, a, b);
        finish();
    }
    END
}
extern "C" __global__ void one_more(int* out) {
    BEGIN
    multiply(d, a, b);
    if (threadIdx.x >= 96) multiply(d, a, b);
    finish();
    END
}
extern "C" __global__ void other_descriptors(int* out) {
    BEGIN
    multiply(d, a, threadIdx.x < 32 ? b + 1 : b);
    finish();
    END
}
extern "C" __global__ void uneven(int* out) { BEGIN multiply(d, a, b + (threadIdx.x == 33)); finish(); END }
extern "C" __global__ void uneven_scale(int* out) { BEGIN multiply(d, a, b, threadIdx.x != 40); finish(); END }
extern "C" __global__ void outside_a(int* out) { BEGIN multiply(d, descriptor(at + 2048, 128, 512), b); finish(); END }
extern "C" __global__ void outside_b(int* out) {
    BEGIN
    multiply(d, a, descriptor(0x3FFF0, 0x3FFF0, 0x3FFF0));
    finish();
    END
}
extern "C" __global__ void wild(int* out) { BEGIN multiply(d, a, ~0ull); finish(); END }
"""

LAUNCHES = dict.fromkeys(
    [
        "one_lane_has_ended", "one_warp_has_ended", "half_a_warp", "one_more", "other_descriptors", "uneven",
        "uneven_scale", "outside_a", "outside_b", "wild",
    ],
    128,
) | {"three_warps": 96, "last_group": 192}  # fmt: skip

ILLEGAL = "CUDA_ERROR_ILLEGAL_INSTRUCTION"
OUTSIDE = "CUDA_ERROR_ILLEGAL_ADDRESS"
SAME = r"the four warps of a warpgroup must execute the same wgmma\.mma_async instructions"

FAULTS: dict[str, tuple[str, int | None, str, tuple[str, ...]]] = {
    # status, thread where there is only one that it can be, the marked line, patterns
    "three_warps": (ILLEGAL, 0, "multiply", (r"block of 96 threads has 96: make .* a multiple of 128",)),
    "last_group": (ILLEGAL, 128, "multiply", (r"block of 192 threads has 64",)),
    "one_lane_has_ended": (ILLEGAL, 64, "multiply", (r"31 of them \(lanes 0xffffffbf\)",)),
    "one_warp_has_ended": (
        "CUDA_ERROR_LAUNCH_FAILED", None, "wait",
        (r"96 threads from \(0, 0, 0\) to \(127, 0, 0\) wait in wgmma\.wait_group for the 128 threads of their "
         r"warpgroup, of which 96 have arrived",),
    ),
    "half_a_warp": (ILLEGAL, None, "multiply", (r"16 of them \(lanes 0x0000ffff\)",)),
    "one_more": (ILLEGAL, None, "wait", (SAME,)),
    "other_descriptors": (ILLEGAL, None, "wait", (SAME,)),
    "uneven": (ILLEGAL, 33, "multiply", (r"must be the same in all threads of the warpgroup",)),
    "uneven_scale": (ILLEGAL, 40, "multiply", (r"matrix descriptors and scale-d",)),
    "outside_a": (
        OUTSIDE, None, "multiply",
        (r"read of 16 bytes in shared memory at offset 4096", r"descriptor of matrix A, .*start 2048, .* offset 128, "
         r"stride dimension offset 512, base offset 0, swizzle of 0 bytes"),
    ),
    "outside_b": (OUTSIDE, None, "multiply", (r"read of 16 bytes in shared memory", r"descriptor of matrix B")),
    "wild": (OUTSIDE, None, "multiply", (r"swizzle of 32 bytes",)),
}  # fmt: skip


LINES = {"multiply": 4, "wait": 1}
"""Of the marked statements."""


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"// LINE {mark}"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The error of each kernel."""
    launches = {name: {"block": block} for name, block in LAUNCHES.items()}
    return explanations(SOURCE, launches, buffers=[2048], numbers=[], arch="sm_90a")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_explained(name: str, texts: dict[str, str]) -> None:
    status, thread, mark, patterns = FAULTS[name]
    text = texts[name]
    assert text.startswith(status), text
    first = line_of(mark)  # of a statement of several lines, compilers name one or another
    assert any(f":{line} " in text for line in range(first, first + LINES[mark])), text
    assert thread is None or f"in thread ({thread}, 0, 0)" in text, text
    for pattern in patterns:
        assert re.search(pattern, text), text
