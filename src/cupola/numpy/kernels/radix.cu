// Sorting long rows by their digits of 8 bits, the lowest first, stably. A digit takes three kernels: radix_count counts the
// digits of each share of a row, radix_scan adds up the counts of the shares before each share, radix_move brings the elements
// to their places. Elements are moved as they are; their order is that of `ordered`. BITS is an unsigned integer of their size.
// FORM: 0 unsigned, 1 signed, 2 floating-point with INFINITE as the bits of infinity. PAIRS: with the places that the elements
// come from. A row has less than 2^32 elements.

//CPU #define ON_CPU
[[maybe_unused]] constexpr int BLOCK = 256, WARPS = BLOCK / 32;
#ifdef ON_CPU  // a third of the code
[[maybe_unused]] constexpr int EACH = 4;
#else
[[maybe_unused]] constexpr int EACH = sizeof(BITS) == 8 ? 12 : 16;
#endif
[[maybe_unused]] constexpr int TILE = BLOCK * EACH;
[[maybe_unused]] constexpr BITS SIGN = (BITS)((BITS)1 << (8 * sizeof(BITS) - 1)), ALL = (BITS)~(BITS)0;

// Unsigned numbers in the order of the elements; NaN comes last, and the zeros are equal. flip: all bits set to turn it around.
[[maybe_unused]] static __device__ BITS ordered(BITS bits, BITS flip) {
#if FORM == 1
    bits ^= SIGN;
#elif FORM == 2
    if ((BITS)(bits & (BITS)~SIGN) > (BITS)INFINITE) bits = ALL;
    else if (bits == SIGN || bits == 0) bits = SIGN;
    else bits = bits & SIGN ? (BITS)~bits : (BITS)(bits | SIGN);
#endif
    return bits ^ flip;
}

[[maybe_unused]] static __device__ int digit_of(BITS bits, int shift, BITS flip) { return (int)(ordered(bits, flip) >> shift) & 255; }

// The sum of the values of the threads before this one, and of all of them.
[[maybe_unused]] static __device__ unsigned before(unsigned value, unsigned* sums, unsigned* all) {
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, up_to = value;
//CPU #pragma unroll 1
    for (int reach = 1; reach < 32; reach *= 2) {
        unsigned other = __shfl_up_sync(~0u, up_to, reach);
        if (lane >= reach) up_to += other;
    }
    if (lane == 31) sums[warp] = up_to;
    __syncthreads();
    unsigned earlier = 0, total = 0;
//CPU #pragma unroll 1
    for (int k = 0; k < WARPS; k++) {
        if (k < warp) earlier += sums[k];
        total += sums[k];
    }
    __syncthreads();
    *all = total;
    return earlier + up_to - value;
}

// counts[row][digit][part]: parts of `share` elements each.
extern "C" __global__ void __launch_bounds__(BLOCK) radix_count(
    const BITS* in, unsigned* counts, long long rows, long long count, int parts, long long share, int shift, BITS flip) {
    __shared__ unsigned found[WARPS][256];
    unsigned* mine = found[threadIdx.x >> 5];
    for (long long one = blockIdx.x; one < rows * parts; one += gridDim.x) {
        long long row = one / parts, part = one % parts, from = part * share;
        long long end = from + share < count ? from + share : count;
//CPU #pragma unroll 1
        for (int k = 0; k < WARPS; k++) found[k][threadIdx.x] = 0;
        __syncthreads();
        const BITS* elements = in + row * count;
        long long i = from + threadIdx.x;
        for (; i + 3 * BLOCK < end; i += 4 * BLOCK) {
            BITS value[4];
            for (int k = 0; k < 4; k++) value[k] = elements[i + k * BLOCK];
            for (int k = 0; k < 4; k++) atomicAdd(&mine[digit_of(value[k], shift, flip)], 1u);
        }
//CPU #pragma unroll 1
        for (; i < end; i += BLOCK) atomicAdd(&mine[digit_of(elements[i], shift, flip)], 1u);
        __syncthreads();
        unsigned total = 0;
//CPU #pragma unroll 1
        for (int k = 0; k < WARPS; k++) total += found[k][threadIdx.x];
        counts[(row * 256 + threadIdx.x) * parts + part] = total;
        __syncthreads();
    }
}

