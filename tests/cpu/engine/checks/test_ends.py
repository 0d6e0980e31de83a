"""Blocks that end during an asynchronous copy: what is told of it, and copies between the blocks of a cluster."""

from __future__ import annotations

import pytest

from cupola import Device, LaunchConfig, Stream, cpu, launch

from .cases import World

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

SOURCE = r"""
#define T threadIdx.x
#define OFFSET(p) ((unsigned)__cvta_generic_to_shared(p))
#define CLUSTER() asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory")

extern "C" __global__ void store(int* out) {
    __shared__ alignas(16) int s[64];
    s[T] = T;
    __syncthreads();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (T == 5)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                     ::"l"(out + 64 * blockIdx.x), "r"(OFFSET(s)));
}

// Block 0 copies its shared memory into that of block 1, which may wait for it.
extern "C" __global__ void send(int* out, int waits) {
    __shared__ alignas(16) int s[64], t[64];
    __shared__ unsigned long long b;
    const unsigned rank = blockIdx.x;
    s[T] = T;
    if (!T) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(OFFSET(&b)) : "memory");
    if (!T && rank)
        asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 256;}" ::"r"(OFFSET(&b)) : "memory");
    CLUSTER();
    if (!T && !rank)
        asm volatile("{.reg .u32 to, bar; mapa.shared::cluster.u32 to, %0, 1; mapa.shared::cluster.u32 bar, %2, 1;"
                     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [to], [%1], 256, [bar];}"
                     ::"r"(OFFSET(t)), "r"(OFFSET(s)), "r"(OFFSET(&b)) : "memory");
    unsigned done = !(waits && rank);
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(OFFSET(&b)) : "memory");
    CLUSTER();
}
"""


@pytest.fixture
def world(device: Device) -> World:
    return World(device, "ends.cu", SOURCE)


def test_a_block_ends_during_its_store(world: World, stream: Stream) -> None:
    out = world.dev.allocate(4 * 64 * 3, stream=stream)
    with cpu.checks(race=True) as checks:
        launch(stream, LaunchConfig(grid=3, block=64), world.kernel("store"), out)
        stream.sync()
    (finding,) = checks.findings
    (place,) = finding.places
    assert (finding.kind, finding.kernel, finding.count) == ("race", "store", 3)
    assert finding.summary.startswith("a block ends while an asynchronous copy may still read from its shared memory")
    assert (place.what, place.file, place.line) == ("asynchronous copy of 256 bytes", "ends.cu", 12)
    assert place.thread_index == (5, 0, 0) and "cp.async.bulk.global" in place.ptx
    assert finding.details == ("at offset 0 in shared memory",)
    assert 'PTX ISA, "Async Proxy"' in finding.advice and "wait_group.read" in finding.advice


@pytest.mark.parametrize("waits", [False, True])
def test_copies_within_a_cluster(world: World, stream: Stream, waits: bool) -> None:
    """Both blocks may be gone too early: the copy reads from one and writes to the other."""
    out = world.dev.allocate(4 * 64, stream=stream)
    with cpu.checks(race=True) as checks:
        launch(stream, LaunchConfig(grid=1, block=64, cluster=2), world.kernel("send"), out, waits)
        stream.sync()
    found = {("write to" in each.summary, each.details, each.places[0].block_index) for each in checks.findings}
    read = (False, ("at offset 0 in shared memory",), (0, 0, 0))
    written = (True, ("at offset 256 in shared memory of block (1, 0, 0)",), (0, 0, 0))
    assert found == (set() if waits else {read, written})
