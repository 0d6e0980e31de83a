#ifdef __CUDACC__
KERNEL void begin(int *levels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) levels[i] = i ? -1 : 0;
}
KERNEL void level(const int *starts, const int *targets, int *levels, int depth, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || levels[i] != depth) return;
    for (int k = starts[i]; k < starts[i + 1]; ++k)
        if (levels[targets[k]] < 0) levels[targets[k]] = depth + 1;
}
#else
void program(const int *restrict starts, const int *restrict targets, int *restrict levels, int n) {
    for (int i = 0; i < n; ++i) levels[i] = i ? -1 : 0;
    for (int depth = 0; depth < 8; ++depth)
#pragma omp parallel for schedule(static, 1024)
        for (int i = 0; i < n; ++i)
            if (levels[i] == depth)
                for (int k = starts[i]; k < starts[i + 1]; ++k)
                    if (levels[targets[k]] < 0) levels[targets[k]] = depth + 1;
}
#endif
