"""Programs in cuTile, of the kinds of its samples: each compares its result with NumPy.

usage: cupola run --device cpu --model a100 tests/ecosystem/cutile_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import cuda.tile as ct
import numpy as np
from arrays import Array, agree, main, normal, random, softmax, stream, zeros

Const = ct.Constant[int]


def launch(grid, kernel, *arguments):
    ct.launch(int(stream.handle), (*grid, 1, 1)[:3], kernel, arguments)


@ct.kernel
def add_kernel(a, b, out, T: Const):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(a, index=(i,), shape=(T,)) + ct.load(b, index=(i,), shape=(T,)))


def vector_add():
    a, b, out = normal(1000), normal(1000), zeros(1000)
    launch((8,), add_kernel, a, b, out, 128)
    agree(out, a.host + b.host, 0)


@ct.kernel
def transpose_kernel(a, out, M: Const, N: Const):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, index=(j, i), tile=ct.transpose(ct.load(a, index=(i, j), shape=(M, N))))


def transpose():
    a, out = normal(100, 70), zeros(70, 100)
    launch((4, 3), transpose_kernel, a, out, 32, 32)
    agree(out, a.host.T, 0)


@ct.kernel
def softmax_kernel(a, out, T: Const):
    row = ct.load(a, index=(ct.bid(0), 0), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(out, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))


def row_softmax():
    a, out = normal(20, 500), zeros(20, 500)
    launch((20,), softmax_kernel, a, out, 512)
    agree(out, softmax(a.host), 1e-5)


@ct.kernel
def matmul_kernel(a, b, c, M: Const, N: Const, K: Const):
    i, j = ct.bid(0), ct.bid(1)
    sums = ct.full((M, N), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        x = ct.load(a, index=(i, k), shape=(M, K), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, index=(k, j), shape=(K, N), padding_mode=ct.PaddingMode.ZERO)
        sums = ct.mma(x, y, sums)
    ct.store(c, index=(i, j), tile=sums)


def matmul():
    a, b, c = normal(150, 104, dtype=np.float16), normal(104, 88, dtype=np.float16), zeros(150, 88)
    launch((3, 2), matmul_kernel, a, b, c, 64, 64, 32)
    agree(c, a.host.astype(np.float64) @ b.host, 1e-3)


@ct.kernel
def batch_kernel(a, b, c, M: Const, N: Const, K: Const):
    g, i, j = ct.bid(0), ct.bid(1), ct.bid(2)
    sums = ct.full((M, N), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=2, shape=(1, M, K))):
        x = ct.reshape(ct.load(a, index=(g, i, k), shape=(1, M, K)), (M, K))
        y = ct.reshape(ct.load(b, index=(g, k, j), shape=(1, K, N)), (K, N))
        sums = ct.mma(x, y, sums)
    ct.store(c, index=(g, i, j), tile=ct.reshape(ct.astype(sums, ct.float16), (1, M, N)))


def batch_matmul():
    half = np.float16
    a, b, c = normal(3, 64, 96, dtype=half), normal(3, 96, 64, dtype=half), zeros(3, 64, 64, dtype=half)
    ct.launch(int(stream.handle), (3, 2, 2), batch_kernel, (a, b, c, 32, 32, 32))
    agree(c, a.host.astype(np.float64) @ b.host.astype(np.float64), 2e-2)


@ct.kernel
def layer_norm_kernel(x, weight, bias, out, eps: ct.Constant[float], T: Const):
    row = ct.load(x, index=(ct.bid(0), 0), shape=(1, T))
    mean = ct.sum(row, axis=1, keepdims=True) / T
    centered = row - mean
    hat = centered * ct.rsqrt(ct.sum(centered * centered, axis=1, keepdims=True) / T + eps)
    w, b = ct.load(weight, index=(0,), shape=(T,)), ct.load(bias, index=(0,), shape=(T,))
    ct.store(out, index=(ct.bid(0), 0), tile=hat * ct.reshape(w, (1, T)) + ct.reshape(b, (1, T)))


def layer_norm():
    x, weight, bias, out = normal(20, 256), normal(256), normal(256), zeros(20, 256)
    launch((20,), layer_norm_kernel, x, weight, bias, out, 1e-5, 256)
    wide = x.host.astype(np.float64)
    hat = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    agree(out, hat * weight.host + bias.host, 1e-5)


@ct.kernel
def attention_kernel(q, k, v, out, D: Const, M: Const, N: Const):
    head, i = ct.bid(0), ct.bid(1)
    query = ct.reshape(ct.load(q, index=(head, i, 0), shape=(1, M, D)), (M, D))
    top = ct.full((M, 1), -1e30, dtype=ct.float32)
    total = ct.full((M, 1), 0, dtype=ct.float32)
    sums = ct.full((M, D), 0, dtype=ct.float32)
    for j in range(ct.num_tiles(k, axis=1, shape=(1, N, D))):
        key = ct.reshape(ct.load(k, index=(head, j, 0), shape=(1, N, D)), (N, D))
        scores = ct.mma(query, ct.transpose(key), ct.full((M, N), 0, dtype=ct.float32)) * 0.125
        higher = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        weights = ct.exp(scores - higher)
        lower = ct.exp(top - higher)
        total = total * lower + ct.sum(weights, axis=1, keepdims=True)
        value = ct.reshape(ct.load(v, index=(head, j, 0), shape=(1, N, D)), (N, D))
        sums = ct.mma(ct.astype(weights, ct.float16), value, sums * lower)
        top = higher
    ct.store(out, index=(head, i, 0), tile=ct.reshape(ct.astype(sums / total, ct.float16), (1, M, D)))


def attention():
    q, k, v, out = (normal(2, 128, 64, dtype=np.float16) for _ in range(4))
    launch((2, 2), attention_kernel, q, k, v, out, 64, 64, 32)
    scores = q.host.astype(np.float64) @ k.host.astype(np.float64).transpose(0, 2, 1) * 0.125
    agree(out, softmax(scores) @ v.host.astype(np.float64), 1e-2)


@ct.kernel
def fft_kernel(x, cosines, sines, turn_real, turn_imaginary, real, imaginary, R: Const):
    signal = ct.reshape(ct.load(x, index=(ct.bid(0), 0, 0), shape=(1, R, R)), (R, R))
    c, s = ct.load(cosines, index=(0, 0), shape=(R, R)), ct.load(sines, index=(0, 0), shape=(R, R))
    zero = ct.full((R, R), 0, dtype=ct.float32)
    re, im = ct.mma(c, signal, zero), ct.mma(s, signal, zero)
    tr, ti = ct.load(turn_real, index=(0, 0), shape=(R, R)), ct.load(turn_imaginary, index=(0, 0), shape=(R, R))
    re, im = re * tr - im * ti, re * ti + im * tr
    last_re = ct.mma(re, c, zero) - ct.mma(im, s, zero)
    last_im = ct.mma(re, s, zero) + ct.mma(im, c, zero)
    ct.store(real, index=(ct.bid(0), 0, 0), tile=ct.reshape(ct.transpose(last_re), (1, R, R)))
    ct.store(imaginary, index=(ct.bid(0), 0, 0), tile=ct.reshape(ct.transpose(last_im), (1, R, R)))


def fft():
    """Transforms of 256 numbers in four steps (Bailey 1990): columns, turns, rows, transposition."""
    r, batch = 16, 3
    i = np.arange(r)
    wave, turn = (np.exp(-2j * np.pi * np.outer(i, i) / n) for n in (r, r * r))
    parts = [Array(np.ascontiguousarray(p, np.float32)) for p in (wave.real, wave.imag, turn.real, turn.imag)]
    x, real, imaginary = normal(batch, r, r), zeros(batch, r, r), zeros(batch, r, r)
    launch((batch,), fft_kernel, x, *parts, real, imaginary, r)
    expected = np.fft.fft(x.host.reshape(batch, -1).astype(np.float64)).reshape(batch, r, r)
    agree(real, expected.real, 1e-3)
    agree(imaginary, expected.imag, 1e-3)


@ct.kernel
def experts_kernel(x, order, expert_of, weights, out, M: Const, N: Const, K: Const):
    i, j = ct.bid(0), ct.bid(1)
    rows = ct.load(order, index=(i,), shape=(M,))
    expert = ct.load(expert_of, index=(i,), shape=())
    sums = ct.full((M, N), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(weights, axis=1, shape=(1, K, N))):
        columns = k * K + ct.arange(K, dtype=ct.int32)
        tokens = ct.gather(x, (rows[:, None], columns[None, :]))
        weight = ct.reshape(ct.load(weights, index=(expert, k, j), shape=(1, K, N)), (K, N))
        sums = ct.mma(tokens, weight, sums)
    columns = j * N + ct.arange(N, dtype=ct.int32)
    ct.scatter(out, (rows[:, None], columns[None, :]), sums)


def mixture_of_experts():
    """Tokens go to one of three experts; rows of a tile belong to one expert, and missing ones lie outside."""
    tokens, depth, width, experts, tile = 50, 64, 64, 3, 16
    chosen = random.integers(0, experts, tokens)
    order, expert_of = [], []
    for e in range(experts):
        own = list(np.flatnonzero(chosen == e))
        own += [tokens] * (-len(own) % tile)
        order += own
        expert_of += [e] * (len(own) // tile)
    x, out = normal(tokens, depth, dtype=np.float16), zeros(tokens, width)
    weights = normal(experts, depth, width, dtype=np.float16)
    lists = [Array(np.array(n, np.int32)) for n in (order, expert_of)]
    launch((len(expert_of), 2), experts_kernel, x, *lists, weights, out, tile, 32, 32)
    agree(out, np.einsum("tk,tkn->tn", x.host.astype(np.float64), weights.host[chosen].astype(np.float64)), 1e-2)


@ct.kernel
def histogram_kernel(x, out, T: Const):
    values = ct.load(x, index=(ct.bid(0),), shape=(T,))
    ct.atomic_add(out, (values,), 1)


def histogram():
    x, out = Array(random.integers(0, 40, 2048).astype(np.int32)), zeros(40, dtype=np.int32)
    launch((8,), histogram_kernel, x, out, 256)
    agree(out, np.bincount(x.host, minlength=40), 0)


PROGRAMS = {
    f.__name__: f
    for f in (
        vector_add, transpose, row_softmax, matmul, batch_matmul,
        layer_norm, attention, fft, mixture_of_experts, histogram,
    )
}  # fmt: skip

if __name__ == "__main__":
    main(PROGRAMS, sys.argv[1:])
