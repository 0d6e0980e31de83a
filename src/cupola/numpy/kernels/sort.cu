// Sorting rows, stably: tiles in shared memory, then runs of two are merged until a row is one run. An element finds its place
// by counting what precedes it in the other run. PAIRS: with the places that the elements come from.

[[maybe_unused]] constexpr int BLOCK = 256, TILE = 512;

[[maybe_unused]] static __device__ bool before(COMPUTED a, COMPUTED b) { return DESCENDING ? precedes(b, a) : precedes(a, b); }

// How many elements of a sorted run come before a value: those that precede it, or also its equals.
template <typename A> [[maybe_unused]] __device__ long long preceding(A run, long long size, COMPUTED value, bool equals_too) {
    long long low = 0, high = size;
    while (low < high) {
        long long middle = (low + high) / 2;
        bool first = equals_too ? !before(value, (COMPUTED)run[middle]) : before((COMPUTED)run[middle], value);
        if (first) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Where element i of a row goes when its run of `width` is merged with the run beside it.
template <typename A> [[maybe_unused]] __device__ long long merged_place(A row, long long i, long long width, long long count, COMPUTED value) {
    long long start = i / (2 * width) * 2 * width, middle = start + width, end = middle + width;
    if (middle >= count) return i;
    if (end > count) end = count;
    if (i < middle) return i + preceding(row + middle, end - middle, value, false);
    return start + (i - middle) + preceding(row + start, width, value, true);
}

extern "C" __global__ void __launch_bounds__(BLOCK) sort_tiles(const T* in, T* out, long long* places, long long rows, long long count) {
    __shared__ char memory[2][TILE * sizeof(T)];
    __shared__ short at[2][PAIRS ? TILE : 1];
    long long tiles = (count + TILE - 1) / TILE;
    for (long long part = blockIdx.x; part < rows * tiles; part += gridDim.x) {
        long long from = part % tiles * TILE, first = part / tiles * count + from;
        int size = count - from < TILE ? count - from : TILE;
        for (int i = threadIdx.x; i < size; i += BLOCK) {
            ((T*)memory[0])[i] = in[first + i];
            if (PAIRS) at[0][i] = i;
        }
        int now = 0;
        for (int width = 1; width < size; width *= 2, now = 1 - now) {
            __syncthreads();
            const T* old = (const T*)memory[now];
            for (int i = threadIdx.x; i < size; i += BLOCK) {
                T value = old[i];
                long long to = merged_place(old, i, width, size, (COMPUTED)value);
                ((T*)memory[1 - now])[to] = value;
                if (PAIRS) at[1 - now][to] = at[now][i];
            }
        }
        __syncthreads();
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
