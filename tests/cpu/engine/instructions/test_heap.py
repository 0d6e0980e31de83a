"""malloc, free, new and delete in kernels."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.engine.kernels import run

LIST = """
struct Node { int value; Node *next; };
extern "C" __global__ void build(Node **lists, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node *head = nullptr;
    for (int k = 0; k < n + i % 3; k++) head = new Node{k * i, head};
    lists[i] = head;
}
extern "C" __global__ void sum_and_free(Node **lists, long long *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long sum = 0;
    for (Node *node = lists[i]; node;) {
        Node *next = node->next;
        sum += node->value;
        delete node;
        node = next;
    }
    out[i] = sum;
}
extern "C" __global__ void scratch(int *out, int n) {
    int *own = (int *)malloc(n * sizeof(int));
    for (int k = 0; k < n; k++) own[k] = k * threadIdx.x;
    int sum = 0;
    for (int k = n - 1; k >= 0; k--) sum += own[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + (((size_t)own & 15) != 0) * 1000000;
    free(own);
}
extern "C" __global__ void huge(int *out, size_t bytes) {
    int *own = (int *)malloc(bytes);
    out[threadIdx.x] = own == nullptr;
    free(own);
}
"""


def test_memory_outlives_the_launch(engine: str) -> None:
    lists, out = np.zeros(96, np.uint64), np.zeros(96, np.int64)
    run(LIST + engine, "build", 3, 32, lists, np.int32(4))
    assert (lists != 0).all() and len(set(lists.tolist())) == 96
    run(LIST + engine, "sum_and_free", 3, 32, lists, out)
    assert out.tolist() == [sum(k * i for k in range(4 + i % 3)) for i in range(96)]


def test_each_thread_has_its_own(engine: str) -> None:
    for _ in range(3):  # what was freed is there again
        out = np.zeros(256, np.int32)
        run(LIST + engine, "scratch", 4, 64, out, np.int32(50))
        assert out.tolist() == [1225 * (i % 64) for i in range(256)]


def test_no_more_than_the_limit() -> None:
    Device(0).set_current()
    _, limit = driver.cuCtxGetLimit(driver.CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE)
    out = np.zeros(4, np.int32)
    run(LIST, "huge", 1, 4, out, np.uint64(limit + 1))
    assert out.tolist() == [1] * 4
    run(LIST, "huge", 1, 4, out, np.uint64(limit // 8))
    assert out.tolist() == [0] * 4


@pytest.mark.cpu_only
def test_the_limit_can_be_set_and_the_heap_goes_with_its_context() -> None:
    before = check_value(driver.cuCtxGetCurrent())
    free, _ = check_values(driver.cuMemGetInfo())
    context = check_value(driver.cuCtxCreate(None, 0, check_value(driver.cuDeviceGet(0))))
    try:
        ok(driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE, 4 << 20))
        source = b"""
.version 9.0\n.target sm_90\n.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 a);
.entry k(.param .u64 out) {
    .reg .b64 %rd<4>; .reg .b32 %r<3>;
    .param .b64 a; .param .b64 r; st.param.b64 [a], 2500000;
    call (r), malloc, (a);
    ld.param.b64 %rd1, [r]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd3, %r1, 8;
    add.u64 %rd2, %rd2, %rd3; st.global.u64 [%rd2], %rd1; ret;
}\0"""
        module = check_value(driver.cuModuleLoadData(source))
        kernel = check_value(driver.cuModuleGetFunction(module, b"k"))
        out = check_value(driver.cuMemAlloc(16))
        ok(driver.cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, 0, ((out,), (None,)), 0))
        found = np.zeros(2, np.uint64)
        ok(driver.cuMemcpyDtoH(found.ctypes.data, out, 16))
        assert sorted(found != 0) == [False, True]  # 4 MiB hold one of two
    finally:
        ok(driver.cuCtxDestroy(context))
        ok(driver.cuCtxSetCurrent(before))
    after, _ = check_values(driver.cuMemGetInfo())
    assert after == free


def check_value(result):
    ok(result)
    return result[1]


def check_values(result):
    ok(result)
    return result[1:]
