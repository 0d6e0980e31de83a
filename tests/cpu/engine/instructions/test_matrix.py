"""Matrix products of CUDA C++: the fragments of <mma.h>, and inline assembly as CUTLASS has it."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.cpu.engine.kernels import run

WMMA = r"""
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda;
using Element = {element};    // what mma.h calls it
using Stored = {stored};      // what is in memory
using Sum = {sum};
constexpr int M = {m}, N = {n}, K = {k};

template <class LayoutA, class LayoutB>
__device__ void product(const Stored* a, const Stored* b, const Sum* c, Sum* d, int lda, int ldb, int ldc, bool rows) {{
    wmma::fragment<wmma::matrix_a, M, N, K, Element, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, Element, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
    wmma::layout_t layout = rows ? wmma::mem_row_major : wmma::mem_col_major;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, layout);
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] = fc.x[i] + fc.x[i];
    {multiply};
    wmma::store_matrix_sync(d, fc, ldc, layout);
}}

// Bit 0 of `how`: A by columns; bit 1: B by rows; bit 2: C and D by columns; bit 3: all in shared memory.
extern "C" __global__ void multiply(const Stored* a, const Stored* b, const Sum* c, Sum* d, int lda, int ldb, int ldc,
                                    int how, int bytes_a, int bytes_b, int bytes_c) {{
    __shared__ __align__(32) char memory[3 * 8192];
    if (how & 8) {{
        for (int i = threadIdx.x; i < bytes_a; i += 32) memory[i] = ((const char*)a)[i];
        for (int i = threadIdx.x; i < bytes_b; i += 32) memory[8192 + i] = ((const char*)b)[i];
        for (int i = threadIdx.x; i < bytes_c; i += 32) memory[16384 + i] = ((const char*)c)[i];
        __syncwarp();
        a = (const Stored*)memory, b = (const Stored*)(memory + 8192), c = (const Sum*)(memory + 16384);
    }}
    using Row = wmma::row_major;
    using Column = wmma::col_major;
    bool rows = !(how & 4);
#if {small}
    product<Row, Column>(a, b, c, d, lda, ldb, ldc, rows);
#else
    switch (how & 3) {{
    case 0: product<Row, Column>(a, b, c, d, lda, ldb, ldc, rows); break;
    case 1: product<Column, Column>(a, b, c, d, lda, ldb, ldc, rows); break;
    case 2: product<Row, Row>(a, b, c, d, lda, ldb, ldc, rows); break;
    default: product<Column, Row>(a, b, c, d, lda, ldb, ldc, rows);
    }}
#endif
}}
"""

SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
CASES = [
    *(("half", "half", sum, shape) for sum in ("float", "half") for shape in SHAPES),
    *(("__nv_bfloat16", "__nv_bfloat16", "float", shape) for shape in SHAPES),
    *((kind, kind, "int", shape) for kind in ("signed char", "unsigned char") for shape in SHAPES),
    ("wmma::precision::tf32", "float", "float", (16, 16, 8)),
    ("double", "double", "double", (8, 8, 4)),
    ("wmma::experimental::precision::s4", "int", "int", (8, 8, 32)),
    ("wmma::experimental::precision::u4", "int", "int", (8, 8, 32)),
    ("wmma::experimental::precision::b1", "int", "int", (8, 8, 128)),
]
BITS = {"s4": 4, "u4": 4, "b1": 1}
DTYPES = {"half": np.float16, "float": np.float32, "double": np.float64, "int": np.int32, "__nv_bfloat16": np.uint16,
          "signed char": np.int8, "unsigned char": np.uint8}  # fmt: skip


def to_memory(matrix: np.ndarray, kind: str, *, rows: bool, padding: int) -> tuple[np.ndarray, int]:
    """The elements in memory, a row (or column) behind the other, each ``padding`` elements longer; the stride."""
    matrix = matrix if rows else matrix.T
    padded = np.zeros((matrix.shape[0], matrix.shape[1] + padding), matrix.dtype)
    padded[:, : matrix.shape[1]] = matrix
    stride = padded.shape[1]
    bits = BITS.get(kind)
    if bits == 1:
        return np.packbits(padded.astype(np.uint8), axis=1, bitorder="little").view(np.uint32), stride
    if bits == 4:
        nibbles = padded.astype(np.uint8) & 15
        return (nibbles[:, ::2] | nibbles[:, 1::2] << 4).view(np.uint32), stride
    if kind == "__nv_bfloat16":
        return (np.ascontiguousarray(padded, np.float32).view(np.uint32) >> 16).astype(np.uint16), stride
    return padded.astype(DTYPES[kind]), stride


@pytest.mark.parametrize(("element", "stored", "sum", "shape"), CASES, ids=str)
def test_wmma(element: str, stored: str, sum: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    kind = element.rpartition("::")[2]
    kind = kind if kind in BITS else stored
    multiply = "wmma::mma_sync(fc, fa, fb, fc)"
    if kind == "b1":
        multiply = "wmma::bmma_sync(fc, fa, fb, fc, wmma::experimental::bmmaBitOpAND)"
    if kind == "float":
        multiply = "for (auto& x : fa.x) x = wmma::__float_to_tf32(x); " + multiply
    small = int(kind in BITS)
    source = WMMA.format(element=element, stored=stored, sum=sum, m=m, n=n, k=k, small=small, multiply=multiply)
    rng = np.random.default_rng(0)
    low, high = {"unsigned char": (0, 256), "signed char": (-128, 128), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}.get(
        kind, (-8, 9)
    )
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n))
    c = rng.integers(-50, 50, (m, n))
    expected = a @ b + 2 * c
    for how in range(0, 16, 4 if small else 1):
        padding = {4: 32, 1: 128}.get(BITS.get(kind, 0), 16)
        ma, lda = to_memory(a, kind, rows=not how & 1, padding=padding)
        mb, ldb = to_memory(b, kind, rows=bool(how & 2), padding=padding)
        mc, ldc = to_memory(c, sum, rows=not how & 4, padding=8)
        d = np.zeros_like(mc)
        numbers = [np.int32(x) for x in (lda, ldb, ldc, how, ma.nbytes, mb.nbytes, mc.nbytes)]
        run(source, "multiply", 1, 32, ma, mb, mc, d, *numbers)
        result = d if not how & 4 else d.T
        np.testing.assert_array_equal(result[:m, :n].astype(np.int64), expected, err_msg=f"how={how}")


GEMM = r"""
#include <mma.h>
using namespace nvcuda;
// Eight warps, each with a tile of its own; which one depends on the number of the warp.
extern "C" __global__ void gemm(const half* a, const half* b, float* c, int n) {
    __shared__ __align__(32) half tile_a[32][24], tile_b[16][72];
    int warp = threadIdx.x / 32, row = blockIdx.y * 32, column = blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        for (int i = threadIdx.x; i < 32 * 16; i += 256) tile_a[i / 16][i % 16] = a[(row + i / 16) * n + k + i % 16];
        for (int i = threadIdx.x; i < 16 * 64; i += 256) tile_b[i / 64][i % 64] = b[(k + i / 64) * n + column + i % 64];
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, &tile_a[warp / 4 * 16][0], 24);
        wmma::load_matrix_sync(fb, &tile_b[0][warp % 4 * 16], 72);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(c + (row + warp / 4 * 16) * n + column + warp % 4 * 16, sum, n, wmma::mem_row_major);
}
"""


def test_gemm() -> None:
    n = 128
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (n, n)).astype(np.float16) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    run(GEMM, "gemm", (n // 64, n // 32), 256, a, b, c, np.int32(n))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


PIPELINE = r"""
#include <cuda_fp16.h>
typedef unsigned int u32;
__device__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}
// Rows of 32 halves are four pieces of 16 bytes, which the row number mixes: no two rows of 8 meet in one bank.
__device__ int swizzled(int row, int piece) { return row * 32 + ((piece ^ (row >> 1 & 3)) << 3); }

