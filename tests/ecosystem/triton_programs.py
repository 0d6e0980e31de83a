"""Programs in Triton, of the kinds of its tutorials: each compares its result with NumPy.

usage: cupola run --device cpu tests/ecosystem/triton_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import numpy as np
import triton
import triton.language as tl
from arrays import Array, agree, main, normal, softmax, zeros


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


def vector_add():
    x, y, out = normal(5000), normal(5000), zeros(5000)
    add_kernel[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](x, y, out, 5000, BLOCK=1024)
    agree(out, x.host + y.host, 0)


@triton.jit
def softmax_kernel(out, x, rows, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


def row_softmax():
    x, out = normal(37, 781), zeros(37, 781)
    softmax_kernel[(8,)](out, x, 37, 781, BLOCK=1024)
    agree(out, softmax(x.host), 1e-5)


@triton.jit
def leaky(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune([triton.Config({"TILE": 64, "DEPTH": 32, "GROUP": 4}, num_warps=4)], key=["M", "N", "K"])
@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    TILE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    across, down = tl.cdiv(N, TILE), tl.cdiv(M, TILE)
    pid = tl.program_id(0)
    first = pid // (GROUP * across) * GROUP
    size = min(down - first, GROUP)
    tile_m = first + pid % (GROUP * across) % size
    tile_n = pid % (GROUP * across) // size
    m = (tile_m * TILE + tl.arange(0, TILE)) % M
    n = (tile_n * TILE + tl.arange(0, TILE)) % N
    k = tl.arange(0, DEPTH)
    left, right = a + m[:, None] * stride_a + k[None, :], b + k[:, None] * stride_b + n[None, :]
    sums = tl.zeros((TILE, TILE), tl.float32)
    for step in range(0, tl.cdiv(K, DEPTH)):
        x = tl.load(left, mask=k[None, :] < K - step * DEPTH, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * DEPTH, other=0.0)
        sums = tl.dot(x, y, sums)
        left += DEPTH
        right += DEPTH * stride_b
    if ACTIVATION == "leaky":
        sums = leaky(sums)
    m, n = tile_m * TILE + tl.arange(0, TILE), tile_n * TILE + tl.arange(0, TILE)
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * stride_c + n[None, :], sums.to(tl.float16), mask=inside)


def matmul():
    a, b = normal(150, 104, dtype=np.float16), normal(104, 88, dtype=np.float16)
    c = zeros(150, 88, dtype=np.float16)
    grid = lambda meta: (triton.cdiv(150, meta["TILE"]) * triton.cdiv(88, meta["TILE"]),)  # noqa: E731
    matmul_kernel[grid](a, b, c, 150, 88, 104, 104, 88, 88, ACTIVATION="leaky")
    product = a.host.astype(np.float64) @ b.host
    agree(c, np.where(product >= 0, product, 0.01 * product), 1e-2)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(kept, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


def philox(seed: int, i: np.ndarray) -> np.ndarray:
    """The first word of Philox 4x32 with ten rounds (Salmon et al. 2011), of 32-bit counters."""
    low = np.uint64(0xFFFFFFFF)
    a, b, c, d = i.astype(np.uint64), *(np.zeros(i.shape, np.uint64) for _ in range(3))
    key0, key1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        shift = np.uint64(32)
        a, b, c, d = (second >> shift) ^ b ^ key0, second & low, (first >> shift) ^ d ^ key1, first & low
        key0, key1 = key0 + np.uint64(0x9E3779B9) & low, key1 + np.uint64(0xBB67AE85) & low
    return a


def dropout():
    x, out = normal(3000), zeros(3000)
    dropout_kernel[(3,)](x, out, 3000, 0.3, 123, BLOCK=1024)
    signed = philox(123, np.arange(3000)).astype(np.uint32).view(np.int32).astype(np.int64)
    kept = np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10) > 0.3
    assert 1900 < kept.sum() < 2300
    agree(out, np.where(kept, x.host / np.float32(0.7), 0), 1e-6)


@triton.jit
def layer_norm_kernel(x, out, weight, bias, mean_out, scale_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        sums += tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.sum(sums, axis=0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.where(i < columns, tl.load(x + row * columns + i, mask=i < columns, other=0.0) - mean, 0.0)
        squares += v * v
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(scale_out + row, scale)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = i < columns
        v = (tl.load(x + row * columns + i, mask=inside) - mean) * scale
        v = v * tl.load(weight + i, mask=inside) + tl.load(bias + i, mask=inside)
        tl.store(out + row * columns + i, v, mask=inside)


@triton.jit
def layer_norm_backward(
    dx, dy, dw, db, x, weight, mean, scale, locks, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    up = tl.load(dy + row * columns + i, mask=inside, other=0.0)
    hat = (tl.load(x + row * columns + i, mask=inside, other=0.0) - tl.load(mean + row)) * tl.load(scale + row)
    hat = tl.where(inside, hat, 0.0)
    wdy = tl.load(weight + i, mask=inside, other=0.0) * up
    c1, c2 = tl.sum(hat * wdy, axis=0) / columns, tl.sum(wdy, axis=0) / columns
    tl.store(dx + row * columns + i, (wdy - hat * c1 - c2) * tl.load(scale + row), mask=inside)
    group = row % GROUPS
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    tl.store(dw + group * columns + i, tl.load(dw + group * columns + i, mask=inside) + up * hat, mask=inside)
    tl.store(db + group * columns + i, tl.load(db + group * columns + i, mask=inside) + up, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


def layer_norm():
    rows, columns = 24, 300
    x, out, weight, bias = normal(rows, columns), zeros(rows, columns), normal(columns), normal(columns)
    mean, scale = zeros(rows), zeros(rows)
    layer_norm_kernel[(rows,)](x, out, weight, bias, mean, scale, columns, 1e-5, BLOCK=128)
    wide = x.host.astype(np.float64)
    deviation = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    hat = (wide - wide.mean(1, keepdims=True)) / deviation
    agree(out, hat * weight.host + bias.host, 1e-5)
    dx, dy, dw, db = zeros(rows, columns), normal(rows, columns), zeros(4, columns), zeros(4, columns)
    locks = zeros(4, dtype=np.int32)
    layer_norm_backward[(rows,)](dx, dy, dw, db, x, weight, mean, scale, locks, columns, GROUPS=4, BLOCK=512)
    wdy = dy.host * weight.host.astype(np.float64)
    expected = (wdy - hat * (hat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) / deviation
    agree(dx, expected, 1e-4)
    np.testing.assert_allclose(dw.host.sum(0), (dy.host * hat).sum(0), atol=1e-4)
    np.testing.assert_allclose(db.host.sum(0), dy.host.sum(0), atol=1e-4)


@triton.jit
def attention_kernel(
    q, k, v, out, scale, heads, length,
    D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    start_m = tl.program_id(0)
    base = tl.program_id(1) * length * D
    m = start_m * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    query = tl.load(q + base + m[:, None] * D + d[None, :])
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    end = (start_m + 1) * ROWS if CAUSAL else length
    for start in range(0, end, STEP):
        n = start + tl.arange(0, STEP)
        key = tl.load(k + base + n[None, :] * D + d[:, None])
        weights = tl.dot(query, key) * (scale * 1.44269504)
        if CAUSAL:
            weights = tl.where(m[:, None] >= n[None, :], weights, -1e6)
        higher = tl.maximum(top, tl.max(weights, 1))
        weights = tl.exp2(weights - higher[:, None])
        lower = tl.exp2(top - higher)
        total = total * lower + tl.sum(weights, 1)
        value = tl.load(v + base + n[:, None] * D + d[None, :])
        sums = tl.dot(weights.to(tl.float16), value, sums * lower[:, None])
        top = higher
    tl.store(out + base + m[:, None] * D + d[None, :], (sums / total[:, None]).to(tl.float16))


def attention():
    heads, length, width = 2, 128, 64
    q, k, v, out = (normal(heads, length, width, dtype=np.float16) for _ in range(4))
    for causal in (False, True):
        grid = (length // 64, heads)
        attention_kernel[grid](q, k, v, out, 0.125, heads, length, D=width, ROWS=64, STEP=32, CAUSAL=causal)
        scores = q.host.astype(np.float64) @ k.host.astype(np.float64).transpose(0, 2, 1) * 0.125
        if causal:
            scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -1e6)
        agree(out, softmax(scores) @ v.host.astype(np.float64), 1e-2)


@triton.jit
def grouped_kernel(addresses, sizes, groups, TILE: tl.constexpr, DEPTH: tl.constexpr):
    tile = tl.program_id(0)
    done = 0
    for g in range(groups):
        M, N, K = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        across = tl.cdiv(N, TILE)
        tiles = tl.cdiv(M, TILE) * across
        while tile >= done and tile < done + tiles:
            a = tl.load(addresses + g * 3).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses + g * 3 + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses + g * 3 + 2).to(tl.pointer_type(tl.float16))
            m = (tile - done) // across * TILE + tl.arange(0, TILE)
            n = (tile - done) % across * TILE + tl.arange(0, TILE)
            k = tl.arange(0, DEPTH)
            sums = tl.zeros((TILE, TILE), tl.float32)
            for start in range(0, K, DEPTH):
                x = tl.load(a + m[:, None] * K + (start + k)[None, :])
                y = tl.load(b + (start + k)[:, None] * N + n[None, :])
                sums += tl.dot(x, y)
            tl.store(c + m[:, None] * N + n[None, :], sums.to(tl.float16))
            tile += tl.num_programs(0)
        done += tiles


def grouped_gemm():
    shapes = [(64, 64, 64), (96, 32, 32), (32, 128, 96)]
    half = np.float16
    groups = [(normal(m, k, dtype=half), normal(k, n, dtype=half), zeros(m, n, dtype=half)) for m, n, k in shapes]
    addresses = Array(np.array([[x.data_ptr() for x in group] for group in groups], np.int64))
    sizes = Array(np.array(shapes, np.int32))
    grouped_kernel[(5,)](addresses, sizes, len(shapes), TILE=32, DEPTH=32)
    for a, b, c in groups:
        agree(c, a.host.astype(np.float64) @ b.host, 2e-2)


@triton.jit
def descriptor_kernel(a, b, c, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [TILE, DEPTH])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [DEPTH, TILE])
    product = tl.make_tensor_descriptor(c, [M, N], [N, 1], [TILE, TILE])
    across = tl.cdiv(N, TILE)
    for tile in range(tl.program_id(0), tl.cdiv(M, TILE) * across, tl.num_programs(0)):
        m, n = tile // across * TILE, tile % across * TILE
        sums = tl.zeros((TILE, TILE), tl.float32)
        for k in range(0, K, DEPTH):
            sums = tl.dot(left.load([m, k]), right.load([k, n]), sums)
        product.store([m, n], sums)


def descriptors():
    """A persistent product by tensor descriptors, which are tensor maps (TMA) where there are such."""
    scratch = []

    def allocate(size, alignment, stream):
        scratch.append(zeros(size, dtype=np.uint8))
        return scratch[-1]

    triton.set_allocator(allocate)
    a, b, c = normal(160, 192, dtype=np.float16), normal(192, 96, dtype=np.float16), zeros(160, 96)
    descriptor_kernel[(3,)](a, b, c, 160, 96, 192, TILE=64, DEPTH=64)
    agree(c, a.host.astype(np.float64) @ b.host, 1e-3)


PROGRAMS = {
    f.__name__: f for f in (vector_add, row_softmax, matmul, dropout, layer_norm, attention, grouped_gemm, descriptors)
}

if __name__ == "__main__":
    main(PROGRAMS, sys.argv[1:])
