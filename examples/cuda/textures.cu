// An image in an array, read between its pixels through a texture and written through a surface.
#include <cmath>
#include <vector>

#include "check.h"

__global__ void half_a_pixel(cudaTextureObject_t image, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[y * width + x] = tex2D<float>(image, x + 1.0f, y + 0.5f);
}

__global__ void add_to_pixels(cudaSurfaceObject_t image, float more, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float value;
    surf2Dread(&value, image, x * sizeof(float), y);
    surf2Dwrite(value + more, image, x * sizeof(float), y);
}

int main() {
    const int width = 50, height = 30;
    std::vector<float> pixels(width * height), result(width * height);
    for (int i = 0; i < width * height; i++) pixels[i] = 8 * (i % width) + i / width;

    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, pixels.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc reading{};
    reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeClamp;
    reading.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateTextureObject(&texture, &resource, &reading, nullptr));
    CHECK(cudaCreateSurfaceObject(&surface, &resource));

    float *out;
    CHECK(cudaMalloc(&out, width * height * sizeof(float)));
    dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
    add_to_pixels<<<grid, block>>>(surface, 1000, width, height);
    half_a_pixel<<<grid, block>>>(texture, out, width, height);
    CHECK(cudaMemcpy(result.data(), out, width * height * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float next = x + 1 < width ? pixels[y * width + x + 1] : pixels[y * width + x];
            EXPECT(result[y * width + x] == (pixels[y * width + x] + next) / 2 + 1000);
        }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
    std::printf("%d x %d pixels\n", width, height);
}
