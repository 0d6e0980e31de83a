// D = A * B for halves, with a float result: a warpgroup that only copies, and two that only multiply.
//
// A (M x K) and B (K x N) are packed by the host: tiles of 128 lines along M or N and 64 elements along K, one after the
// other, each as wgmma takes it without a swizzle: blocks of 8 lines by 16 bytes, first those along K. So a tile is one
// bulk copy of 16 KiB. The tiles go through a ring of STAGES; "full" counts the bytes of a stage, "empty" one arrival of
// each multiplying warpgroup, by one of its threads.
using u32 = unsigned;
using u64 = unsigned long long;
constexpr int STAGES = 3, TILE = 128 * 64 * 2, LINES = 128, DEPTH = 64;

__device__ u32 place(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ void wait(u64* barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(place(barrier)), "r"(parity) : "memory");
}

__device__ void copy(void* to, const void* from, u64* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(place(to)), "l"(from), "r"(TILE), "r"(place(barrier)) : "memory");
}

// Blocks along K are 128 bytes apart, those along the lines 1024.
__device__ u64 descriptor(const void* p) {
    return (u64)(place(p) >> 4) | (u64)(128 >> 4) << 16 | (u64)(1024 >> 4) << 32;
}

#define S8(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
              "+f"(sum[i + 6]), "+f"(sum[i + 7])

__device__ void multiply(float (&sum)[64], u64 a, u64 b, int keeps) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,"
                 "%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,"
                 "%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, 1, 0, 0; }\n"
                 : S8(0), S8(8), S8(16), S8(24), S8(32), S8(40), S8(48), S8(56) : "l"(a), "l"(b), "r"(keeps) : "memory");
}

extern "C" __global__ void __launch_bounds__(384) product(const char* a, const char* b, float* d, int n, int k) {
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[STAGES], empty[STAGES];
    const int group = threadIdx.x / 128, steps = k / DEPTH;
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(place(&full[i])), "r"(1) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(place(&empty[i])), "r"(2) : "memory");
        }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x != 0) return;
        for (int step = 0; step < steps; step++) {
            const int stage = step % STAGES;
            wait(&empty[stage], (step / STAGES & 1) ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :: "r"(place(&full[stage])), "r"(2 * TILE) : "memory");
            char* tile = tiles + stage * 2 * TILE;
            copy(tile, a + ((size_t)blockIdx.y * steps + step) * TILE, &full[stage]);
            copy(tile + TILE, b + ((size_t)blockIdx.x * steps + step) * TILE, &full[stage]);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sum[64];
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        wait(&full[stage], step / STAGES & 1);
        const char* tile = tiles + stage * 2 * TILE;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int at = 0; at < DEPTH / 16; at++)
            multiply(sum, descriptor(tile + (group - 1) * 64 / 8 * 1024 + at * 256), descriptor(tile + TILE + at * 256),
                     step + at);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The product of the last step but one is complete: its stage may be filled again.
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (step > 0 && threadIdx.x % 128 == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(place(&empty[(step - 1) % STAGES])) : "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.y * LINES + (group - 1) * 64 + warp * 16 + lane / 4;
    for (int i = 0; i < 64; i++) {
        const int column = blockIdx.x * LINES + i / 4 * 8 + lane % 4 * 2 + (i & 1);
        d[(size_t)(row + (i & 2) * 4) * n + column] = sum[i];
    }
}
