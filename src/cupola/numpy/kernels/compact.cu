// The places of what is true, in order: counts has the running number of true ones.

extern "C" __global__ void compact(const bool* flags, const long long* counts, long long* out, long long n) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        if (flags[i]) out[counts[i] - 1] = i;
}
