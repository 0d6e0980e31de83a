// The product of two small matrices, of which a thread computes an element. T is the type of the elements, COMPUTED that of the
// computation. Strides are counted in elements.

extern "C" __global__ void product(
    const T* a, const T* b, T* out, long long rows, long long columns, long long inner, long long a_down, long long a_right,
    long long b_down, long long b_right) {
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += step) {
        const T* left = a + (int)i / (int)columns * a_down;
        const T* right = b + (int)i % (int)columns * b_right;
        COMPUTED total = (COMPUTED)*left * (COMPUTED)*right;
#pragma unroll 4
        for (int k = 1; k < (int)inner; k++) total = total + (COMPUTED)left[k * a_right] * (COMPUTED)right[k * b_down];
        out[i] = (T)total;
    }
}
