// How many elements of a sorted array come before each of the values.

extern "C" __global__ void search(const T* sorted, long long n, const T* values, long long* out, long long m, int right) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < m; i += step) {
        COMPUTED value = values[i];
        long long low = 0, high = n;
        while (low < high) {
            long long middle = (low + high) / 2;
            COMPUTED other = sorted[middle];
            if (right ? !precedes(value, other) : precedes(other, value)) low = middle + 1;
            else high = middle;
        }
        out[i] = low;
    }
}
