"""Calls that are not inlined: recursion, pointers to functions, large functions, and what may happen in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.engine.kernels import run

RECURSION = """
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void k(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }
"""


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def test_recursion(engine: str) -> None:
    out = np.full(70, -1, np.int32)
    run(RECURSION + engine, "k", 1, 70, out)
    assert out.tolist() == [fibonacci(i % 12) for i in range(70)]


MUTUAL = """
struct Node { int value, left, right; };
__device__ int odd(const Node *, int, int);
__device__ __noinline__ int even(const Node *nodes, int at, int depth) {
    if (at < 0) return depth;
    int here[3] = {nodes[at].value, nodes[at].left, nodes[at].right};
    int sum = 0;
    for (int i = 1; i < 3; i++) sum += odd(nodes, here[(i + at) % 2 + 1], depth + 1) * i;
    return sum + here[sum & 1];
}
__device__ __noinline__ int odd(const Node *nodes, int at, int depth) {
    if (at < 0) return -depth;
    double kept = nodes[at].value * 0.5;
    int sum = even(nodes, nodes[at].left, depth + 1);
    return sum + (int)(kept * 2) + even(nodes, nodes[at].right, depth + 1);
}
extern "C" __global__ void k(const Node *nodes, int *out, int n) {
    int at = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (at < n) out[at] = at % 3 ? even(nodes, at, 0) : odd(nodes, at, 0);
}
"""


def test_mutual_recursion_with_local_arrays(engine: str) -> None:
    count = 90
    nodes = np.full((count, 3), -1, np.int32)
    for i in range(count):
        nodes[i, 0] = i * 7 % 11
        for side in (1, 2):
            child = 3 * i + side
            nodes[i, side] = child if child < count and (i + side) % 4 else -1

    def even(at: int, depth: int) -> int:
        if at < 0:
            return depth
        here = nodes[at].tolist()
        total = sum(odd(here[(i + at) % 2 + 1], depth + 1) * i for i in (1, 2))
        return total + here[total & 1]

    def odd(at: int, depth: int) -> int:
        if at < 0:
            return -depth
        value, left, right = nodes[at].tolist()
        return even(left, depth + 1) + value + even(right, depth + 1)

    out = np.zeros(count, np.int32)
    run(MUTUAL + engine, "k", 2, 64, nodes, out, np.int32(count))
    assert out.tolist() == [even(i, 0) if i % 3 else odd(i, 0) for i in range(count)]


VIRTUAL = """
struct Shape {
    float scale;
    __device__ virtual float area(float k) const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area(float k) const override { return side * side * k + scale; }
};
struct Circle : Shape {
    float radius;
    __device__ Circle(float r) : radius(r) {}
    __device__ float area(float k) const override { return 3 * radius * radius * k - scale; }
};
extern "C" __global__ void k(float *out, int same) {
    int i = threadIdx.x;
    bool square = same ? blockIdx.x : i % 3;
    Shape *shape = square ? (Shape *)new Square(i) : (Shape *)new Circle(i);
    shape->scale = 1;
    out[blockIdx.x * blockDim.x + i] = shape->area(2);
    delete shape;
}
"""


@pytest.mark.parametrize("same", [0, 1])
def test_virtual_functions(engine: str, same: int) -> None:
    out = np.zeros(80, np.float32)
    run(VIRTUAL + engine, "k", 2, 40, out, np.int32(same))
    squares = [i // 40 if same else i % 40 % 3 for i in range(80)]
    assert out.tolist() == [
        2 * i**2 + 1 if square else 6 * i**2 - 1 for i, square in zip([*range(40)] * 2, squares, strict=True)
    ]


POINTERS = """
typedef int (*Operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int sub(int a, int b) { return a - b; }
__device__ int mul(int a, int b) { return a * b; }
__device__ int power(int a, int b) { return b ? a * power(a, b - 1) : 1; }
__device__ Operation table[4] = {add, sub, mul, power};
extern "C" __global__ void k(int *out, int shift) {
    int i = threadIdx.x, sum = 0;
    for (int round = 0; round < 3; round++) sum += table[((i + round) >> shift) & 3](i % 7, round + 1);
    Operation chosen = shift ? mul : sub;
    out[i] = sum + chosen(i, 2);
}
"""


@pytest.mark.parametrize("shift", [0, 3, 20])
def test_pointers_to_functions_in_memory(engine: str, shift: int) -> None:
    table = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a**b]
    out = np.zeros(96, np.int32)
    run(POINTERS + engine, "k", 1, 96, out, np.int32(shift))
    assert out.tolist() == [
        sum(table[((i + r) >> shift) & 3](i % 7, r + 1) for r in range(3)) + (i * 2 if shift else i - 2)
        for i in range(96)
    ]


BIG = """
struct Big { double values[9]; short tail; };
__device__ __noinline__ Big turn(Big x, char by, int depth) {
    Big result;
    for (int i = 0; i < 9; i++) result.values[(i + by) % 9] = x.values[i] + 1;
    result.tail = x.tail + by;
    return depth ? turn(result, by + 1, depth - 1) : result;
}
extern "C" __global__ void k(Big *x) { x[threadIdx.x] = turn(x[threadIdx.x], threadIdx.x % 5, threadIdx.x % 3); }
"""


@pytest.fixture
def larger_stack() -> Iterator[None]:
    """Room for three calls of turn(), of which ptxas gives each 344 bytes; 1024 bytes are not enough."""
    Device(0).set_current()
    limit = driver.CUlimit.CU_LIMIT_STACK_SIZE
    status, before = driver.cuCtxGetLimit(limit)
    ok((status,))
    ok(driver.cuCtxSetLimit(limit, 4096))
    yield
    ok(driver.cuCtxSetLimit(limit, before))


@pytest.mark.usefixtures("larger_stack")
def test_large_arguments_and_results(engine: str) -> None:
    kind = np.dtype([("values", "f8", 9), ("tail", "i2")], align=True)
    data = np.zeros(40, kind)
    data["values"] = np.arange(360).reshape(40, 9)
    data["tail"] = np.arange(40)
    expected = data.copy()
    for i in range(40):
        by = i % 5
        for step in range(i % 3 + 1):
            expected[i]["values"] = np.roll(expected[i]["values"], by + step) + 1
            expected[i]["tail"] += by + step
    run(BIG + engine, "k", 1, 40, data)
    assert (data["values"] == expected["values"]).all()
    assert (data["tail"] == expected["tail"]).all()


BARRIERS = """
__device__ int turn(int *shared, int value, int depth) {
    shared[threadIdx.x] = value;
    __syncthreads();
    int next = shared[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    next += __shfl_xor_sync(~0u, next, 1);
    int any = __syncthreads_or(next == 3);
    return depth ? turn(shared, next + any, depth - 1) : next;
}
extern "C" __global__ void k(int *out, int depth) {
    __shared__ int shared[128];
    out[blockIdx.x * blockDim.x + threadIdx.x] = turn(shared, threadIdx.x, depth);
}
"""


@pytest.mark.parametrize("engine", ["chosen", pytest.param("independent", marks=pytest.mark.cpu_only)], indirect=True)
def test_barriers_and_warp_operations_in_recursion(engine: str) -> None:
    values = np.arange(128)
    for _ in range(4):
        values = np.roll(values, -1)
        pairs = values.reshape(-1, 2)
        values = np.repeat(pairs.sum(axis=1), 2)
        values, result = values + int((values == 3).any()), values
    out = np.zeros(256, np.int32)
    run(BARRIERS + engine, "k", 2, 128, out, np.int32(3))
    assert out.reshape(2, 128).tolist() == [result.tolist()] * 2


EARLY = """
__device__ int descend(int n, int *out) {
    if (n == 5 && threadIdx.x % 2) { out[threadIdx.x] = -5; asm volatile("exit;"); }
    return n > 8 ? n : descend(n + 1, out) + 1;
}
extern "C" __global__ void k(int *out) {
    int sum = descend(threadIdx.x % 8, out);
    out[threadIdx.x] = sum + __popc(__activemask());
}
"""


def test_threads_that_end_in_calls(engine: str) -> None:
    out = np.zeros(32, np.int32)
    run(EARLY + engine, "k", 1, 32, out)
    ends = [i % 2 and i % 8 <= 5 for i in range(32)]
    sums = [9 + 9 - i % 8 for i in range(32)]
    assert [v for v, end in zip(out.tolist(), ends, strict=True) if end] == [-5] * sum(map(bool, ends))
    assert all(s < v <= s + 32 for v, s, end in zip(out.tolist(), sums, ends, strict=True) if not end)


DEPTHS = """
__device__ __noinline__ int votes(unsigned among, unsigned depth, bool sync) {
    const bool deeper = depth > 0;
    const unsigned below = __ballot_sync(among, deeper);
    int result = __popc(below);
    if (deeper) {
        result += 10 * votes(below, depth - 1, sync);
        if (sync) __syncwarp(below);
        result += 100 * votes(below, depth - 1, sync);
    }
    return result;
}
extern "C" __global__ void k(int *out, int sync) {
    const int mine = votes(0xFFFFFFFF, threadIdx.x % 3, sync);
    out[threadIdx.x] = __reduce_max_sync(0xFFFFFFFF, mine) + mine;
}
"""


@pytest.mark.parametrize("engine", ["chosen", pytest.param("independent", marks=pytest.mark.cpu_only)], indirect=True)
@pytest.mark.parametrize("sync", [0, 1])
def test_threads_at_several_depths_vote_apart(engine: str, sync: int) -> None:
    """One instruction is several operations at a time, each among the threads that its mask names."""
    deeper = [21, 10, 0]  # threads with a depth of more than 0, 1, 2

    def votes(level: int, depth: int) -> int:
        below = votes(level + 1, depth - 1) if depth else 0
        return deeper[level] + (10 + 100) * below

    mine = [votes(0, i % 3) for i in range(32)]
    out = np.zeros(32, np.int32)
    run(DEPTHS + engine, "k", 1, 32, out, np.int32(sync))
    assert out.tolist() == [max(mine) + m for m in mine]
