// What several_files.cu uses of the device.
__device__ int calls;
__constant__ float coefficients[4];

__device__ float polynomial(float x) {
    atomicAdd(&calls, 1);
    float sum = 0;
    for (int i = 3; i >= 0; i--) sum = sum * x + coefficients[i];
    return sum;
}

static __device__ float next(float x) { return x + 1; }
static __device__ float negative(float x) { return -x; }

typedef float (*Function)(float);
__device__ Function table[2] = {next, negative};
