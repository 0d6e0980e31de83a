#ifdef __CUDACC__
KERNEL void begin(float *sums, int *counts) {
    if (threadIdx.x < 16) counts[threadIdx.x] = 0;
    if (threadIdx.x < 64) sums[threadIdx.x] = 0;
}
KERNEL void assign(const float4 *points, const float *means, float *sums, int *counts, int n) {
    __shared__ float m[64], own[64];
    __shared__ int own_counts[16];
    int t = threadIdx.x;
    if (t < 64) m[t] = means[t], own[t] = 0;
    if (t < 16) own_counts[t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        float4 p = points[i];
        float best = 1e30f;
        int which = 0;
        for (int k = 0; k < 16; ++k) {
            float a = p.x - m[4 * k], b = p.y - m[4 * k + 1], c = p.z - m[4 * k + 2], d = p.w - m[4 * k + 3];
            float distance = a * a + b * b + c * c + d * d;
            if (distance < best) best = distance, which = k;
        }
        atomicAdd(&own[4 * which], p.x), atomicAdd(&own[4 * which + 1], p.y);
        atomicAdd(&own[4 * which + 2], p.z), atomicAdd(&own[4 * which + 3], p.w);
        atomicAdd(&own_counts[which], 1);
    }
    __syncthreads();
    if (t < 64) atomicAdd(&sums[t], own[t]);
    if (t < 16) atomicAdd(&counts[t], own_counts[t]);
}
#else
void program(const float *restrict points, const float *restrict means, float *restrict sums, int *restrict counts,
             int n) {
    memset(sums, 0, 256), memset(counts, 0, 64);
#pragma omp parallel
    {
        float own[64] = {0};
        int own_counts[16] = {0};
#pragma omp for
        for (int i = 0; i < n; ++i) {
            const float *p = points + 4 * i;
            float best = 1e30f;
            int which = 0;
            for (int k = 0; k < 16; ++k) {
                float a = p[0] - means[4 * k], b = p[1] - means[4 * k + 1], c = p[2] - means[4 * k + 2],
                      d = p[3] - means[4 * k + 3];
                float distance = a * a + b * b + c * c + d * d;
                if (distance < best) best = distance, which = k;
            }
            for (int d = 0; d < 4; ++d) own[4 * which + d] += p[d];
            own_counts[which]++;
        }
#pragma omp critical
        {
            for (int i = 0; i < 64; ++i) sums[i] += own[i];
            for (int i = 0; i < 16; ++i) counts[i] += own_counts[i];
        }
    }
}
#endif
