// Running totals of rows that lie side by side. T is the type of the elements, COMPUTED that of the computation; combined() is
// given. A row has parts of `share` elements, a multiple of TILE. Where there are several, their totals are computed first,
// scan_totals, and what precedes each of them, scan_carries; then scan_parts goes through each part, tile by tile.

[[maybe_unused]] constexpr int BLOCK = 256, EACH = 8, TILE = BLOCK * EACH;
//CPU #define ON_CPU

// Where element i of a tile is in shared memory, so that neighbors of a thread's elements are in other banks.
[[maybe_unused]] static __device__ int at(int i) { return i + i / 32; }

// The running totals over the threads of a block, which all have a value up to `many`; `totals` has two times BLOCK places.
[[maybe_unused]] static __device__ COMPUTED* over_threads(COMPUTED* totals, int many) {
    COMPUTED* old = totals;
    COMPUTED* next = totals + BLOCK;
//CPU #pragma unroll 1
    for (int reach = 1; reach < many; reach *= 2) {
        __syncthreads();
        if (threadIdx.x < many)
            next[threadIdx.x] = threadIdx.x < reach ? old[threadIdx.x] : combined(old[threadIdx.x - reach], old[threadIdx.x]);
        COMPUTED* now = old;
        old = next;
        next = now;
    }
    __syncthreads();
    return old;
}

extern "C" __global__ void __launch_bounds__(BLOCK) scan_totals(
    const T* in, T* totals, long long rows, long long count, long long share, long long parts) {
    __shared__ alignas(16) char memory[2 * BLOCK * sizeof(COMPUTED)];
    for (long long one = blockIdx.x; one < rows * parts; one += gridDim.x) {
        long long part = one % parts;
        const T* mine = in + one / parts * count + part * share;
        if (part == parts - 1) continue;  // nothing comes behind it
        // Thread t takes its elements from a piece of its own, so that the order is that of the row: EACH at a time.
        COMPUTED total;
        bool any = false;
        for (long long tile = 0; tile < share; tile += TILE) {
            __shared__ alignas(16) char staged[(TILE + TILE / 32) * sizeof(COMPUTED)];
            COMPUTED* elements = (COMPUTED*)staged;
#ifdef ON_CPU
#pragma unroll 1
            for (int k = 0; k < EACH; k++) elements[at(k * BLOCK + threadIdx.x)] = (COMPUTED)mine[tile + k * BLOCK + threadIdx.x];
#else
            T value[EACH];
            for (int k = 0; k < EACH; k++) value[k] = mine[tile + k * BLOCK + threadIdx.x];
            for (int k = 0; k < EACH; k++) elements[at(k * BLOCK + threadIdx.x)] = (COMPUTED)value[k];
#endif
            __syncthreads();
            COMPUTED sum = elements[at(threadIdx.x * EACH)];
//CPU #pragma unroll 1
            for (int k = 1; k < EACH; k++) sum = combined(sum, elements[at(threadIdx.x * EACH + k)]);
            // What a thread has added up stays with it; the first has the sum of all.
            ((COMPUTED*)memory)[threadIdx.x] = sum;
//CPU #pragma unroll 1
            for (int half = 1; half < BLOCK; half *= 2) {
                __syncthreads();
                if (threadIdx.x % (2 * half) == 0) {
                    sum = combined(sum, ((COMPUTED*)memory)[threadIdx.x + half]);
                    ((COMPUTED*)memory)[threadIdx.x] = sum;
                }
            }
            if (threadIdx.x == 0) total = any ? combined(total, sum) : sum;
            any = true;
            __syncthreads();
        }
        if (threadIdx.x == 0) totals[one] = (T)total;
    }
}

