// Combining the elements of rows one after the other, for operations whose order matters. combined() is given. Where a row
// begins with a value, elements may be left out: those for which `chosen` is false, if it is not null.

extern "C" __global__ void fold(
    const T* in, T* out, long long rows, long long count, int running, int begins, COMPUTED begin, const bool* chosen) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long r = (long long)blockIdx.x * blockDim.x + threadIdx.x; r < rows; r += step) {
        COMPUTED total = begins ? begin : (COMPUTED)in[r * count];
        if (running) out[r * count] = (T)total;
        for (long long i = begins ? 0 : 1; i < count; i++) {
            if (chosen && !chosen[r * count + i]) continue;
            total = combined(total, (COMPUTED)in[r * count + i]);
            if (running) out[r * count + i] = (T)total;
        }
        if (!running) out[r] = (T)total;
    }
}
