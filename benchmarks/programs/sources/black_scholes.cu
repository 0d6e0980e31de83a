#ifdef __CUDACC__
KERNEL void options(const float *price, const float *strike, const float *years, float *call, float *put, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float t = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (0.02f + 0.045f) * years[i]) / (0.3f * t);
    float d2 = d1 - 0.3f * t, discount = strike[i] * expf(-0.02f * years[i]);
    float c1 = 0.5f * erfcf(-0.70710678f * d1), c2 = 0.5f * erfcf(-0.70710678f * d2);
    call[i] = price[i] * c1 - discount * c2;
    put[i] = discount * (1.0f - c2) - price[i] * (1.0f - c1);
}
#else
void program(const float *restrict price, const float *restrict strike, const float *restrict years,
             float *restrict call, float *restrict put, int n) {
#pragma omp parallel for simd
    for (int i = 0; i < n; ++i) {
        float t = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (0.02f + 0.045f) * years[i]) / (0.3f * t);
        float d2 = d1 - 0.3f * t, discount = strike[i] * expf(-0.02f * years[i]);
        float c1 = 0.5f * erfcf(-0.70710678f * d1), c2 = 0.5f * erfcf(-0.70710678f * d2);
        call[i] = price[i] * c1 - discount * c2;
        put[i] = discount * (1.0f - c2) - price[i] * (1.0f - c1);
    }
}
#endif
