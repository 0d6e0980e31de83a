// Combining the elements of rows one after the other, for operations whose order matters. combined() is given.

extern "C" __global__ void fold(const T* in, T* out, long long rows, long long count, int running) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long r = (long long)blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += step) {
        COMPUTED total = in[r * count];
        if (running) out[r * count] = (T)total;
        for (long long i = 1; i < count; i++) {
            total = combined(total, (COMPUTED)in[r * count + i]);
            if (running) out[r * count + i] = (T)total;
        }
        if (!running) out[r] = (T)total;
    }
}