// The totals of all parts up to each one, in place.
extern "C" __global__ void __launch_bounds__(BLOCK) scan_carries(T* totals, long long rows, long long parts) {
    __shared__ alignas(16) char memory[2 * BLOCK * sizeof(COMPUTED)];
    COMPUTED* all = (COMPUTED*)memory;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        T* mine = totals + row * parts;
        COMPUTED carry;
        for (long long from = 0; from < parts - 1; from += BLOCK) {
            int many = parts - 1 - from < BLOCK ? parts - 1 - from : BLOCK;
            if (threadIdx.x < many) all[threadIdx.x] = (COMPUTED)mine[from + threadIdx.x];
            COMPUTED* found = over_threads(all, many);
            COMPUTED value = found[threadIdx.x < many ? threadIdx.x : 0], last = found[many - 1];
            if (from) value = combined(carry, value), last = combined(carry, last);
            if (threadIdx.x < many) mine[from + threadIdx.x] = (T)value;
            carry = last;
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) scan_parts(
    const T* in, T* out, const T* totals, long long rows, long long count, long long share, long long parts) {
    __shared__ alignas(16) char staged[(TILE + TILE / 32) * sizeof(COMPUTED)];
    __shared__ alignas(16) char memory[2 * BLOCK * sizeof(COMPUTED)];
    COMPUTED* elements = (COMPUTED*)staged;
    for (long long one = blockIdx.x; one < rows * parts; one += gridDim.x) {
        long long row = one / parts, part = one % parts, from = part * share;
        long long end = from + share < count ? from + share : count;
        const T* given = in + row * count;
        T* to = out + row * count;
        bool before = part > 0;
        COMPUTED carry;
        if (before) carry = (COMPUTED)totals[one - 1];
        for (long long tile = from; tile < end; tile += TILE) {
            int size = end - tile < TILE ? end - tile : TILE, many = (size + EACH - 1) / EACH;
            // What is behind the end of a row changes nothing in front of it.
#ifdef ON_CPU  // the same without arrays in registers, whose loops are no loops any more
#pragma unroll 1
            for (int k = 0; k < EACH; k++)
                elements[at(k * BLOCK + threadIdx.x)] =
                    (COMPUTED)(k * BLOCK + threadIdx.x < size ? given[tile + k * BLOCK + threadIdx.x] : T());
            __syncthreads();
            int first = threadIdx.x * EACH;
            COMPUTED sum = elements[at(first)];
#pragma unroll 1
            for (int k = 1; k < EACH; k++) elements[at(first + k)] = sum = combined(sum, elements[at(first + k)]);
            ((COMPUTED*)memory)[threadIdx.x] = sum;
#else
            T value[EACH];
            for (int k = 0; k < EACH; k++) value[k] = k * BLOCK + threadIdx.x < size ? given[tile + k * BLOCK + threadIdx.x] : T();
            for (int k = 0; k < EACH; k++) elements[at(k * BLOCK + threadIdx.x)] = (COMPUTED)value[k];
            __syncthreads();
            int first = threadIdx.x * EACH;
            COMPUTED running[EACH];
            for (int k = 0; k < EACH; k++)
                running[k] = k ? combined(running[k - 1], elements[at(first + k)]) : elements[at(first)];
            ((COMPUTED*)memory)[threadIdx.x] = running[EACH - 1];
#endif
            COMPUTED* all = over_threads((COMPUTED*)memory, many);
            bool with = before;
            COMPUTED earlier;
            if (before) earlier = carry;
            if (threadIdx.x) {
                COMPUTED here = all[(threadIdx.x < many ? threadIdx.x : many) - 1];
                earlier = with ? combined(carry, here) : here;
                with = true;
            }
            COMPUTED last = all[many - 1];
            carry = before ? combined(carry, last) : last;
            before = true;
#ifdef ON_CPU
            if (with) {
#pragma unroll 1
                for (int k = 0; k < EACH; k++) elements[at(first + k)] = combined(earlier, elements[at(first + k)]);
            }
#else
            for (int k = 0; k < EACH; k++) elements[at(first + k)] = with ? combined(earlier, running[k]) : running[k];
#endif
            __syncthreads();
//CPU #pragma unroll 1
            for (int k = 0; k < EACH; k++)
                if (k * BLOCK + threadIdx.x < size) to[tile + k * BLOCK + threadIdx.x] = (T)elements[at(k * BLOCK + threadIdx.x)];
            __syncthreads();
        }
    }
}
