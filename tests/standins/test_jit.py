"""Kernels in Python for the stand-in for CuPy: what they compute, and what is not translated."""

from __future__ import annotations

import sys

import pytest

from tests import processes

KERNELS = """
import cupy, cupy as cp, numpy
from cupyx import jit

SCALE = 3


@jit.rawkernel()
def scale(x, y, size):
    tid = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    ntid = jit.gridDim.x * jit.blockDim.x
    for i in range(tid, size, ntid):
        y[i] = x[i] * SCALE


x = cp.arange(1000, dtype="f")
y = cp.empty_like(x)
scale((4,), (64,), (x, y, numpy.uint32(1000)))
assert (y == 3 * x).all()
scale[4, 64](x[::2], y[1::2], 500)
assert (y[1::2] == 3 * x[::2]).all() and len(scale.cached_codes) == 2


@jit.rawkernel()
def turn(x, y):
    'In shared memory.'
    s = jit.shared_memory(cp.float32, 64)
    t = jit.threadIdx.x
    s[t] = x[t]
    jit.syncthreads()
    y[t] = s[jit.blockDim.x - 1 - t]


turn((1,), (64,), (x, y))
assert (y[:64] == x[:64][::-1]).all()


@jit.rawkernel(device=True)
def clamp(v, low, high):
    if v < low:
        return low
    return min(v, high)


@jit.rawkernel()
def several(a, out, hist, most):
    i, j = jit.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        v = a[i, j]
        out[i, j] = cp.sqrt(clamp(v, 2.0, 9.0)) + (1 if not v <= 5 else 0) + 2**3 + 7 / 2
        out[i, j] += i // 2 - i % 3 + (i << 1) + numpy.float32(0.5)
        jit.atomic_add(hist, int(v) % 4, 1)
        jit.atomic_max(most, 0, int(v))
        jit.atomic_sub(out, (i, j), 1.0)


a = cp.arange(20.0).reshape(4, 5)[:, ::-1]
out, hist, most = cp.empty((4, 5)), cp.zeros(4, "i4"), cp.zeros(1, "i4")
several((1, 1), (8, 8), (a, out, hist, most))
v, i = a.get(), numpy.arange(4)[:, None]
right = numpy.sqrt(numpy.clip(v, 2, 9)) + (v > 5) + 8 + 3.5 + (i // 2 - i % 3 + (i << 1)) + 0.5 - 1
numpy.testing.assert_allclose(out.get(), right)
assert hist.tolist() == [5, 5, 5, 5] and most.tolist() == [19]


@jit.rawkernel()
def total(x):
    v = x[jit.threadIdx.x]
    d = 16
    while True:
        if d == 0:
            break
        v += jit.shfl_down_sync(0xFFFFFFFF, v, d)
        d //= 2
    if jit.laneid() == 0:
        x[0] = v


w = cp.arange(32, dtype="i4")
total((1,), (32,), (w,))
assert int(w[0]) == 496


@jit.rawkernel()
def loops(x):
    s = jit.shared_memory(cp.int64, None)
    s[jit.threadIdx.x] = x[jit.threadIdx.x]
    jit.syncthreads()
    for k in jit.range(8, unroll=True):
        x[jit.threadIdx.x] += s[k]
    for k in range(3, 0, -1):
        x[jit.threadIdx.x] += k


q = cp.arange(8)
loops((1,), (8,), (q,), shared_mem=64)
assert q.tolist() == [k + 28 + 6 for k in range(8)]
"""

REFUSED = """
import cupy as cp, numpy
from cupyx import jit

q = cp.arange(8)


def told(function, *given):
    try:
        jit.rawkernel()(function)((1,), (1,), given or (q,))
    except Exception as error:
        print(type(error).__name__, error)


def a_list(x):
    x[0] = [1, 2]


def a_with(x):
    with x:
        pass


def a_slice(x):
    x[0:2] = 1


def a_call(x):
    x[0] = numpy.linalg.norm(x)


def an_index(x):
    x[0, 0] = 1


def in_a_branch(x):
    if x[0] > 0:
        v = 1
    x[0] = v


for function in (a_list, a_with, a_slice, a_call, an_index, in_a_branch):
    told(function)
told(a_list, q, q)
told(a_list, "text")
told(eval("lambda x: x"))
for function in (jit.syncthreads, lambda: jit.cg, lambda: jit.syncthread, lambda: jit.rawkernel(mode="numpy")):
    try:
        function()
    except Exception as error:
        print(type(error).__name__, error)
"""
TOLD = [
    "Unsupported cupyx.jit does not translate the expression [1, 2] ({file}:16); cupy.RawKernel takes CUDA C++",
    "Unsupported cupyx.jit does not translate the statement With ({file}:20)",
    "Unsupported cupyx.jit does not translate slices ({file}:25)",
    "Unsupported cupyx.jit does not translate the call of numpy.linalg.norm ({file}:29)",
    "Unsupported cupyx.jit does not translate 2 indices of an array of 1 dimensions ({file}:33)",
    "Unsupported cupyx.jit does not translate v, which is no number ({file}:39)",
    "TypeError a_list() takes 1 arguments, and 2 were given",
    "TypeError an argument of a_list() is a str: arrays and numbers are taken",
    "ValueError cupyx.jit reads the source of <lambda>(), and there is none",
    "RuntimeError cupyx.jit.syncthreads is for kernels of jit.rawkernel",
    "AttributeError cupola's stand-in for CuPy has no cupyx.jit.cg; syncthreads and syncwarp are there",
    "AttributeError cupola's stand-in for CuPy has no cupyx.jit.syncthread; did you mean 'syncthreads'?",
    "NotImplementedError rawkernel(mode='numpy')",
]
FAULT = """
import cupy as cp
from cupyx import jit


@jit.rawkernel()
def beyond(x):
    x[jit.threadIdx.x] = 1


x = cp.zeros(8)
beyond((1,), (16,), (x,))
x.get()
"""


def run(folder, text, *options):
    program = folder / "program.py"
    program.write_text(text)
    command = [sys.executable, "-m", "cupola", "run", *options, str(program)]
    return processes.run(command)


def test_what_kernels_compute(tmp_path):
    done = run(tmp_path, KERNELS, "--cupy")
    assert done.returncode == 0, done.stderr


def test_what_is_not_translated_says_where(tmp_path):
    done = run(tmp_path, REFUSED, "--cupy")
    lines = done.stdout.splitlines()
    assert len(lines) == len(TOLD), done.stdout + done.stderr
    for line, told in zip(lines, TOLD, strict=True):
        assert line.startswith(told.format(file=tmp_path / "program.py"))


@pytest.mark.cpu_only
def test_a_fault_names_the_line_of_python(tmp_path):
    done = run(tmp_path, FAULT, "--device", "cpu")
    assert done.returncode == 1
    assert f"at {tmp_path / 'program.py'}:8 in beyond" in done.stderr and "x[jit.threadIdx.x] = 1" in done.stderr
