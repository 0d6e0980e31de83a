"""Two programs that are compiled apart and linked: one has the kernel, the other the function and the table it uses.

That is how a library of device functions is compiled once and used by many kernels. Change one part, and only that one
is compiled again.
"""

import numpy as np

from cupola import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch

KERNEL = r"""
extern __constant__ float coefficients[4];
extern __device__ unsigned long long evaluations;
__device__ float polynomial(float x);

extern "C" __global__ void apply(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = polynomial(x[i]) - coefficients[0];
    if (i == 0) evaluations += n;
}
"""
FUNCTIONS = r"""
__constant__ float coefficients[4] = {1.0f, 0.5f, -2.0f, 0.25f};
__device__ unsigned long long evaluations;

static __device__ float step(float sum, float x, float c) { return sum * x + c; }  // a name of this program alone

__device__ float polynomial(float x) {
    float sum = 0;
    for (int i = 3; i >= 0; --i) sum = step(sum, x, coefficients[i]);
    return sum;
}

extern "C" __global__ void count(unsigned long long* result) { *result = evaluations; }
"""


def main(n: int = 100_000) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    arch = f"sm_{dev.arch}"
    parts: list[ObjectCode] = []
    for name, source in (("kernel.cu", KERNEL), ("functions.cu", FUNCTIONS)):
        options = ProgramOptions(std="c++17", arch=arch, relocatable_device_code=True, lineinfo=True, name=name)
        parts.append(Program(source, code_type="c++", options=options).compile("ptx"))
    code = Linker(*parts, options=LinkerOptions(arch=arch, lineinfo=True)).link("cubin")

    x = np.linspace(-2, 2, n, dtype=np.float32)
    x_device = dev.array(x, stream=stream)
    count_device = dev.empty(1, np.uint64, stream=stream)
    launch(stream, LaunchConfig(grid=-(-n // 256), block=256), code.get_kernel("apply"), x_device, np.int32(n))
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("count"), count_device)
    np.testing.assert_allclose(x_device.to_numpy(stream=stream), ((0.25 * x - 2) * x + 0.5) * x, rtol=1e-4, atol=1e-5)
    count = count_device.to_numpy(stream=stream)[0]
    assert count == n
    for resource in (x_device, count_device, stream):
        resource.close()
    print(f"separate compilation: {count} values by a function of another program, on {dev.name}")


if __name__ == "__main__":
    main()
