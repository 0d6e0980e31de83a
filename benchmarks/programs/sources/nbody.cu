#ifdef __CUDACC__
KERNEL void forces(const float4 *bodies, float4 *out, int n) {
    __shared__ float4 s[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 me = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += 128) {
        s[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; ++j) {
            float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
            float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = s[j].w * r * r * r;
            x += f * dx, y += f * dy, z += f * dz;
        }
        __syncthreads();
    }
    out[i] = make_float4(x, y, z, 0);
}
#else
void program(const float *restrict bodies, float *restrict out, int n) {
    float *xs = malloc(16 * (size_t)n), *ys = xs + n, *zs = ys + n, *ms = zs + n;
    for (int i = 0; i < n; ++i)
        xs[i] = bodies[4 * i], ys[i] = bodies[4 * i + 1], zs[i] = bodies[4 * i + 2], ms[i] = bodies[4 * i + 3];
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        float x = 0, y = 0, z = 0;
#pragma omp simd reduction(+ : x, y, z)
        for (int j = 0; j < n; ++j) {
            float dx = xs[j] - xs[i], dy = ys[j] - ys[i], dz = zs[j] - zs[i];
            float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = ms[j] * r * r * r;
            x += f * dx, y += f * dy, z += f * dz;
        }
        out[4 * i] = x, out[4 * i + 1] = y, out[4 * i + 2] = z, out[4 * i + 3] = 0;
    }
    free(xs);
}
#endif
