"""Kernels without debug information, on several streams, with time limits, and in clusters."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import cupola.cpu
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from cupola.cpu import ExpressionError
from tests import processes

pytestmark = pytest.mark.cpu_only

SOURCE = """\
extern "C" __global__ void scale(float* x, int n) {
    int i = threadIdx.x;
    if (i < n)
        x[i] = x[i] * 2 + n;
}
"""
PTX = """
.version 8.0
.target sm_50
.address_size 64
.visible .entry plain(.param .u64 plain_x, .param .u32 plain_n) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [plain_x];
    mov.u32 %r1, %tid.x;
    add.s32 %r2, %r1, 7;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


def launched(code, name, *arguments, block=32, wait=True):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    x = device.allocate(4 * 64, stream=stream)
    x.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=block), code.get_kernel(name), x, *arguments)
    if wait:
        stream.sync()
    return stream


def test_lines_without_variables():
    Device().set_current()
    seen = []
    # As a compiler for other languages leaves it: lines, and nothing on variables.
    ptx = Program(SOURCE, "c++", ProgramOptions(name="scale.cu", arch="sm_90", lineinfo=True)).compile("ptx").code
    with cupola.cpu.debugger() as debugger:
        code = Program(ptx.decode().rstrip("\0"), "ptx", ProgramOptions(arch="sm_90")).compile("cubin")
        debugger.breakpoint("scale.cu:4", thread=3)

        @debugger.on_stop
        def look(stop):
            try:
                stop.evaluate("i")
            except ExpressionError as error:
                seen.append(str(error))
            registers = stop._frames()[0].registers()
            seen.append((stop.function, stop.line, stop.evaluate("scale_param_1"), any("%r" in r for r in registers)))
            stop.next()

        launched(code, "scale", 5)
    assert "not compiled with debug=True" in seen[0] and "parameters param_0, param_1" in seen[0]
    assert seen[1] == ("scale", 4, 5, True)


def test_lines_of_the_ptx():
    seen = []
    with cupola.cpu.debugger() as debugger:
        code = Program(PTX, "ptx", ProgramOptions(arch="sm_90")).compile("cubin")
        debugger.breakpoint("plain", thread=5)

        @debugger.on_stop
        def look(stop):
            seen.append((stop.file, stop.line, stop.evaluate("%r1"), stop.evaluate("%r2"), stop.evaluate("n")))
            stop.step()

        launched(code, "plain", 9)
    lines = [line for _, line, *_ in seen]
    assert lines == sorted(lines) and len(lines) >= 4 and {row[0] for row in seen} == {"plain.ptx"}
    assert seen[-1][2:] == (5, 12, 9)


def test_the_file_of_the_ptx_has_a_short_name():
    """Not all types of the kernel's parameters, as its name has them in C++ and in numba."""
    files = []
    with cupola.cpu.debugger() as debugger:
        text = PTX.replace("plain", "_ZN6shapes5plainIiEEvPf")
        code = Program(text, "ptx", ProgramOptions(arch="sm_90")).compile("cubin")
        debugger.breakpoint("shapes::plain", thread=5)
        debugger.on_stop(lambda stop: files.append(stop.file))
        launched(code, "_ZN6shapes5plainIiEEvPf", 9)
    assert files == ["plain.ptx"]


def test_kernels_of_several_streams_stop_one_at_a_time():
    inside = threading.Semaphore(1)
    seen = []
    with cupola.cpu.debugger() as debugger:
        code = Program(SOURCE, "c++", ProgramOptions(name="scale.cu", arch="sm_90", debug=True)).compile("cubin")
        debugger.breakpoint("scale.cu:2")

        @debugger.on_stop
        def look(stop):
            assert inside.acquire(blocking=False), "two at a time"
            seen.append((stop.line, stop.evaluate("n")))
            inside.release()

        streams = [launched(code, "scale", n, wait=False) for n in range(40, 44)]
        for stream in streams:
            stream.sync()
    assert sorted(seen) == [(2, n) for n in range(40, 44)]


