// The places of what is true, in order. Blocks share the flags in parts of `share`: count_true counts those of each part,
// place_true adds up what is before its part and stores the places.

[[maybe_unused]] constexpr int BLOCK = 256, WARPS = BLOCK / 32;

// The sum of a value of each thread.
[[maybe_unused]] static __device__ long long over_block(long long value) {
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (value) atomicAdd(&total, (unsigned long long)value);
    __syncthreads();
    long long found = total;
    __syncthreads();
    return found;
}

extern "C" __global__ void __launch_bounds__(BLOCK) count_true(
    const unsigned char* flags, long long* counts, long long n, long long share) {
    for (long long from = blockIdx.x * share; from < n; from += gridDim.x * share) {
        long long end = from + share < n ? from + share : n, mine = 0;
#pragma unroll 4
        for (long long i = from + threadIdx.x; i < end; i += BLOCK) mine += flags[i] != 0;
        mine = over_block(mine);
        if (threadIdx.x == 0) counts[from / share] = mine;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) place_true(
    const unsigned char* flags, const long long* counts, long long* out, long long n, long long share) {
    __shared__ int found[2][WARPS];
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (long long from = blockIdx.x * share; from < n; from += gridDim.x * share) {
        long long end = from + share < n ? from + share : n, part = from / share, before = 0;
#pragma unroll 1
        for (long long k = threadIdx.x; k < part; k += BLOCK) before += counts[k];
        before = over_block(before);
        int turn = 0;
        for (long long tile = from; tile < end; tile += BLOCK, turn = 1 - turn) {
            long long i = tile + threadIdx.x;
            bool flag = i < end && flags[i];
            unsigned votes = __ballot_sync(~0u, flag);
            if (lane == 0) found[turn][warp] = __popc(votes);
            __syncthreads();
            int earlier = __popc(votes & ((1u << lane) - 1)), all = 0;
//CPU #pragma unroll 1
            for (int k = 0; k < WARPS; k++) {
                earlier += k < warp ? found[turn][k] : 0;
                all += found[turn][k];
            }
            if (flag) out[before + earlier] = i;
            before += all;
        }
    }
}
