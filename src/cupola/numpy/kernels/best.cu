// Where the greatest or least element of each row is; the first of equal ones, and the first NaN before all.

[[maybe_unused]] constexpr int BLOCK = 256;

// Whether an element behind another one is to be chosen instead of it.
[[maybe_unused]] static __device__ bool better(COMPUTED a, COMPUTED b) {
    if (no_number(a)) return !no_number(b);
    return BETTER && !no_number(b);
}

// Of short rows: a thread for each.
extern "C" __global__ void __launch_bounds__(BLOCK) best_of_few(const T* in, long long* out, long long rows, long long count) {
    for (long long row = (long long)blockIdx.x * BLOCK + threadIdx.x; row < rows; row += (long long)gridDim.x * BLOCK) {
        const T* first = in + row * count;
        COMPUTED chosen = (COMPUTED)*first;
        int at = 0;
#pragma unroll 1
        for (int k = 1; k < (int)count; k++) {
            COMPUTED value = (COMPUTED)first[k];
            if (better(value, chosen)) chosen = value, at = k;
        }
        out[row] = at;
    }
}

// Stores where the one is that is chosen of the values that the threads of a block have, each with its place in the row.
[[maybe_unused]] static __device__ void store_best(long long* out, COMPUTED chosen, long long at) {
    __shared__ long long found[BLOCK];
    __shared__ alignas(16) char memory[BLOCK * sizeof(COMPUTED)];
    COMPUTED* values = (COMPUTED*)memory;
    found[threadIdx.x] = at;
    values[threadIdx.x] = chosen;
#pragma unroll 1
    for (int half = BLOCK / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            COMPUTED other = values[threadIdx.x + half], mine = values[threadIdx.x];
            long long there = found[threadIdx.x + half];
            if (there < found[threadIdx.x] ? !better(mine, other) : better(other, mine)) {
                found[threadIdx.x] = there;
                values[threadIdx.x] = other;
            }
        }
    }
    if (threadIdx.x == 0) *out = found[0];
    __syncthreads();
}

// Blocks share a row in parts of `share` elements.
extern "C" __global__ void __launch_bounds__(BLOCK) best(
    const T* in, long long* out, long long rows, long long count, long long share) {
    long long shares = (count + share - 1) / share;
#pragma unroll 1
    for (long long part = blockIdx.x; part < rows * shares; part += gridDim.x) {
        long long row = part / shares, from = part % shares * share;
        long long end = from + share < count ? from + share : count;
        const T* elements = in + row * count;
        // A thread without elements has the first one of all.
        long long k = from + threadIdx.x, at = k < end ? k : from;
        COMPUTED chosen = (COMPUTED)elements[at];
#pragma unroll 1
        for (k += BLOCK; k < end; k += 4 * BLOCK) {
            T value[4];
#pragma unroll
            for (int u = 0; u < 4; u++) value[u] = elements[k + u * BLOCK < end ? k + u * BLOCK : k];
#pragma unroll
            for (int u = 0; u < 4; u++)  // those beyond the end are equal to the first of the four
                if (better((COMPUTED)value[u], chosen)) chosen = (COMPUTED)value[u], at = k + u * BLOCK;
        }
        store_best(out + part, chosen, at);
    }
}

// Of what has been found in the parts of each row.
extern "C" __global__ void __launch_bounds__(BLOCK) best_of_parts(
    const T* in, const long long* parts, long long* out, long long rows, long long count, long long shares) {
#pragma unroll 1
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* elements = in + row * count;
        const long long* places = parts + row * shares;
        long long at = places[threadIdx.x < shares ? threadIdx.x : 0];
        COMPUTED chosen = (COMPUTED)elements[at];
#pragma unroll 1
        for (long long k = threadIdx.x + BLOCK; k < shares; k += BLOCK)
            if (better((COMPUTED)elements[places[k]], chosen)) at = places[k], chosen = (COMPUTED)elements[at];
        store_best(out + row, chosen, at);
    }
}
