"""A matrix product for GPUs of compute capability 9.0: copies by tensor maps (TMA), products of warpgroups (wgmma).

C = A B^T for halves, summed in single precision; the rows of B are the columns of C, as in a layer of a neural network.
Three warpgroups of a block work side by side. The *producer* has tiles of A and B copied into a ring of stages in
shared memory. The two *consumers* multiply what is there, each for its half of the block's tile of C. Two barriers for
each stage order this:

    full     the copies of the stage have arrived; they are counted in bytes
    empty    both consumers are done with the stage

Nobody waits for anything else: while the consumers multiply one stage, the copies of the next ones are on their way.
The blocks are as many as multiprocessors, and each takes tile after tile of C (a persistent kernel), so the producer
already fetches for the next tile while the consumers store the last one.

K must be a multiple of 8, as the rows of a tensor map begin at multiples of 16 bytes, and N must be even.
"""

import numpy as np

from cupola import Device, LaunchConfig, Program, ProgramOptions, TensorMapDescriptor, launch
from cupola.core.exchange._tensor_map import TensorMapSwizzle
from cupola.utils import StridedMemoryView

ROWS, COLUMNS, DEPTH, STAGES = 128, 256, 64, 4  # the tile of C, how far a stage goes along K, and the ring

# The ring, which begins at a multiple of 1024 bytes as the swizzle asks for: so there must be room to move it.
RING = STAGES * (ROWS + COLUMNS) * DEPTH * 2 + 1024

SOURCE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
using Barrier = uint64_t;
constexpr int CONSUMERS = 2, SUMS = COLUMNS / 2;  // for each thread: 64 rows by COLUMNS, of 128 threads

struct alignas(64) TensorMap { char bytes[128]; };  // CUtensorMap of cuda.h
struct alignas(1024) Stage { char a[ROWS][128], b[COLUMNS][128]; };  // DEPTH halves a row

// The stage that comes next, and how often the ring was gone through, of which a barrier knows even or odd.
struct Place {
    int stage = 0, round = 0;
    __device__ void advance() {
        if (++stage == STAGES) stage = 0, round ^= 1;
    }
};

__device__ void wait(Barrier& barrier, int round) {
    while (!ptx::mbarrier_try_wait_parity(&barrier, round)) {}
}

// How wgmma finds a matrix (PTX ISA, "Matrix Descriptor Format"): its address, the 1024 bytes from eight rows to the
// next eight, all in units of 16 bytes, and the swizzle of 128 bytes, in which the tensor map has stored it.
__device__ uint64_t descriptor(const void* matrix) {
    return __cvta_generic_to_shared(matrix) >> 4 | 1024ull >> 4 << 32 | 1ull << 62;
}

__device__ void multiply(float (&sum)[SUMS], uint64_t a, uint64_t b, int keep) {
    asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %AFTER_B%, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n%COLUMNS%k16.f32.f16.f16 {%SUMS%}, %A%, %B%, keep, 1, 1, 0, 0; }"
                 : %OPERANDS% : "l"(a), "l"(b), "r"(keep) : "memory");
}

__device__ void produce(const TensorMap& a, const TensorMap& b, Stage* ring, Barrier* full, Barrier* empty, int row,
                        int column, int k, Place& at) {
    for (int begin = 0; begin < k; begin += DEPTH, at.advance()) {
        Barrier* arrived = &full[at.stage];
        wait(empty[at.stage], at.round ^ 1);  // at once in the first round
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, arrived, sizeof(Stage));
        const int of_a[] = {begin, row}, of_b[] = {begin, column};  // outside of the matrices there are zeros
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, ring[at.stage].a, &a, of_a, arrived);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, ring[at.stage].b, &b, of_b, arrived);
    }
}

__device__ void consume(float (&sum)[SUMS], const Stage* ring, Barrier* full, Barrier* empty, int half, int k,
                        Place& at) {
    int last = -1;  // the stage whose products may still be under way
    for (int begin = 0; begin < k; begin += DEPTH, at.advance()) {
        wait(full[at.stage], at.round);
        const Stage& stage = ring[at.stage];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int part = 0; part < DEPTH; part += 16)  // 32 bytes further in each row
            multiply(sum, descriptor(stage.a[half * 64]) + part / 8, descriptor(stage.b) + part / 8, begin + part);
        asm volatile("wgmma.commit_group.sync.aligned;\n"
                     "wgmma.wait_group.sync.aligned 1;" ::: "memory");  // all but those of this stage are done
        if (last >= 0 && threadIdx.x % 128 == 0) ptx::mbarrier_arrive(&empty[last]);
        last = at.stage;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) ptx::mbarrier_arrive(&empty[last]);
}

