// Where the greatest or least element of each row is; the first of equal ones, and the first NaN before all.
// candidates: the places to choose from, or null for all.

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

extern "C" __global__ void __launch_bounds__(BLOCK) best(
    const T* in, const long long* candidates, long long* out, long long rows, long long count, long long from_each, long long share) {
    __shared__ long long found[BLOCK];
    __shared__ alignas(16) char memory[BLOCK * sizeof(COMPUTED)];
    COMPUTED* values = (COMPUTED*)memory;
    long long shares = (from_each + share - 1) / share;
#pragma unroll 1
    for (long long part = blockIdx.x; part < rows * shares; part += gridDim.x) {
        long long row = part / shares, from = part % shares * share;
        long long end = from + share < from_each ? from + share : from_each;
        const T* elements = in + row * count;
        const long long* places = candidates ? candidates + row * from_each : nullptr;
        // A thread without elements has the first one of all.
        long long k = from + threadIdx.x, at = k < end ? k : from;
        COMPUTED chosen = (COMPUTED)elements[places ? places[at] : at];
#pragma unroll 1
        for (k += BLOCK; k < end; k += 4 * BLOCK) {
            T value[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                long long other = k + u * BLOCK < end ? k + u * BLOCK : k;
                value[u] = elements[places ? places[other] : other];
            }
#pragma unroll
            for (int u = 0; u < 4; u++)  // those beyond the end are equal to the first of the four
                if (better((COMPUTED)value[u], chosen)) chosen = (COMPUTED)value[u], at = k + u * BLOCK;
        }
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
        if (threadIdx.x == 0) out[part] = places ? places[found[0]] : found[0];
        __syncthreads();
    }
}
