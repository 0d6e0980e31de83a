// Where the greatest or least element of each row is; the first of equal ones, and the first NaN before all.
// candidates: the places to choose from, or null for all.

constexpr int BLOCK = 256;

static __device__ bool better(COMPUTED a, long long at, COMPUTED b, long long bt) {
    bool wrong_a = no_number(a), wrong_b = no_number(b);
    if (wrong_a || wrong_b) return wrong_a && (!wrong_b || at < bt);
    return BETTER || (a == b && at < bt);
}

// Of short rows: a thread for each.
extern "C" __global__ void __launch_bounds__(BLOCK) best_of_few(const T* in, long long* out, long long rows, long long count) {
    for (long long row = (long long)blockIdx.x * BLOCK + threadIdx.x; row < rows; row += (long long)gridDim.x * BLOCK) {
        const T* first = in + row * count;
        long long at = 0;
#pragma unroll 1
        for (long long k = 1; k < count; k++)
            if (better((COMPUTED)first[k], k, (COMPUTED)first[at], at)) at = k;
        out[row] = at;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) best(
    const T* in, const long long* candidates, long long* out, long long rows, long long count, long long from_each, long long share) {
    __shared__ long long found[BLOCK];
    long long shares = (from_each + share - 1) / share;
    for (long long part = blockIdx.x; part < rows * shares; part += gridDim.x) {
        long long row = part / shares, from = part % shares * share;
        long long end = from + share < from_each ? from + share : from_each;
        long long at = -1;
        for (long long k = from + threadIdx.x; k < end; k += BLOCK) {
            long long other = candidates ? candidates[row * from_each + k] : k;
            if (at < 0 || better((COMPUTED)in[row * count + other], other, (COMPUTED)in[row * count + at], at)) at = other;
        }
        found[threadIdx.x] = at;
        for (int half = BLOCK / 2; half; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) {
                long long other = found[threadIdx.x + half], mine = found[threadIdx.x];
                if (other >= 0 && (mine < 0 || better((COMPUTED)in[row * count + other], other, (COMPUTED)in[row * count + mine], mine)))
                    found[threadIdx.x] = other;
            }
        }
        if (threadIdx.x == 0) out[part] = found[0];
        __syncthreads();
    }
}