def test_threads_of_clusters_and_small_blocks():
    source = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) ranks(int* x) {
    int rank = blockIdx.x % 2;
    x[blockIdx.x] = rank;
}
"""
    seen = []
    with cupola.cpu.debugger() as debugger:
        code = Program(source, "c++", ProgramOptions(name="ranks.cu", arch="sm_90", debug=True)).compile("cubin")
        debugger.breakpoint("ranks.cu:4")

        @debugger.on_stop
        def look(stop):
            seen.append((stop.block[0], stop.evaluate("rank"), len(stop.lanes), stop.block_dim))

        device = Device()
        device.set_current()
        stream = device.create_stream()
        x = device.allocate(64, stream=stream)
        launch(stream, LaunchConfig(grid=4, block=(3, 2, 1)), code.get_kernel("ranks"), x)
        stream.sync()
    assert seen == [(block, block % 2, 6, (3, 2, 1)) for block in range(4)]


LIMITED = f"""
import sys, time
import cupola.cpu
limit = float(sys.argv[1])
cupola.cpu.use(timeout=limit)
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
with cupola.cpu.debugger() as debugger:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = Program({SOURCE!r}, "c++", ProgramOptions(name="scale.cu")).compile("cubin")
    kernel = code.get_kernel("scale")
    x = device.allocate(256, stream=stream)

    @debugger.on_stop
    def look(stop):
        time.sleep(1.3 * limit)
        print(stop.line, flush=True)
        stop.step()

    def run():
        begin = time.monotonic()
        launch(stream, LaunchConfig(grid=1, block=32), kernel, x, 5)
        stream.sync()
        return time.monotonic() - begin

    run()
    print(max(run() for _ in range(50)))
    debugger.breakpoint("scale", temporary=True)
    run()
print("fine")
"""


def test_time_limits_do_not_count_while_a_thread_is_stopped():
    """With a limit that is far longer than the kernel has taken on this machine, as busy as it is."""
    longest, *_ = processes.run([sys.executable, "-c", LIMITED, 0]).stdout.split()
    done = processes.run([sys.executable, "-c", LIMITED, max(0.3, 20 * float(longest))])
    assert done.stdout.split()[1:] == ["2", "3", "4", "5", "fine"], done.stdout + done.stderr


def test_without_a_debugger_nothing_is_different():
    """Kernels that were debugged run as ever afterwards, and code for a debugger is other code."""
    code = Program(SOURCE, "c++", ProgramOptions(name="scale.cu", arch="sm_90", debug=True)).compile("cubin")
    with cupola.cpu.debugger() as debugger:
        stops = []
        debugger.on_stop(lambda stop: stops.append(stop.line))
        debugger.breakpoint("scale.cu:3")
        launched(code, "scale", 5)
        assert stops == [3]
    launched(code, "scale", 5)
    assert stops == [3]
    with pytest.raises(RuntimeError, match="no kernel is stopped"):
        cupola.cpu._driver.debug_warps()


ONE_LINE = """\
struct Pair { float x, y; };
__device__ float sum(const Pair& p) { return p.x + p.y; }
extern "C" __global__ void add(float* x) { Pair p = {x[threadIdx.x], 1}; x[threadIdx.x] = sum(p); }
"""


@pytest.mark.parametrize(
    ("where", "condition", "expected"),
    [("sum", "p.x > 30", [("sum", 2, 31, 31.0)]), ("pair.cu:2", "", [("sum", 2, 0, None)])],
)
def test_a_function_in_one_line_stops_behind_its_parameters(where, condition, expected):
    """A line is one place, also where its first part is what copies the parameters."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    seen = []
    with cupola.cpu.debugger() as debugger:
        code = Program(ONE_LINE, "c++", ProgramOptions(name="pair.cu")).compile("cubin")
        debugger.breakpoint(where, condition=condition)

        @debugger.on_stop
        def look(stop):
            value = stop.evaluate("p.x") if condition else None
            seen.append((stop.function, stop.line, stop.thread[0], value))

        x = device.array(np.arange(32, dtype=np.float32), stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("add"), x)
        stream.sync()
    assert seen == expected
