"""Compile once: two sources, linked with link-time optimization, and a cache on disk for the next run."""

import tempfile
from time import perf_counter

import numpy as np

from cupola import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch
from cupola.utils import FileStreamProgramCache, ProgramCacheResource

KERNEL = r"""
extern "C" __device__ float step(float x);
extern "C" __global__ void iterate(float* x, int n, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    for (int k = 0; k < count; k++) v = step(v);
    x[i] = v;
}
"""
STEPS = {
    "halve": 'extern "C" __device__ float step(float x) { return 0.5f * x; }',
    "logistic": 'extern "C" __device__ float step(float x) { return 3.7f * x * (1.0f - x); }',
}


def build(dev: Device, step: str, cache: ProgramCacheResource) -> ObjectCode:
    """Link the kernel with one of the steps; what was compiled before comes from the cache."""
    arch = f"sm_{dev.arch}"
    parts = [
        Program(source, "c++", ProgramOptions(arch=arch)).compile("ltoir", cache=cache)
        for source in (KERNEL, STEPS[step])
    ]
    return Linker(*parts, options=LinkerOptions(arch=arch, link_time_optimization=True)).link("cubin")


def main(n: int = 10_007, count: int = 20) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    x = np.random.default_rng(1).random(n, np.float32)
    with tempfile.TemporaryDirectory() as folder:  # leave the path out to use ~/.cache/cupola/program-cache
        for run in ("first", "second"):
            cache = FileStreamProgramCache(folder, max_size_bytes=64 << 20)
            start = perf_counter()
            code = {step: build(dev, step, cache) for step in STEPS}
            print(f"{run} run: compiled and linked in {1e3 * (perf_counter() - start):.0f} ms, {len(cache)} entries")
            for step in STEPS:
                x_device = dev.array(x, stream=stream)
                config = LaunchConfig(grid=(n + 255) // 256, block=256)
                launch(stream, config, code[step].get_kernel("iterate"), x_device, n, count)
                result = x_device.to_numpy(stream=stream)
                expected = x.astype(np.float64)
                for _ in range(count if step == "halve" else 0):
                    expected = 0.5 * expected
                if step == "halve":
                    np.testing.assert_allclose(result, expected, rtol=1e-6)
                else:
                    assert ((result >= 0) & (result <= 1)).all()
                x_device.close()
    stream.close()
    print(f"compile_cache: {len(STEPS)} kernels of {len(STEPS) + 1} sources, on {dev.name}")


if __name__ == "__main__":
    main()
