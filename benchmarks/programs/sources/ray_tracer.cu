SHARED_BOTH float shade(const float *spheres, int count, float x, float y) { /* one ray from the origin */
    float length = sqrtf(x * x + y * y + 1.0f), dx = x / length, dy = y / length, dz = 1.0f / length;
    float nearest = 1e30f, light = 0.1f;
    for (int k = 0; k < count; ++k) {
        const float *s = spheres + 4 * k;
        float along = dx * s[0] + dy * s[1] + dz * s[2];
        float off = s[3] * s[3] - (s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - along * along);
        if (off > 0.0f) {
            float distance = along - sqrtf(off);
            if (distance > 0.0f && distance < nearest) {
                nearest = distance;
                light = (s[0] - dx * distance - s[1] + dy * distance + s[2] - dz * distance) / (1.7320508f * s[3]);
            }
        }
    }
    return light;
}
#ifdef __CUDACC__
KERNEL void trace(const float *spheres, float *out, int count, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    out[i * n + j] = shade(spheres, count, (j - n / 2) / (float)n, (i - n / 2) / (float)n);
}
#else
void program(const float *restrict spheres, float *restrict out, int count, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            out[i * n + j] = shade(spheres, count, (j - n / 2) / (float)n, (i - n / 2) / (float)n);
}
#endif
