"""What the start of a CUDA C++ program costs on the CPU device: from the command to its end.

    python -m benchmarks.cpu_device.program_start [--kernels N]

Programs that nvcc builds (``cupola nvcc``), of one kernel and of many, three of which they launch. `cold` is the first
run, with nothing on disk but Python's bytecode, `again` the best of five later runs, which find the compiled kernels.
Times are seconds on a clock, and of the processor in parentheses.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNEL = """__global__ void kernel{0}(float *x, const float *y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = {0};
    for (int j = 0; j < n; j++) sum = sum * 0.5f + y[(i + j * {1}) % n];
    if (i < n) x[i] = sum > {0}.5f ? sqrtf(sum) : sum;
}}
"""
MAIN = """int main() {{
    float *x, *y, host[1024];
    if (cudaMalloc(&x, 4096) || cudaMalloc(&y, 4096) || cudaMemset(y, 0, 4096)) return 1;
    {launches}
    return cudaMemcpy(host, x, 4096, cudaMemcpyDeviceToHost) || host[0] != 0;
}}
"""


def source(count: int) -> str:
    """A program of so many kernels, of which it launches the last, one in the middle and the first."""
    used = sorted({0, count // 2, count - 1}, reverse=True)
    launches = " ".join(f"kernel{i}<<<4, 256>>>(x, y, 1024);" for i in used)
    kernels = "".join(KERNEL.format(i, i + 1) for i in range(count))
    return "#include <cuda_runtime.h>\n" + kernels + MAIN.format(launches=launches)


def run(program: Path, cache: Path) -> tuple[float, float]:
    """Seconds on a clock and of the processor."""
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(program)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | {"XDG_CACHE_HOME": str(cache)})
    passed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=500)
    count = parser.parse_args().kernels
    print("| program | cold | again |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kernels in (1, count):
            file, program = Path(folder, f"p{kernels}.cu"), Path(folder, f"p{kernels}")
            file.write_text(source(kernels))
            subprocess.run([sys.executable, "-m", "cupola", "nvcc", str(file), "-o", str(program)], check=True)
            cache = Path(folder, f"cache{kernels}")
            runs = [run(program, cache) for _ in range(6)]
            (cold, cold_cpu), (again, again_cpu) = runs[0], min(runs[1:])
            what = f"{kernels} kernel" + "s" * (kernels > 1)
            print(f"| {what} | {cold:.2f} ({cold_cpu:.2f}) | {again:.2f} ({again_cpu:.2f}) |")


if __name__ == "__main__":
    main()