// C = A * B for blocks of 64 by 64 of C and steps of 32 along K, in two stages; four warps with 32 by 32 each.
extern "C" __global__ void pipeline(const half* a, const half* b_columns, float* c, int n) {
    __shared__ __align__(128) half tiles[2][2][64 * 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sums[2][4][4] = {};
    auto fetch = [&](int stage, int k) {
        for (int i = threadIdx.x; i < 256; i += 128) {
            int row = i / 4, piece = i % 4;
            copy16(&tiles[stage][0][swizzled(row, piece)], a + (row0 + row) * n + k + 8 * piece);
            copy16(&tiles[stage][1][swizzled(row, piece)], b_columns + (column0 + row) * n + k + 8 * piece);
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    for (int k = 0; k < n; k += 32) {
        int stage = k / 32 % 2;
        if (k + 32 < n) fetch(stage ^ 1, k + 32);
        else asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        for (int half_step = 0; half_step < 2; ++half_step) {
            u32 fa[2][4], fb[4][2];
            for (int i = 0; i < 2; ++i) {
                int row = warp / 2 * 32 + i * 16 + lane % 16;
                u32 p = shared_address(&tiles[stage][0][swizzled(row, 2 * half_step + lane / 16)]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(p));
            }
            for (int j = 0; j < 4; ++j) {
                int row = warp % 2 * 32 + j * 8 + lane % 8;
                u32 p = shared_address(&tiles[stage][1][swizzled(row, 2 * half_step + lane / 8 % 2)]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(fb[j][0]), "=r"(fb[j][1]) : "r"(p));
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]), "+f"(sums[i][j][3])
                                 : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]),
                                   "r"(fb[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int e = 0; e < 4; ++e) {
                int row = row0 + warp / 2 * 32 + i * 16 + lane / 4 + e / 2 * 8;
                c[row * n + column0 + warp % 2 * 32 + j * 8 + lane % 4 * 2 + e % 2] = sums[i][j][e];
            }
}
"""


def test_pipelined_gemm() -> None:
    """As in CUTLASS: asynchronous copies, swizzled tiles, ldmatrix and mma."""
    n = 128
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (n, n)).astype(np.float16) for _ in range(2))
    c = np.zeros((n, n), np.float32)
    run(PIPELINE, "pipeline", (n // 64, n // 64), 128, a, np.ascontiguousarray(b.T), c, np.int32(n))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


MOVES = r"""
typedef unsigned int u32;
extern "C" __global__ void moves(const u32* in, u32* out) {
    __shared__ __align__(16) u32 memory[128], other[128];
    int lane = threadIdx.x;
    for (int i = 0; i < 4; ++i) memory[32 * i + lane] = in[32 * i + lane];
    __syncwarp();
    u32 row = (u32)__cvta_generic_to_shared(&memory[4 * lane]), r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
    for (int i = 0; i < 4; ++i) out[32 * i + lane] = r[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(&memory[4 * lane]));
    for (int i = 0; i < 4; ++i) out[128 + 32 * i + lane] = r[i];
    // Only the lanes 0 to 15 give addresses that count, and 0 to 7.
    u32 far = lane < 16 ? row : 0xFFFFFFF0u, farther = lane < 8 ? row : 0xFFFFFFF0u;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(far));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[2]) : "r"(farther));
    for (int i = 0; i < 3; ++i) out[256 + 32 * i + lane] = r[i];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[3]) : "r"(in[lane]));
    out[352 + lane] = r[3];
    u32 to = (u32)__cvta_generic_to_shared(&other[4 * (lane ^ 1)]);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(in[lane]),
                 "r"(in[32 + lane]), "r"(in[64 + lane]), "r"(in[96 + lane]) : "memory");
    __syncwarp();
    for (int i = 0; i < 4; ++i) out[384 + 32 * i + lane] = other[32 * i + lane];
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(in[lane]),
                 "r"(in[32 + lane]) : "memory");
    __syncwarp();
    for (int i = 0; i < 4; ++i) out[512 + 32 * i + lane] = other[32 * i + lane];
}
"""


def test_moves_of_8x8_matrices() -> None:
    data = np.random.default_rng(3).integers(0, 2**32, 128, dtype=np.uint64).astype(np.uint32)
    out = np.zeros(640, np.uint32)
    run(MOVES, "moves", 1, 32, data, out)
    parts = out.reshape(5, 128)
    matrices = data.view(np.uint16).reshape(4, 8, 8)
    turned = np.ascontiguousarray(matrices.transpose(0, 2, 1)).view(np.uint32).reshape(4, 32)
    plain = data.reshape(4, 32)
    np.testing.assert_array_equal(parts[0].reshape(4, 32), plain)
    np.testing.assert_array_equal(parts[1].reshape(4, 32), turned)
    np.testing.assert_array_equal(parts[2].reshape(4, 32), [plain[0], plain[1], turned[0], turned[0]])
    rows = plain.reshape(32, 4)
    swapped = rows[np.arange(32) ^ 1]  # row r of a matrix goes to place r ^ 1
    np.testing.assert_array_equal(parts[3].reshape(32, 4), swapped)
    expected = swapped.copy()
    expected[:16] = turned[:2].reshape(16, 4)[np.arange(16) ^ 1]
    np.testing.assert_array_equal(parts[4].reshape(32, 4), expected)


DIVIDED = r"""
#include <mma.h>
using namespace nvcuda;
// Threads of a warp that were apart meet again before the product, and different warps do different things.
extern "C" __global__ void divided(const half* a, float* out, volatile int* slow) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    int warp = threadIdx.x / 32;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, a, 16);
    if (warp % 2) wmma::fill_fragment(sum, 0.0f);
    else wmma::load_matrix_sync(sum, out, 16, wmma::mem_row_major);
    if (threadIdx.x % 3 == 0) slow[threadIdx.x] = 1;
    __syncwarp();
    if (warp < 3)
        for (int i = 0; i <= warp; ++i) wmma::mma_sync(sum, fa, fb, sum);
    wmma::store_matrix_sync(out + (warp + 1) * 256, sum, 16, wmma::mem_row_major);
}
"""


def test_warps_take_different_ways() -> None:
    check_divided(DIVIDED)


@pytest.mark.cpu_only
def test_threads_that_run_independently_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in the body in which each thread goes its own way; see engine/abi.h."""
    from cupola.cpu.compiler.emit import bodies
    from cupola.cpu.compiler.objects import recall

    monkeypatch.setattr(recall, "enabled", False)
    monkeypatch.setattr(bodies, "emit_body", functools.partial(bodies.emit_body, independent=True))
    check_divided(f"{DIVIDED}// independent")


def check_divided(source: str) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-3, 4, (16, 16)).astype(np.float16)
    out = np.zeros((5, 16, 16), np.float32)
    start = out[0] = rng.integers(-9, 9, (16, 16))
    run(source, "divided", 1, 128, a, out, np.zeros(128, np.int32))
    square = a.astype(np.float32) @ a.astype(np.float32).T
    for warp in range(4):
        origin = 0 if warp % 2 else start
        np.testing.assert_array_equal(out[warp + 1], origin + (warp + 1 if warp < 3 else 0) * square)
