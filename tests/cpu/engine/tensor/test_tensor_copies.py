"""Tensor copies in CUDA kernels, with the map as a parameter: a pipeline, and faults that name the line.

What single instructions do is compared with an H200 (tests/ptx/forms/tensor.txt).
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

from cupola import CUDAError, Device, LaunchConfig, cpu, launch
from cupola.bindings import driver
from cupola.core.exchange._tensor_map import TensorMapSwizzle
from cupola.utils import StridedMemoryView
from tests.cpu.engine.faulting import printed
from tests.cpu.engine.kernels import compile_kernel


@pytest.fixture(autouse=True)
def needs_hopper() -> None:
    if Device(0).compute_capability < (9, 0):
        pytest.skip("tensor copies need compute capability 9.0")


COMMON = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
struct alignas(64) TensorMap { char bytes[128]; };
__device__ void make(uint64_t *bar, int count) {
    ptx::mbarrier_init(bar, count);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
}
__device__ void expect(uint64_t *bar, int bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
}
__device__ void load(void *box, const TensorMap *map, int x, int y, uint64_t *bar) {
    const int at[] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, map, at, bar);
}
"""

PIPELINE = (
    COMMON
    + r"""
// One warp loads tiles of 8 rows into a ring, the other sums up columns and stores the sums as tiles.
enum { STAGES = 3, ROWS = 8, COLUMNS = 64 };
extern "C" __global__ void column_sums(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,
                                       int tiles) {
    __shared__ alignas(128) int ring[STAGES][ROWS][COLUMNS], sums[COLUMNS];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) make(&full[i], 1), make(&empty[i], COLUMNS);
    __syncthreads();
    const int left = blockIdx.x * COLUMNS;
    if (threadIdx.x >= COLUMNS) {
        if (threadIdx.x == COLUMNS)
            for (int i = 0; i < tiles; i++) {
                const int stage = i % STAGES;
                if (i >= STAGES) while (!ptx::mbarrier_try_wait_parity(&empty[stage], (i / STAGES - 1) & 1)) {}
                expect(&full[stage], sizeof ring[stage]);
                load(ring[stage], &in, left, i * ROWS, &full[stage]);
            }
        return;
    }
    int sum = 0;
    for (int i = 0; i < tiles; i++) {
        const int stage = i % STAGES;
        while (!ptx::mbarrier_try_wait_parity(&full[stage], (i / STAGES) & 1)) {}
        for (int row = 0; row < ROWS; row++) sum += ring[stage][row][threadIdx.x];
        ptx::mbarrier_arrive(&empty[stage]);
    }
    sums[threadIdx.x] = sum;
    ptx::fence_proxy_async(ptx::space_shared);
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x == 0) {
        const int at[] = {left, 0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, sums);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
"""
)


def view_of(buffer, shape, dtype="i4") -> StridedMemoryView:
    return StridedMemoryView.from_buffer(buffer, shape, dtype=np.dtype(dtype))


def test_a_pipeline(device, stream) -> None:
    rows, columns = 50, 100
    numbers = np.random.default_rng(1).integers(-1000, 1000, (rows, columns), np.int32)
    with device.allocate(numbers.nbytes, stream=stream) as given, device.allocate(columns * 4, stream=stream) as made:
        given.copy_from(numbers, stream=stream)
        source = view_of(given, (rows, columns)).as_tensor_map((8, 64))
        target = view_of(made, (1, columns)).as_tensor_map((1, 64))
        kernel = compile_kernel(PIPELINE, "column_sums")
        launch(stream, LaunchConfig(grid=2, block=96), kernel, source, target, 7)
        sums = np.zeros(columns, np.int32)
        made.copy_to(sums, stream=stream)
        stream.sync()
    np.testing.assert_array_equal(sums, numbers.sum(axis=0))


BARRIER = 'asm volatile("bar.sync 1, 64;" ::: "memory");'
WAIT = "ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());"
FULL = "while (!ptx::mbarrier_try_wait_parity(&full"
AGAIN = f"{BARRIER} sums[threadIdx.x] = 1; {BARRIER} if (threadIdx.x == 0) {WAIT} }}"
VARIANTS = {
    "sound": (),
    "stored_before_the_barrier": ((BARRIER, ""),),
    "read_before_loaded": ((FULL, f"sum += ring[stage][0][0]; {FULL}"),),
    "overwritten_while_stored": ((WAIT, ""), ("    }\n}\n", "    }\n" + AGAIN)),
    "ended_while_stored": ((WAIT, ""),),
    "sound_when_read": ((WAIT, WAIT.replace("group(", "group_read(")), ("    }\n}\n", "    }\n" + AGAIN)),
}
"""What is changed in the pipeline; the names that do not begin with ``sound`` are races."""


