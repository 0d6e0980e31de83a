"""Matrix products of warpgroups in programs; the single forms are in tests/ptx/forms/wgmma.txt."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from cupola import Device, Kernel, Program, ProgramOptions
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.engine.kernels import run_kernel

HOPPER = tuple(Device(0).compute_capability) == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="wgmma is for devices of compute capability 9.0")

RING = 3 * 2 * 16384
"""Bytes of shared memory of warpgroup_product.cu."""


@functools.cache
def compiled(source: str, name: str, shared: int = 0) -> Kernel:
    """A kernel for sm_90a, with so much dynamic shared memory."""
    Device(0).set_current()
    options = ProgramOptions(std="c++17", arch="sm_90a", lineinfo=True)
    kernel = Program(source, "c++", options).compile("cubin").get_kernel(name)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if shared:
        ok(driver.cuFuncSetAttribute(ok(driver.cuKernelGetFunction(int(kernel.handle))), attribute, shared))
    return kernel


def packed(lines: np.ndarray) -> np.ndarray:
    """Tiles of 128 lines by 64 halves along K, in blocks of 8 lines by 16 bytes."""
    count, k = lines.shape
    tiles = lines.reshape(count // 128, 16, 8, k // 64, 8, 8)
    return np.ascontiguousarray(tiles.transpose(0, 3, 1, 4, 2, 5))


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (256, 384, 512)])
def test_a_pipelined_product(m: int, n: int, k: int) -> None:
    """A warpgroup copies, two multiply; a stage is filled again as soon as one thread of each says so."""
    source = Path(__file__).with_name("warpgroup_product.cu").read_text()
    rng = np.random.default_rng(k)
    a = rng.uniform(-1, 1, (m, k)).astype(np.float16)
    b = rng.uniform(-1, 1, (k, n)).astype(np.float16)
    d = np.full((m, n), np.nan, np.float32)
    kernel = compiled(source, "product", RING)
    right = packed(np.ascontiguousarray(b.T))
    run_kernel(kernel, (n // 128, m // 128), 384, packed(a), right, d, np.int32(n), np.int32(k), shared=RING)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(d - exact).max() < k * 2.0**-18


def width(n: int) -> str:
    """A kernel of one product of N columns. A in registers and B in shared memory are as they come from the host."""
    count = n // 2
    d = ", ".join(f"%{i}" for i in range(count))
    outs = ", ".join(f'"=f"(d[{i}])' for i in range(count))
    return f"""
    extern "C" __global__ void width(const unsigned* a, const uint4* b, float* out) {{
        __shared__ __align__(128) uint4 tile[{2 * n}];
        for (int i = threadIdx.x; i < {2 * n}; i += 128) tile[i] = b[i];
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        unsigned long long at = (unsigned)__cvta_generic_to_shared(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
        const unsigned* r = a + threadIdx.x * 4;
        float d[{count}];
        asm volatile("wgmma.fence.sync.aligned;\\n"
            "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{d}}}, {{%{count}, %{count + 1}, %{count + 2}, "
            "%{count + 3}}}, %{count + 4}, 0, 1, 1, 0;\\n"
            "wgmma.commit_group.sync.aligned;\\nwgmma.wait_group.sync.aligned 0;"
            : {outs} : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(at) : "memory");
        for (int i = 0; i < {count}; i++) out[threadIdx.x * {count} + i] = d[i];
    }}
    """


@pytest.mark.parametrize("n", [8, 40, 72, 136, 200, 256])
def test_widths(n: int) -> None:
    """Every column of every row is where the ISA says."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(-8, 9, (64, 16)), rng.integers(-8, 9, (16, n))
    halves = [(x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)]
    # Row g + 8 h of warp w, and words t and t + 4 of its 8: registers h and h + 2 of lane 4 g + t.
    left = halves[0].reshape(4, 2, 8, 2, 4, 2).transpose(0, 2, 4, 3, 1, 5)
    right = halves[1].T.reshape(n // 8, 8, 2, 8).transpose(0, 2, 1, 3)
    d = np.zeros((4, 8, 4, n // 8, 2, 2), np.float32)
    kernel = compiled(width(n), "width")
    run_kernel(kernel, 1, 128, np.ascontiguousarray(left), np.ascontiguousarray(right), d)
    assert np.array_equal(d.transpose(0, 4, 1, 3, 2, 5).reshape(64, n), a @ b)


APART = r"""
extern "C" __global__ void apart(const uint4* b, int* out) {
    __shared__ __align__(128) uint4 tile[16];
    __shared__ volatile int turn;
    if (threadIdx.x < 16) tile[threadIdx.x] = b[threadIdx.x];
    if (threadIdx.x == 0) turn = 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x >= 64 && threadIdx.x < 96) {  // the lanes of a warp take turns, so each must run by itself
        while (turn != threadIdx.x - 64) {}
        __threadfence_block();
        turn = turn + 1;
    }
    unsigned long long at = (unsigned)__cvta_generic_to_shared(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    int one = 0x01010101, d[4] = {1, 2, 3, 4};
    asm volatile("wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, 1;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(one), "l"(at) : "memory");
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
"""


def test_warps_whose_threads_were_apart() -> None:
    b = np.random.default_rng(3).integers(-128, 128, (8, 32), np.int8)
    units = np.ascontiguousarray(b.reshape(8, 2, 16).transpose(1, 0, 2))
    d = np.zeros((32, 4, 2, 2), np.int32)
    run_kernel(compiled(APART, "apart"), 1, 128, units, d)
    sums = b.astype(np.int32).sum(axis=1)
    for i in range(4):
        columns = sums[np.arange(4) * 2 + i % 2]
        assert np.array_equal(d.reshape(32, 4, 4)[:, :, i], np.tile(columns + i + 1, (32, 1)))
