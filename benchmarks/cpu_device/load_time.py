"""What loading a module costs, and the first launch of each of its kernels: from PTX to results.

    python -m benchmarks.cpu_device.load_time [--json FILE] [NAME ...]

Each row is a process of its own, without bytecode to compile. `import` is importing cupola and making a context, `load`
is cuModuleLoadData, `first` the first launch of one kernel with the wait for its end, and `each` the mean of that of
others, a hundred at most.
`again` is the same load in another process that finds the cache of the first. Times are seconds of the processor (of
all threads), and what passed on a clock in parentheses.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any


def reductions(count: int) -> str:
    """Kernels with a loop, shared memory and barriers, each with its own factor."""
    return "\n".join(
        f"""extern "C" __global__ void k{i}(float *out, const float *x, int n) {{
    __shared__ float s[256];
    float sum = 0;
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x)
        sum += x[j] * {i}.5f + sqrtf(x[j]);
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 128; k; k >>= 1) {{
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
        __syncthreads();
    }}
    if (!threadIdx.x) out[blockIdx.x] = s[0];
}}"""
        for i in range(count)
    )


def unrolled(count: int) -> str:
    """Kernels of 1,400 lines each, as programs unroll products of small matrices in registers."""
    return "\n".join(
        f"""extern "C" __global__ void k{i}(float *out, const float *x, int n) {{
    float a[16], b[16], c[16][16];
#pragma unroll
    for (int r = 0; r < 16; ++r)
#pragma unroll
        for (int s = 0; s < 16; ++s) c[r][s] = {i};
    for (int k = 0; k < n; k += 8192) {{
#pragma unroll
        for (int r = 0; r < 16; ++r) {{
            a[r] = x[k + threadIdx.x + 256 * r];
            b[r] = x[k + threadIdx.x + 256 * (r + 16)];
        }}
#pragma unroll
        for (int r = 0; r < 16; ++r)
#pragma unroll
            for (int s = 0; s < 16; ++s) c[r][s] += a[r] * b[s];
    }}
    float sum = 0;
#pragma unroll
    for (int r = 0; r < 16; ++r)
#pragma unroll
        for (int s = 0; s < 16; ++s) sum += c[r][s];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}}"""
        for i in range(count)
    )


MODULES: dict[str, Callable[[], str]] = {
    "1 kernel": lambda: reductions(1),
    "100 kernels": lambda: reductions(100),
    "500 kernels": lambda: reductions(500),
    "28 large kernels": lambda: unrolled(28),
}


def measure(ptx_path: str, *, launches: bool) -> dict[str, tuple[float, float]]:
    """The times of one process: of the processor, and on a clock."""
    times: dict[str, tuple[float, float]] = {}
    before = time.process_time(), time.perf_counter()

    def lap(name: str) -> None:
        nonlocal before
        now = time.process_time(), time.perf_counter()
        times[name] = now[0] - before[0], now[1] - before[1]
        before = now

    from cupola.bindings import driver

    def done(result: Any) -> Any:
        if result[0]:
            raise RuntimeError(result[0])
        return result[1] if len(result) > 1 else None

    done(driver.cuInit(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(0))))
    x, out = done(driver.cuMemAlloc(4 << 14)), done(driver.cuMemAlloc(4 << 14))
    lap("import")
    with open(ptx_path, "rb") as file:
        text = file.read()
    before = time.process_time(), time.perf_counter()
    module = done(driver.cuModuleLoadData(text))
    lap("load")
    count = min(done(driver.cuModuleGetFunctionCount(module)), 101) if launches else 0
    for i in range(count):
        kernel = done(driver.cuModuleGetFunction(module, f"k{i}".encode()))
        arguments = (int(out), int(x), 1 << 14), (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        done(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, None, arguments, 0))
        done(driver.cuCtxSynchronize())
        if not i:
            lap("first")
    if count > 1:
        lap("each")
        processor, clock = times["each"]
        times["each"] = processor / (count - 1), clock / (count - 1)
    return times


def in_process(ptx_path: str, cache: str, *, launches: bool) -> dict[str, list[float]]:
    script = (
        "import json, sys; from benchmarks.cpu_device.load_time import measure; "
        f"print(json.dumps(measure({ptx_path!r}, launches={launches})))"
    )
    variables = {**os.environ, "CUPOLA_DEVICE": "cpu", "XDG_CACHE_HOME": cache}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, env=variables)
    result: dict[str, list[float]] = json.loads(done.stdout)
    return result


def compile_ptx(source: str, path: str) -> int:
    from cupola import Program, ProgramOptions

    code = Program(source, code_type="c++", options=ProgramOptions(arch="compute_90")).compile("ptx").code
    text = (code.encode() if isinstance(code, str) else bytes(code)).rstrip(b"\0")
    with open(path, "wb") as file:
        file.write(text)
    return len(text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_device.load_time", description=__doc__)
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("names", nargs="*", help="parts of the names of the modules")
    options = parser.parse_args()
    os.environ["CUPOLA_DEVICE"] = "cpu"
    columns = ("import", "load", "first", "each", "again")
    print(f"{'module':20}{'MB of PTX':>10}" + "".join(f"{name:>16}" for name in columns))
    rows = []
    for name, source in MODULES.items():
        if options.names and not any(part in name for part in options.names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "module.ptx")
            size = compile_ptx(source(), path)
            in_process(path, os.path.join(folder, "warm"), launches=False)  # the files of Python and LLVM are in memory
            times = in_process(path, os.path.join(folder, "cache"), launches=True)
            times["again"] = in_process(path, os.path.join(folder, "cache"), launches=False)["load"]
        cells = "".join(
            f"{times[column][0]:7.3f} ({times[column][1]:6.3f})" if column in times else f"{'-':>16}"
            for column in columns
        )
        print(f"{name:20}{size / 1e6:10.2f}{cells}", flush=True)
        rows.append({"module": name, "bytes": size, **times})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
