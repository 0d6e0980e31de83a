"""Compile the kernels of tests/cpu/programs/test_triton.py to PTX, by Triton, for compute capability 8.0 and 9.0.

Needs ``pip install triton``, and no GPU. The PTX is kept in tests/cpu/programs/triton, so tests need no Triton.

usage: python tools/triton_ptx.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import re
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

FOLDER = Path(__file__).parent.parent / "tests" / "cpu" / "programs" / "triton"
WARPS = 4
FLOATS = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}


@triton.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + i, v / tl.sum(v, 0), mask=i < n)


@triton.jit
def matmul(a, b, c, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, DEPTH)
    sums = tl.zeros((TILE, TILE), tl.float32)
    for k0 in range(0, K, DEPTH):
        left = tl.load(a + m[:, None] * K + (k0 + k)[None, :])
        right = tl.load(b + (k0 + k)[:, None] * N + n[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums)


@triton.jit
def persistent(a, b, c, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    across = N // TILE
    k = tl.arange(0, DEPTH)
    for tile in tl.range(tl.program_id(0), M // TILE * across, tl.num_programs(0), flatten=True):
        m = tile // across * TILE + tl.arange(0, TILE)
        n = tile % across * TILE + tl.arange(0, TILE)
        sums = tl.zeros((TILE, TILE), tl.float32)
        for k0 in range(0, K, DEPTH):
            left = tl.load(a + m[:, None] * K + (k0 + k)[None, :])
            right = tl.load(b + (k0 + k)[:, None] * N + n[None, :])
            sums = tl.dot(left, right, sums)
        tl.store(c + m[:, None] * N + n[None, :], sums)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def scan(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@triton.jit
def sort(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def attention(q, k, v, out, length, DIM: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, DIM)
    query = tl.load(q + m[:, None] * DIM + d[None, :])
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, DIM), tl.float32)
    for start in range(0, length, STEP):
        n = start + tl.arange(0, STEP)
        key = tl.load(k + n[None, :] * DIM + d[:, None])
        value = tl.load(v + n[:, None] * DIM + d[None, :])
        weights = tl.dot(query, key) * 0.125
        higher = tl.maximum(highest, tl.max(weights, 1))
        scale = tl.exp(highest - higher)
        weights = tl.exp(weights - higher[:, None])
        total = total * scale + tl.sum(weights, 1)
        sums = tl.dot(weights.to(tl.float16), value, sums * scale[:, None])
        highest = higher
    tl.store(out + m[:, None] * DIM + d[None, :], sums / total[:, None])


@triton.jit
def scaled(x, out, M, N, factor, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [ROWS, COLUMNS])
    across = tl.cdiv(N, COLUMNS)
    for tile in range(tl.program_id(0), tl.cdiv(M, ROWS) * across, tl.num_programs(0)):
        m, n = tile // across * ROWS, tile % across * COLUMNS
        target.store([m, n], source.load([m, n]) * factor)


@triton.jit
def described(a, b, c, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
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


KERNELS = {
    "softmax": (softmax, {"out": "*fp32", "x": "*fp32", "n": "i32"}, {"BLOCK": 1024}),
    "matmul_f16": (
        matmul,
        FLOATS,
        {"TILE": 64, "DEPTH": 32},
    ),
    "matmul_tf32": (
        matmul,
        {"a": "*fp32", "b": "*fp32", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
        {"TILE": 32, "DEPTH": 16},
    ),
    "histogram": (histogram, {"x": "*i32", "out": "*i32", "n": "i32"}, {"BLOCK": 512}),
    "scan": (scan, {"x": "*fp32", "out": "*fp32"}, {"BLOCK": 1024}),
    "sort": (sort, {"x": "*i32", "out": "*i32"}, {"BLOCK": 512}),
    "attention": (
        attention,
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "length": "i32"},
        {"DIM": 64, "ROWS": 64, "STEP": 32},
    ),
}

HOPPER = {
    "matmul_f16_90": (matmul, FLOATS, {"TILE": 64, "DEPTH": 64}),
    "matmul_e4m3_90": (matmul, {**FLOATS, "a": "*fp8e4nv", "b": "*fp8e4nv"}, {"TILE": 64, "DEPTH": 64}),
    "matmul_tf32_90": (matmul, {**FLOATS, "a": "*fp32", "b": "*fp32"}, {"TILE": 64, "DEPTH": 32}),
    "persistent_90": (persistent, FLOATS, {"TILE": 64, "DEPTH": 64}),
    "scaled_90": (
        scaled,
        {"x": "*fp32", "out": "*fp32", "M": "i32", "N": "i32", "factor": "fp32"},
        {"ROWS": 32, "COLUMNS": 32},
    ),
    "described_90": (described, FLOATS, {"TILE": 64, "DEPTH": 64}),
    "attention_90": (*KERNELS["attention"][:2], {"DIM": 64, "ROWS": 64, "STEP": 64}),
}
"""Those with `wgmma` or tensor descriptors, for compute capability 9.0."""


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, (kernel, signature, constants) in (KERNELS | HOPPER).items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        source = ASTSource(
            fn=kernel,
            signature={**signature, **dict.fromkeys(constants, "constexpr")},
            constexprs=constants,
            attrs={(i,): [["tt.divisibility", 16]] for i in range(len(signature))},
        )
        target = GPUTarget("cuda", 90 if name in HOPPER else 80, 32)
        options = {"num_warps": WARPS, "ptx_version": 88}  # which drivers of CUDA 12.9 take, too
        compiled = triton.compile(source, target=target, options=options)
        text = re.sub(r'\.file\t(\d+) "[^"]*?([^/"]+)"', r'.file \1 "\2"', compiled.asm["ptx"])
        text = re.sub(r"\n\t\.section\t\.debug_(?!str).*?\n\t}", "", text, flags=re.DOTALL)  # names stay, for .loc
        head = f"// kernel {compiled.metadata.name}, {compiled.metadata.shared} bytes of dynamic shared memory"
        scratch = compiled.metadata.global_scratch_size
        head += f", {scratch} of scratch memory a block\n" if scratch else "\n"
        (FOLDER / f"{name}.ptx").write_text(head + text)
        print(name, len(text.splitlines()), "lines")


if __name__ == "__main__":
    main()