@pytest.mark.unchecked(reason="it is about the checks")
@pytest.mark.cpu_only
def test_races(device, stream) -> None:
    source = COMMON
    for name, changes in VARIANTS.items():
        body = PIPELINE.removeprefix(COMMON)
        for old, new in changes:
            assert body.count(old) == 1
            body = body.replace(old, new)
        source += f"namespace in_{name} {{ {body.replace('column_sums', name)} }}"
    found = {}
    with device.allocate(50 * 400, stream=stream) as given, device.allocate(400, stream=stream) as made:
        given.fill(0, stream=stream)
        maps = view_of(given, (50, 100)).as_tensor_map((8, 64)), view_of(made, (1, 100)).as_tensor_map((1, 64))
        for name in VARIANTS:
            kernel = compile_kernel(source, name)
            with cpu.checks(race=True) as checks:
                launch(stream, LaunchConfig(grid=2, block=96), kernel, *maps, 7)
            found[name] = {finding.kind for finding in checks.findings}
    assert found == {name: set() if name.startswith("sound") else {"race"} for name in VARIANTS}


THROUGH = (
    COMMON
    + r"""
extern "C" __global__ void through(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out) {
    __shared__ alignas(1024) int box[32][32];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        make(&full, 1);
        expect(&full, sizeof box);
        load(box, &in, -4, 40, &full);
        while (!ptx::mbarrier_try_wait_parity(&full, 0)) {}
        const int at[] = {32, 32};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, box);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
"""
)


@pytest.mark.unchecked(reason="it is about the checks")
@pytest.mark.cpu_only
@pytest.mark.parametrize("swizzle", [TensorMapSwizzle.NONE, TensorMapSwizzle.SWIZZLE_128B])
def test_unset_memory_stays_unset(device, stream, swizzle) -> None:
    """By tensor copies to shared memory and back; what is outside of the tensor is filled in, and so written."""
    row, hole = 4 * 64, (50, 8, 4)  # row, column and number of the elements that nobody writes
    place = hole[0] * row + hole[1] * 4
    with cpu.checks(init=True, race=True) as checks:
        given, made = (device.allocate(64 * row, stream=stream) for _ in range(2))
        driver.cuMemsetD8Async(given.handle, 1, place, stream.handle)
        driver.cuMemsetD8Async(
            int(given.handle) + place + 4 * hole[2], 1, 64 * row - place - 4 * hole[2], stream.handle
        )
        made.fill(0, stream=stream)
        maps = (view_of(each, (64, 64)).as_tensor_map((32, 32), swizzle=swizzle) for each in (given, made))
        launch(stream, LaunchConfig(grid=1, block=32), compile_kernel(THROUGH, "through"), *maps)
        stream.sync()
        assert not checks.findings
        made.copy_to(np.zeros(64 * row, np.uint8), stream=stream)
        stream.sync()
    (finding,) = checks.findings
    assert finding.kind == "init"
    first = (32 + hole[0] - 40) * row + 4 * (32 + hole[1] + 4)
    assert f"{first} bytes inside" in str(finding) and "16 of" in str(finding), str(finding)
    given.close()
    made.close()


FAULTS = (
    COMMON
    + r"""
__device__ void wait(uint64_t *bar) { while (!ptx::mbarrier_try_wait_parity(bar, 0)) {} }
extern "C" __global__ void k(const __grid_constant__ TensorMap map, TensorMap *other, int which) {
    extern __shared__ __align__(1024) char shared[];
    __shared__ uint64_t bar, none;
    make(&bar, 1);
    none = 0;
    char *box = shared;
    if (which == 0) load(box + 64, &map, 0, 0, &bar);  // LINE unaligned
    if (which == 1) load(box + 3072, &map, 0, 0, &bar);  // LINE beyond
    if (which == 2) load(box, &map, 0, 0, &none);  // LINE barrier
    if (which == 3) load(box, other, 0, 0, &bar);  // LINE garbage
    if (which == 4) load(box, &map, 1, 0, &bar);  // LINE start
    if (which == 5) {
        const int at[] = {0, 0, 0};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, at, &bar);  // LINE rank
    }
    if (which == 6) {
        const int at[] = {-4, 0};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, box);  // LINE below
    }
    if (which == 7) load(box, &map, 0, 0, &bar);  // LINE freed
    if (which == 8) load(box, (const TensorMap *)box, 0, 0, &bar);  // LINE shared
    if (which == 9) load(box, (const TensorMap *)((const char *)other + 16), 0, 0, &bar);  // LINE map
    if (which == 10) load(box, nullptr, 0, 0, &bar);  // LINE null
    if (which == 11) {
        const int at[] = {0, 0, 0, 0};
        ptx::cp_async_bulk_prefetch_tensor(ptx::space_global, &map, at);  // LINE kind
    }
}
"""
)

KERNEL_LINES = {
    mark: number for number, line in enumerate(FAULTS.splitlines(), 1) if (mark := line.partition("// LINE ")[2])
}