// The counts of the parts before each part, in place, and totals[row][digit].
extern "C" __global__ void __launch_bounds__(BLOCK) radix_scan(unsigned* counts, unsigned* totals, long long rows, int parts) {
    __shared__ unsigned sums[WARPS];
    for (long long one = blockIdx.x; one < rows * 256; one += gridDim.x) {
        unsigned running = 0, all;
        for (int from = 0; from < parts; from += BLOCK) {
            int part = from + threadIdx.x;
            unsigned value = part < parts ? counts[one * parts + part] : 0;
            unsigned earlier = before(value, sums, &all);
            if (part < parts) counts[one * parts + part] = running + earlier;
            running += all;
        }
        if (threadIdx.x == 0) totals[one] = running;
    }
}

// old: where the elements were before, null if they have not been moved yet. The new places go to `places`, which belongs to the
// last digit, or else to `next`.
extern "C" __global__ void __launch_bounds__(BLOCK) radix_move(
    const BITS* in, BITS* out, const unsigned* old, unsigned* next, long long* places, const unsigned* counts,
    const unsigned* totals, long long rows, long long count, int parts, long long share, int shift, BITS flip) {
    __shared__ unsigned counters[WARPS][256], base[256], start[256], sums[WARPS];
    __shared__ BITS staged[TILE];
#if PAIRS
    __shared__ unsigned staged_places[TILE];
#endif
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, lower = (1u << lane) - 1, all;
    unsigned* mine = counters[warp];
    for (long long one = blockIdx.x; one < rows * parts; one += gridDim.x) {
        long long row = one / parts, part = one % parts, from = part * share;
        long long end = from + share < count ? from + share : count;
        const BITS* elements = in + row * count;
        BITS* target = out + row * count;
        unsigned first = before(totals[row * 256 + threadIdx.x], sums, &all);
        base[threadIdx.x] = first + counts[(row * 256 + threadIdx.x) * parts + part];
        for (long long tile = from; tile < end; tile += TILE) {
            int size = end - tile < TILE ? end - tile : TILE;
            BITS value[EACH];
            unsigned short rank[EACH];
//CPU #pragma unroll 1
            for (int k = 0; k < WARPS; k++) counters[k][threadIdx.x] = 0;
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                int at = warp * 32 * EACH + k * 32 + lane;
                value[k] = at < size ? elements[tile + at] : (BITS)0;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                bool valid = warp * 32 * EACH + k * 32 + lane < size;
                int digit = digit_of(value[k], shift, flip);
                unsigned peers = __ballot_sync(~0u, valid);
#pragma unroll //CPU 1
                for (int bit = 0; bit < 8; bit++) {
                    unsigned set = __ballot_sync(~0u, digit >> bit & 1);
                    peers &= digit >> bit & 1 ? set : ~set;
                }
                // All lanes of a digit read the counter, then the first of them adds to it.
                unsigned earlier = valid ? mine[digit] : 0;
                __syncwarp();
                if (valid && !(peers & lower)) mine[digit] = earlier + __popc(peers);
                __syncwarp();
                rank[k] = earlier + __popc(peers & lower);
            }
            __syncthreads();
            unsigned total = 0;
//CPU #pragma unroll 1
            for (int k = 0; k < WARPS; k++) {
                unsigned here = counters[k][threadIdx.x];
                counters[k][threadIdx.x] = total;
                total += here;
            }
            unsigned begin = before(total, sums, &all);
            start[threadIdx.x] = begin;
            __syncthreads();
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                int at = warp * 32 * EACH + k * 32 + lane;
                if (at < size) {
                    int digit = digit_of(value[k], shift, flip);
                    unsigned to = start[digit] + mine[digit] + rank[k];
                    staged[to] = value[k];
#if PAIRS
                    staged_places[to] = old ? old[row * count + tile + at] : (unsigned)(tile + at);
#endif
                }
            }
            __syncthreads();
//CPU #pragma unroll 1
            for (int at = threadIdx.x; at < size; at += BLOCK) {
                BITS element = staged[at];
                int digit = digit_of(element, shift, flip);
                unsigned to = base[digit] + (at - start[digit]);
                target[to] = element;
#if PAIRS
                if (places) places[row * count + to] = staged_places[at];
                else next[row * count + to] = staged_places[at];
#endif
            }
            __syncthreads();
            base[threadIdx.x] += total;
        }
        __syncthreads();
    }
}
