"""A small program that needs everything: a kernel is compiled, run and its result compared.

Where there is no NVRTC, because only programs that nvcc builds are to run, the kernel is one of PTX.

Run as a program, in a process of its own: a broken installation may crash or hang, and the doctor must live to tell.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time

from .installation import Facts, failure

TIMEOUT = 180.0  # seconds; a second or two is usual

SOURCE = r"""
template <typename T> __global__ void axpy(T *y, const T *x, T a, int n) {
    __shared__ T tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
    if (i < n) y[i] += a * tile[threadIdx.x];
}
"""
PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry axpy(.param .u64 to, .param .u64 from, .param .f32 by, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %d<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [count];
    setp.ge.u32 %p, %r4, %r5;
    @%p bra DONE;
    mul.wide.u32 %d1, %r4, 4;
    ld.param.u64 %d2, [from];
    ld.param.u64 %d3, [to];
    add.u64 %d4, %d2, %d1;
    add.u64 %d5, %d3, %d1;
    ld.param.f32 %f1, [by];
    ld.global.f32 %f2, [%d4];
    ld.global.f32 %f3, [%d5];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%d5], %f3;
DONE:
    ret;
}
"""
SIZE = 1000


def in_child(timeout: float = TIMEOUT) -> Facts:
    """Run the test in a child process; returns ``found`` (what was done) or ``error`` with ``details``."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"it did not end within {timeout:g} s"}
    lines = done.stdout.splitlines()
    try:
        facts = json.loads(lines[-1]) if lines else None
    except ValueError:
        facts = None
    if isinstance(facts, dict):
        return facts
    by = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    return {"error": f"the process ended with {by}", "details": done.stderr.strip()[-2000:]}


def test() -> Facts:
    """Compile, run, compare."""
    from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, ProgramOptions, launch
    from cupola.pathfinder._dynamic_libraries import copies_of

    start = time.perf_counter()
    device = Device()
    device.set_current()
    if has_nvrtc := bool(copies_of("nvrtc")):
        options = ProgramOptions(arch=f"sm_{device.arch}", std="c++17")
        code = Program(SOURCE, "c++", options).compile("cubin", name_expressions=("axpy<float>",))
        kernel = code.get_kernel("axpy<float>")
    else:
        kernel = ObjectCode.from_ptx(PTX).get_kernel("axpy")
    compiled = time.perf_counter()
    stream = device.create_stream()
    memory = LegacyPinnedMemoryResource()
    x, y = (memory.allocate(4 * SIZE, stream=stream) for _ in range(2))
    xs, ys = ((ctypes.c_float * SIZE).from_address(int(buffer.handle)) for buffer in (x, y))
    xs[:] = [float(i) for i in range(SIZE)]
    ys[:] = [1.0] * SIZE
    config = LaunchConfig(grid=(SIZE + 127) // 128, block=128)
    launch(stream, config, kernel, y, x, ctypes.c_float(2.0), ctypes.c_int(SIZE))
    stream.sync()
    wrong = next((i for i in range(SIZE) if ys[i] != 1.0 + 2.0 * i), None)
    if wrong is not None:
        return {"error": f"the kernel computed {ys[wrong]} where {1.0 + 2.0 * wrong} is right (element {wrong})"}
    end = time.perf_counter()
    x.close(stream)
    y.close(stream)
    stream.close()
    made = "compiled" if has_nvrtc else "loaded"
    return {
        "found": f"a kernel was {made} ({1e3 * (compiled - start):.0f} ms) and gave the right result "
        f"({1e3 * (end - compiled):.0f} ms) on {device.name}"
    }


if __name__ == "__main__":
    try:
        outcome = test()
    except Exception as error:  # whatever it is, it is the answer
        outcome = failure(error)
        outcome["details"] = "\n".join(str(error).splitlines()[1:]).strip()
    print(json.dumps(outcome))