# The numbers of the faults in the kernel are those of their lines.
FAULT_PROGRAM = """
import sys
import cupola.cpu
marks = sys.argv[1:]
cupola.cpu.use(devices=len(marks))
from cupola import LaunchConfig, launch
from tests.cpu.engine.faulting import print_errors
from tests.cpu.engine.kernels import compile_source
from tests.cpu.engine.tensor.test_tensor_copies import FAULTS, view_of
code = compile_source(FAULTS)

def start(mark, device, stream):
    memory = device.allocate(1 << 14, stream=stream)
    garbage = device.allocate(256, stream=stream)
    garbage.fill(0xA5, stream=stream)
    tensor_map = view_of(memory, (64, 64)).as_tensor_map((32, 32))
    if mark == "freed":
        memory.close()
        stream.sync()
    config = LaunchConfig(grid=1, block=1, shmem_size=6144)
    launch(stream, config, code.get_kernel("k"), tensor_map, garbage, marks.index(mark))
    return memory, garbage

print_errors(marks, start)
"""


@functools.cache
def faults() -> dict[str, str]:
    return printed(FAULT_PROGRAM, *KERNEL_LINES)


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("mark", "patterns"),
    [
        ("unaligned", ["misaligned write", "in shared memory"]),
        ("beyond", ["out-of-bounds write of 4096 bytes in shared memory"]),
        ("barrier", ["it was not initialized"]),
        ("garbage", ["tensor map at 0x[0-9a-f]+ cannot be used: its bytes were not made by the driver"]),
        ("start", ["starts at element 1 of the innermost dimension, byte 4; it must start at a multiple of 16"]),
        ("rank", ["it has 2 dimensions, the instruction 3"]),
        ("below", ["the store starts at -4 in dimension 0; only loads may start below 0"]),
        ("freed", ["read of 128 bytes in global memory", "that was freed"]),
        ("shared", ["the tensor map is in shared or local memory"]),
        ("map", ["misaligned read", "an address that is a multiple of 64"]),
        ("null", ["read of 128 bytes in global memory at address (0x)?0"]),
        ("kind", ["it has 2 dimensions, the instruction 4"]),
    ],
)
def test_faults(mark: str, patterns: list[str]) -> None:
    text = faults()[mark]
    for pattern in patterns:
        assert re.search(pattern, text), text
    assert re.search(rf":{KERNEL_LINES[mark]}\b", text), text


REPLACE = r"""
struct alignas(128) TensorMap { char bytes[128]; };
extern "C" __global__ void k(TensorMap *map, int value) {
    asm volatile("tensormap.replace.tile.box_dim.global.b1024.b32 [%0], 0, %1;" :: "l"(map), "r"(value) : "memory");
}
"""


@pytest.mark.cpu_only
def test_a_value_that_no_map_can_have(run_python) -> None:
    program = """
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from tests.cpu.engine.tensor.test_tensor_copies import REPLACE
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = Program(REPLACE, "c++", ProgramOptions(arch="sm_90a")).compile("ptx").get_kernel("k")
memory = device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernel, memory, 300)
try:
    stream.sync()
except Exception as error:
    print(error)
"""
    done = run_python(program)
    assert "tensormap.replace with .box_dim 300; it can be 1 to 256" in done.stdout, done.stdout + done.stderr


def damaged_maps(count: int) -> None:
    """Copy by maps with random changes. A fault resets the context, so this is for a process of its own."""
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    rng = np.random.default_rng(7)
    kernel = compile_kernel(FAULTS, "k")
    with device.allocate(1 << 14, stream=stream) as memory:
        good = view_of(memory, (64, 64)).as_tensor_map((32, 32), swizzle=TensorMapSwizzle.SWIZZLE_128B)
        assert good is not None
    outcomes = set()
    for _ in range(count):
        device.set_current()
        own = device.create_stream()
        memory = device.allocate(1 << 14, stream=own)
        copied = np.zeros(256, np.uint8)
        encoded = driver.cuTensorMapEncodeTiled(
            7, 2, int(memory.handle), [64, 64], [256], [32, 32], [1, 1], 0, 0, 0, 0
        )[1]
        copied[:128] = np.frombuffer(b"".join(int(word).to_bytes(8, "little") for word in encoded.opaque), np.uint8)
        for place in rng.integers(0, 128, rng.integers(0, 3)):
            copied[place] = rng.integers(0, 256)
        other = device.allocate(256, stream=own)
        other.copy_from(copied, stream=own)
        launch(own, LaunchConfig(grid=1, block=1, shmem_size=65536), kernel, good, other, 3)
        try:
            own.sync()
            outcomes.add("copied")
        except CUDAError as error:
            outcomes.add(error.name)
            driver.cuDevicePrimaryCtxReset(0)
    assert "copied" in outcomes and len(outcomes) > 1


@pytest.mark.unchecked(reason="blocks do not wait for copies by maps that are wrong")
@pytest.mark.cpu_only
def test_any_bytes_as_a_map_are_a_fault_or_a_copy(run_python) -> None:
    """Random changes of a good map never end the process."""
    done = run_python("from tests.cpu.engine.tensor.test_tensor_copies import damaged_maps\ndamaged_maps(40)\n")
    assert done.returncode == 0, done.stdout + done.stderr
