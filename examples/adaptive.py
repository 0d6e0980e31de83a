"""Kernels that launch kernels: integrals are computed with more points only where the function asks for it."""

import math

import numpy as np

from cupola import Device, LaunchConfig, Linker, ObjectCode, Program, ProgramOptions, launch
from cupola.pathfinder import find_static_lib

# Each block looks at one interval. Simpson's rule with 64 and with 128 parts tells how good it is there; if it is not
# good enough, one thread launches a grid of four blocks, for the four quarters of the interval.
SOURCE = r"""
__device__ double f(double x) { return sin(1.0 / (x + 0.01)); }

__device__ double simpson(double begin, double width, int parts) {
    double sum = 0, step = width / parts;
    for (int i = threadIdx.x; i < parts; i += 32) {
        double x = begin + i * step;
        sum += step / 6 * (f(x) + 4 * f(x + step / 2) + f(x + step));
    }
    for (int distance = 16; distance; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    return sum;
}

extern "C" __global__ void integrate(double begin, double width, double allowed, double* integral, unsigned* count) {
    begin += blockIdx.x * width;
    double coarse = simpson(begin, width, 64), fine = simpson(begin, width, 128);
    if (threadIdx.x) return;
    if (fabs(fine - coarse) > allowed && width > 1e-6) {
        integrate<<<4, 32, 0, cudaStreamFireAndForget>>>(begin, width / 4, allowed / 4, integral, count);
    } else {
        atomicAdd(integral, fine);
        atomicAdd(count, 1u);
    }
}
"""


def build(dev: Device) -> ObjectCode:
    """Compile, and link with CUDA's device runtime, by which kernels launch."""
    options = ProgramOptions(arch=f"sm_{dev.arch}", relocatable_device_code=True, lineinfo=True)
    compiled = Program(SOURCE, "c++", options).compile("ptx")
    library = ObjectCode.from_library(find_static_lib("cudadevrt"))
    return Linker(compiled, library, options={"arch": f"sm_{dev.arch}"}).link("cubin")


def expected(parts: int = 2_000_000) -> float:
    """The same integral by many equal parts."""
    x = (np.arange(parts) + 0.5) / parts
    return float(np.mean(np.sin(1.0 / (x + 0.01))))


def main() -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    integrate = build(dev).get_kernel("integrate")
    integral, intervals = dev.zeros(1, np.float64, stream=stream), dev.zeros(1, np.uint32, stream=stream)

    launch(stream, LaunchConfig(grid=1, block=32), integrate, 0.0, 1.0, 1e-9, integral, intervals)
    (result,) = integral.to_numpy(stream=stream)
    (count,) = intervals.to_numpy(stream=stream)
    assert math.isclose(result, expected(), abs_tol=1e-8), (result, expected())
    for resource in (integral, intervals, stream):
        resource.close()
    print(f"adaptive: the integral is {result:.9f}, from {count} intervals of different widths, on {dev.name}")


if __name__ == "__main__":
    main()
