#ifdef __CUDACC__
KERNEL void mandelbrot(int *out, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y, count = 0;
    float a = -2.0f + 3.0f * column / n, b = -1.5f + 3.0f * row / n, x = 0, y = 0;
    while (count < 200 && x * x + y * y < 4.0f) {
        float next = x * x - y * y + a;
        y = 2.0f * x * y + b, x = next, ++count;
    }
    out[row * n + column] = count;
}
#else
void program(int *restrict out, int n) {
#pragma omp parallel for schedule(dynamic)
    for (int row = 0; row < n; ++row)
        for (int column = 0; column < n; ++column) {
            int count = 0;
            float a = -2.0f + 3.0f * column / n, b = -1.5f + 3.0f * row / n, x = 0, y = 0;
            while (count < 200 && x * x + y * y < 4.0f) {
                float next = x * x - y * y + a;
                y = 2.0f * x * y + b, x = next, ++count;
            }
            out[row * n + column] = count;
        }
}
#endif
