// CUDA's math libraries from C++: random matrices of cuRAND, and their product by cuBLAS, checked with a kernel.
// Build with -lcublas -lcurand.
#include <cmath>
#include <vector>

#include "check.h"

#if __has_include(<cublas_v2.h>) && __has_include(<curand.h>)
#include <cublas_v2.h>
#include <curand.h>
#else  // without NVIDIA's packages (pip install nvidia-cublas nvidia-curand): what this program uses of them
extern "C" {
typedef struct cublasContext *cublasHandle_t;
typedef struct curandGenerator_st *curandGenerator_t;
enum { CUBLAS_OP_N = 0, CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161 };
int cublasCreate_v2(cublasHandle_t *);
int cublasSetStream_v2(cublasHandle_t, cudaStream_t);
int cublasSgemm_v2(cublasHandle_t, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
int cublasDestroy_v2(cublasHandle_t);
int curandCreateGenerator(curandGenerator_t *, int);
int curandSetStream(curandGenerator_t, cudaStream_t);
int curandSetPseudoRandomGeneratorSeed(curandGenerator_t, unsigned long long);
int curandGenerateUniform(curandGenerator_t, float *, size_t);
int curandDestroyGenerator(curandGenerator_t);
}
#define cublasCreate cublasCreate_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSgemm cublasSgemm_v2
#define cublasDestroy cublasDestroy_v2
#endif

// Columns first, as cuBLAS has them.
__global__ void subtract_product(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y;
    if (row >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[k * n + row] * b[column * n + k];
    c[column * n + row] -= sum;
}

int main() {
    const int n = 100;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    float *a, *b, *c;
    for (float **matrix : {&a, &b, &c}) CHECK(cudaMalloc(matrix, n * n * sizeof(float)));

    curandGenerator_t generator;
    EXPECT(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10) == 0);
    EXPECT(curandSetStream(generator, stream) == 0);
    EXPECT(curandSetPseudoRandomGeneratorSeed(generator, 1234) == 0);
    EXPECT(curandGenerateUniform(generator, a, n * n) == 0);
    EXPECT(curandGenerateUniform(generator, b, n * n) == 0);

    cublasHandle_t blas;
    const float one = 1, zero = 0;
    EXPECT(cublasCreate(&blas) == 0);
    EXPECT(cublasSetStream(blas, stream) == 0);
    EXPECT(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n) == 0);
    subtract_product<<<dim3((n + 63) / 64, n), 64, 0, stream>>>(a, b, c, n);
    CHECK(cudaGetLastError());

    std::vector<float> numbers(n * n), rest(n * n);
    CHECK(cudaMemcpyAsync(numbers.data(), a, n * n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(rest.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    double mean = 0;
    for (float number : numbers) {
        EXPECT(number > 0 && number <= 1);
        mean += number / (n * n);
    }
    EXPECT(std::fabs(mean - 0.5) < 0.02);
    for (float difference : rest) EXPECT(std::fabs(difference) < 1e-3);
    EXPECT(curandDestroyGenerator(generator) == 0);
    EXPECT(cublasDestroy(blas) == 0);
    std::printf("the product of %d by %d random matrices is right\n", n, n);
}
