// How often each number from 0 to bins - 1 occurs; others are left out. A block counts in a table of its own, which its
// threads share, and adds that to the result: so blocks meet once for each bin, not for each element.

constexpr int BLOCK = 256;
constexpr int MOST = 2048; // bins; MOST_COUNTED in _rows.py

extern "C" __global__ void __launch_bounds__(BLOCK) count_numbers(
    const T* in, unsigned long long* out, long long count, long long bins, long long share) {
    __shared__ unsigned int table[MOST];
    for (int k = threadIdx.x; k < (int)bins; k += BLOCK) table[k] = 0;
    __syncthreads();
    long long from = blockIdx.x * share, end = from + share < count ? from + share : count;
#pragma unroll 1
    for (long long k = from + threadIdx.x; k < end; k += BLOCK) {
        unsigned long long number = (unsigned long long)in[k];
        if (number < (unsigned long long)bins) atomicAdd(&table[number], 1u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < (int)bins; k += BLOCK)
        if (table[k]) atomicAdd(&out[k], (unsigned long long)table[k]);
}