// Of eight columns, a thread has two neighbors in one row and two in the row that is eight below (PTX ISA, "Register
// Fragments for wgmma.mma_async").
__device__ void store(const float (&sum)[SUMS], float* c, int row, int column, int m, int n) {
    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    column += threadIdx.x % 4 * 2;
    for (int i = 0; i < SUMS; i += 2) {
        const int y = row + (i & 2) * 4, x = column + i / 4 * 8;
        if (y < m && x < n) *(float2*)&c[(size_t)y * n + x] = make_float2(sum[i], sum[i + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(128 * (1 + CONSUMERS), 1)
product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int m, int n, int k) {
    extern __shared__ char memory[];
    __shared__ Barrier full[STAGES], empty[STAGES];
    Stage* ring = (Stage*)(memory + (-__cvta_generic_to_shared(memory) & 1023));
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx::mbarrier_init(&full[i], 1);
            ptx::mbarrier_init(&empty[i], CONSUMERS);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);  // the copy engine is to see them
    }
    __syncthreads();

    const int warpgroup = threadIdx.x / 128, across = (n + COLUMNS - 1) / COLUMNS, down = (m + ROWS - 1) / ROWS;
    Place at;
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");  // its registers are for the sums of the others
        if (threadIdx.x % 128) return;
        for (int tile = blockIdx.x; tile < across * down; tile += gridDim.x)
            produce(a, b, ring, full, empty, tile % down * ROWS, tile / down * COLUMNS, k, at);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float sum[SUMS];
        for (int tile = blockIdx.x; tile < across * down; tile += gridDim.x) {
            consume(sum, ring, full, empty, warpgroup, k, at);
            store(sum, c, tile % down * ROWS + warpgroup * 64, tile / down * COLUMNS, m, n);
        }
    }
}
"""


def source() -> str:
    """The program, with the operands of wgmma written out: the sums of a thread, A, B, and whether to add."""
    count = COLUMNS // 2
    words = {
        "SUMS": ", ".join(f"%{i}" for i in range(count)),
        "OPERANDS": ", ".join(f'"+f"(sum[{i}])' for i in range(count)),
        **{name: f"%{count + i}" for i, name in enumerate(("A", "B", "AFTER_B"))},
        "COLUMNS": str(COLUMNS),
    }
    text = SOURCE
    for name, value in words.items():
        text = text.replace(f"%{name}%", value)
    return text


def main(m: int = 300, n: int = 520, k: int = 456, blocks: int | None = None) -> None:
    dev = Device()
    if dev.compute_capability != (9, 0):
        print(f"Hopper's matrix product is for compute capability 9.0; {dev.name} has another one")
        return
    dev.set_current()
    stream = dev.create_stream()
    options = ProgramOptions(
        std="c++17",
        arch="sm_90a",  # wgmma and setmaxnreg are in no other architecture
        define_macro=[(name, str(globals()[name])) for name in ("ROWS", "COLUMNS", "DEPTH", "STAGES")],
    )
    kernel = Program(source(), code_type="c++", options=options).compile("cubin").get_kernel("product")

    rng = np.random.default_rng(9)
    a, b = (rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    a_device, b_device = dev.array(a, stream=stream), dev.array(b, stream=stream)
    c_device = dev.empty((m, n), np.float32, stream=stream)
    maps: list[TensorMapDescriptor] = []
    for array, rows in ((a_device, ROWS), (b_device, COLUMNS)):
        view = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
        maps.append(view.as_tensor_map((rows, DEPTH), swizzle=TensorMapSwizzle.SWIZZLE_128B))

    config = LaunchConfig(grid=blocks or dev.properties.multiprocessor_count, block=384, shmem_size=RING)
    launch(stream, config, kernel, *maps, c_device, np.int32(m), np.int32(n), np.int32(k))
    c = c_device.to_numpy(stream=stream)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=k * 2.0**-18)
    for resource in (a_device, b_device, c_device, stream):
        resource.close()
    print(f"Hopper's matrix product: {m} x {n} x {k} halves as NumPy has it, on {dev.name}")


if __name__ == "__main__":
    main()
