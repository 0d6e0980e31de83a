// Kernels as templates: types, functors, extended lambdas' older sisters, variadic arguments, classes with virtual functions.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "check.h"

template <typename T> struct Scale {
    T factor;
    __host__ __device__ T operator()(T x) const { return factor * x; }
};

struct Square {
    template <typename T> __host__ __device__ T operator()(T x) const { return x * x; }
};

template <typename T, typename F> __global__ void map(T *values, int n, F function) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = function(values[i]);
}

template <typename... T> __global__ void sum(double *out, T... values) {
    *out = (0.0 + ... + static_cast<double>(values));
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Rectangle : Shape {
    float a, b;
    __device__ Rectangle(float a, float b) : a(a), b(b) {}
    __device__ float area() const override { return a * b; }
};
struct Cube : Rectangle {
    __device__ explicit Cube(float a) : Rectangle(a, a) {}
    __device__ float area() const override { return 6 * Rectangle::area(); }
};

__global__ void areas(float *out) {
    Shape *shape = threadIdx.x % 2 ? static_cast<Shape *>(new Cube(threadIdx.x)) : new Rectangle(threadIdx.x, 2);
    out[threadIdx.x] = shape->area();
    delete shape;
}

template <typename T, typename F> void try_map(F function) {
    const int n = 777;
    std::vector<T> values(n), result(n);
    for (int i = 0; i < n; i++) values[i] = static_cast<T>(i % 11 - 5);
    T *device;
    CHECK(cudaMalloc(&device, n * sizeof(T)));
    CHECK(cudaMemcpy(device, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    map<<<(n + 63) / 64, 64>>>(device, n, function);
    CHECK(cudaMemcpy(result.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(result[i] == function(values[i]));
    CHECK(cudaFree(device));
}

int main() {
    try_map<float>(Scale<float>{2.5f});
    try_map<double>(Scale<double>{-3});
    try_map<int8_t>(Square{});
    try_map<int64_t>(Square{});
    try_map<uint16_t>(Scale<uint16_t>{3});

    double *out, result;
    CHECK(cudaMalloc(&out, 32 * sizeof(double)));
    sum<<<1, 1>>>(out, 1, 2.5f, static_cast<int8_t>(-3), 4ull, 0.125);
    CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 4.625);

    float area[32];
    areas<<<1, 32>>>(reinterpret_cast<float *>(out));
    CHECK(cudaMemcpy(area, out, sizeof area, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) EXPECT(area[i] == (i % 2 ? 6.0f * i * i : 2.0f * i));
    std::printf("five types, virtual functions, variadic templates\n");
}
