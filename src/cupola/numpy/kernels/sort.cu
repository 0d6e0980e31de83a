// Sorting rows, stably: tiles in shared memory, then runs of two are merged until a row is one run. An element finds its place
// by counting what precedes it in the other run. PAIRS: with the places that the elements come from.

[[maybe_unused]] constexpr int BLOCK = 256, TILE = 512;

[[maybe_unused]] static __device__ bool before(COMPUTED a, COMPUTED b) { return DESCENDING ? precedes(b, a) : precedes(a, b); }

// How many elements of a sorted run come before a value: those that precede it, or also its equals.
template <typename A, typename I> [[maybe_unused]] __device__ I preceding(A run, I size, COMPUTED value, bool equals_too) {
    I low = 0, high = size;
//CPU #pragma unroll 1
    while (low < high) {
        I middle = (low + high) >> 1;
        bool first = equals_too ? !before(value, (COMPUTED)run[middle]) : before((COMPUTED)run[middle], value);
        if (first) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Where element i of a row goes when its run of `width`, a power of two, is merged with the run beside it.
template <typename A, typename I> [[maybe_unused]] __device__ I merged_place(A row, I i, I width, I count, COMPUTED value) {
    I start = i & ~(2 * width - 1), middle = start + width;
    if (middle >= count) return i;
    I beside = count - middle < width ? count - middle : width;
    bool first = i < middle;  // one search for both, which is much code
    return (first ? i : i - width) + preceding(row + (first ? middle : start), first ? beside : width, value, !first);
}

extern "C" __global__ void __launch_bounds__(BLOCK) sort_tiles(const T* in, T* out, long long* places, long long rows, long long count) {
    __shared__ char memory[2][TILE * sizeof(T)];
    __shared__ short at[2][PAIRS ? TILE : 1];
    long long tiles = (count + TILE - 1) / TILE;
    for (long long part = blockIdx.x; part < rows * tiles; part += gridDim.x) {
        long long from = part % tiles * TILE, first = part / tiles * count + from;
        int size = count - from < TILE ? count - from : TILE;
//CPU #pragma unroll 1
        for (int i = threadIdx.x; i < size; i += BLOCK) {
            ((T*)memory[0])[i] = in[first + i];
            if (PAIRS) at[0][i] = i;
        }
        int now = 0;
//CPU #pragma unroll 1
        for (int width = 1; width < size; width *= 2, now = 1 - now) {
            __syncthreads();
            const T* old = (const T*)memory[now];
//CPU #pragma unroll 1
            for (int i = threadIdx.x; i < size; i += BLOCK) {
                T value = old[i];
                int to = merged_place(old, i, width, size, (COMPUTED)value);
                ((T*)memory[1 - now])[to] = value;
                if (PAIRS) at[1 - now][to] = at[now][i];
            }
        }
        __syncthreads();
//CPU #pragma unroll 1
        for (int i = threadIdx.x; i < size; i += BLOCK) {
            out[first + i] = ((T*)memory[now])[i];
            if (PAIRS) places[first + i] = from + at[now][i];
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) merge_runs(
    const T* in, const long long* old, T* out, long long* places, long long rows, long long count, long long width) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long k = (long long)blockIdx.x * blockDim.x + threadIdx.x; k < rows * count; k += step) {
        long long row = k / count * count;
        T value = in[k];
        long long to = row + merged_place(in + row, k - row, width, count, (COMPUTED)value);
        out[to] = value;
        if (PAIRS) places[to] = old[k];
    }
}
