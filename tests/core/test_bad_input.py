"""Mistakes as users make them: a clear error at the call, and the process goes on.

Behind every case a good kernel runs on another stream and must give the right result: nothing here may spoil the
context.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Program,
    ProgramOptions,
    StreamOptions,
    launch,
)
from cupola.utils import StridedMemoryView

ONE = LaunchConfig(grid=1, block=1)

# A kernel without NVRTC: *x += 1.
INCREMENT = rb"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 x)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.u32 %r1, [%rd2];
    add.u32 %r2, %r1, 1;
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


@pytest.fixture(autouse=True)
def goes_on(device, module, out):
    yield
    other = device.create_stream()
    ctypes.memset(out.handle, 0, 4)
    launch(other, LaunchConfig(grid=4, block=32), module.get_kernel("add"), out, 3)
    other.sync()
    assert ctypes.c_int.from_address(out.handle).value == 4 * 32 * 3
    other.close()


@pytest.fixture
def things(device, stream, module, out):
    """What the cases below use: good things, and closed ones."""
    closed_buffer = device.allocate(256, stream=stream)
    closed_buffer.close()
    closed_stream = device.create_stream()
    event = closed_stream.record()
    event.close()
    closed_stream.close()
    builder = stream.create_graph_builder().begin_building()
    launch(builder, ONE, module.get_kernel("nothing"))
    graph = builder.end_building().complete()
    graph.close()
    builder.close()
    with device.allocate(128, stream=stream) as half:
        yield SimpleNamespace(
            device=device,
            stream=stream,
            out=out,
            half=half,
            kernel=module.get_kernel,
            keep=lambda type_: module.get_kernel(f"keep<{type_}>"),
            closed_buffer=closed_buffer,
            closed_stream=closed_stream,
            closed_event=event,
            closed_graph=graph,
            closed_builder=builder,
        )


def shaped(**config: Any) -> Callable[[Any], None]:
    """Launch an empty kernel of this shape."""
    return lambda t: launch(t.stream, LaunchConfig(**config), t.kernel("nothing"))


CASES: dict[str, tuple[Callable[[Any], Any], type[Exception], list[str]]] = {
    # --- arguments of kernels
    "too few arguments": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.out),
        TypeError,
        ["kernel add takes 2 arguments of 8, 4 bytes; 1 given"],
    ),
    "too many arguments": (
        lambda t: launch(t.stream, ONE, t.kernel("nothing"), 1),
        TypeError,
        ["kernel nothing takes 0 arguments; 1 given"],
    ),
    "a wide number for a narrow parameter": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.out, np.int64(3)),
        TypeError,
        ["parameter 1 of kernel add is 4 bytes (at offset 8), but numpy.int64 is 8 bytes", "numpy.int32"],
    ),
    "a narrow number for a wide parameter": (
        lambda t: launch(t.stream, ONE, t.keep("double"), t.out, np.float32(3)),
        TypeError,
        ["parameter 1 of kernel", "is 8 bytes (at offset 8), but numpy.float32 is 4 bytes", "numpy.float64"],
    ),
    "a number for a structure": (
        lambda t: launch(t.stream, ONE, t.keep("Pair"), t.out, 3.0),
        TypeError,
        ["parameter 1 of kernel", "is 16 bytes (at offset 8), but float is 8 bytes", "a ctypes.Structure"],
    ),
    "a buffer for a number": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.out, t.half),
        TypeError,
        ["parameter 1 of kernel add is 4 bytes", "Buffer is 8 bytes"],
    ),
    "a number out of range": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.out, 1 << 40),
        OverflowError,
        ["parameter 1 of kernel add is 32 bits wide"],
    ),
    "an array on the host": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), np.zeros(4), 1),
        TypeError,
        ["unsupported type numpy.ndarray for parameter 0 of kernel add", "pass In(array)", "dev.array(array)"],
    ),
    "None": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), None, 1),
        TypeError,
        ["unsupported type NoneType for parameter 0", "pass 0 for a null pointer"],
    ),
    # --- limits of the device
    "a block too large": (shaped(grid=1, block=1025), CUDAError, ["block.x is 1025", "takes at most 1024"]),
    "a block too deep": (shaped(grid=1, block=(1, 1, 65)), CUDAError, ["block.z is 65", "takes at most 64"]),
    "too many threads": (
        shaped(grid=1, block=(64, 64)),
        CUDAError,
        ["the block has 4096 threads", "takes at most 1024"],
    ),
    "more threads than the kernel permits": (
        lambda t: launch(t.stream, LaunchConfig(grid=1, block=65), t.kernel("few")),
        CUDAError,
        ["the block has 65 threads; kernel few takes at most 64", "__launch_bounds__"],
    ),
    "a grid too large": (shaped(grid=(1, 65536), block=1), CUDAError, ["grid.y is 65536 blocks", "at most 65535"]),
    "a grid beyond 32 bits": (shaped(grid=1 << 33, block=1), OverflowError, ["grid must fit in 32 bits"]),
    "an empty grid": (
        shaped(grid=0, block=256),
        ValueError,
        ["every extent of grid must be >= 1, got 0; if there is nothing to do, do not launch"],
    ),
    "a negative grid": (shaped(grid=(1, -1), block=1), ValueError, ["every extent of grid must be >= 1, got (1, -1)"]),
    "no grid": (shaped(block=1), ValueError, ["grid must be an int or a tuple", "write LaunchConfig(grid=..., block="]),
    "a block in the place of the cluster": (
        lambda t: LaunchConfig(4, 256),
        ValueError,
        ["block must be an int", "by position the second argument is cluster"],
    ),
    "a grid that is a float": (
        shaped(grid=1000 / 256, block=256),
        ValueError,
        ["grid must be an int or a tuple of at most 3 ints, got 3.90625: round it, up with"],
    ),
    "too much shared memory": (
        shaped(grid=1, block=1, shmem_size=1 << 24),
        CUDAError,
        ["the block uses 16777216 bytes of shared memory"],
    ),
    "a cooperative grid too large": (
        shaped(grid=1 << 20, block=1024, is_cooperative=True),
        ValueError,
        ["the grid has 1048576 blocks, the most is"],
    ),
    # --- closed things
    "a closed buffer as argument": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.closed_buffer, 1),
        RuntimeError,
        ["Buffer has been closed", "parameter 0 of kernel add"],
    ),
    "a copy from a closed buffer": (
        lambda t: t.closed_buffer.copy_to(t.out, stream=t.stream),
        RuntimeError,
        ["Buffer has been closed"],
    ),
    "a copy to a closed buffer": (
        lambda t: t.out.copy_to(t.closed_buffer, stream=t.stream),
        RuntimeError,
        ["Buffer has been closed: it is the argument dst"],
    ),
    "a fill of a closed buffer": (
        lambda t: t.closed_buffer.fill(0, stream=t.stream),
        RuntimeError,
        ["Buffer has been closed"],
    ),
    "a view of a closed buffer": (
        lambda t: np.from_dlpack(t.closed_buffer),
        RuntimeError,
        ["Buffer has been closed"],
    ),
    "a launch in a closed stream": (
        lambda t: launch(t.closed_stream, ONE, t.kernel("nothing")),
        RuntimeError,
        ["Stream has been closed"],
    ),
    "an allocation in a closed stream": (
        lambda t: t.device.allocate(4, stream=t.closed_stream),
        RuntimeError,
        ["Stream has been closed"],
    ),
    "a fill in a closed stream": (
        lambda t: t.out.fill(0, stream=t.closed_stream),
        RuntimeError,
        ["Stream has been closed"],
    ),
    "a wait for a closed stream": (
        lambda t: t.stream.wait(t.closed_stream),
        RuntimeError,
        ["Stream has been closed"],
    ),
    "a sync of a closed stream": (lambda t: t.closed_stream.sync(), RuntimeError, ["Stream has been closed"]),
    "a record of a closed event": (
        lambda t: t.stream.record(t.closed_event),
        RuntimeError,
        ["Event has been closed"],
    ),
    "a wait for a closed event": (
        lambda t: t.stream.wait(t.closed_event),
        RuntimeError,
        ["Event has been closed"],
    ),
    "the time of a closed event": (
        lambda t: t.stream.record(options={"timing_enabled": True}) - t.closed_event,
        RuntimeError,
        ["Event has been closed"],
    ),
    "a launch of a closed graph": (
        lambda t: t.closed_graph.launch(t.stream),
        RuntimeError,
        ["Graph has been closed"],
    ),
    "a launch in a closed builder": (
        lambda t: launch(t.closed_builder, ONE, t.kernel("nothing")),
        RuntimeError,
        ["GraphBuilder has been closed"],
    ),
    # --- copies, fills, allocations
    "a copy to a smaller buffer": (
        lambda t: t.out.copy_to(t.half, stream=t.stream),
        ValueError,
        ["the source has 256 bytes, the destination 128"],
    ),
    "a copy from a smaller buffer": (
        lambda t: t.out.copy_from(t.half, stream=t.stream),
        ValueError,
        ["the source has 128 bytes, the destination 256"],
    ),
    "a copy without a stream": (
        lambda t: t.out.copy_to(t.out, stream=None),
        TypeError,
        ["a stream is required", "default_stream"],
    ),
    "a fill that does not fit": (
        lambda t: Buffer.from_handle(t.out.handle, 6, owner=t.out).fill(b"four", stream=t.stream),
        ValueError,
        ["6 bytes, must be divisible by 4"],
    ),
    "a fill with a number too large": (
        lambda t: t.out.fill(256, stream=t.stream),
        OverflowError,
        ["from 0 to 255, got 256"],
    ),
    "a negative size": (
        lambda t: t.device.allocate(-1, stream=t.stream),
        OverflowError,
        ["size must not be negative: -1"],
    ),
    "a size beyond 64 bits": (
        lambda t: t.device.allocate(1 << 64, stream=t.stream),
        OverflowError,
        ["size must be a number of bytes below 2**64, got 18446744073709551616"],
    ),
    "a size that is no number": (
        lambda t: t.device.allocate("1k", stream=t.stream),
        TypeError,
        ["size must be an int, a number of bytes, not str"],
    ),
    "a size that is a float": (
        lambda t: t.device.allocate(1e3, stream=t.stream),
        TypeError,
        ["size must be an int, a number of bytes, not float; round it, as in int(size)"],
    ),
    "a copy from a list": (
        lambda t: t.out.copy_from([0.0] * 64, stream=t.stream),
        TypeError,
        ["src must be a Buffer, or an array with the buffer protocol or DLPack, got list"],
    ),
    "a copy to every second element of pinned memory": (
        lambda t: t.out.copy_to(
            np.from_dlpack(LegacyPinnedMemoryResource().allocate(512)).view("f4")[::2], stream=t.stream
        ),
        ValueError,
        ["dst must be contiguous in row-major order", "ascontiguousarray(array)"],
    ),
    # --- things in the place of others
    "stream and config interchanged": (
        lambda t: launch(ONE, t.stream, t.kernel("nothing")),
        TypeError,
        ["config must be a LaunchConfig, not Stream: launch takes (stream, config, kernel, *kernel_args)"],
    ),
    "a number of blocks as config": (
        lambda t: launch(t.stream, 64, t.kernel("nothing")),
        TypeError,
        ["config must be a LaunchConfig, not int", "LaunchConfig(grid=64, block=256)"],
    ),
    "the name of a kernel as kernel": (
        lambda t: launch(t.stream, ONE, "nothing"),
        TypeError,
        ["kernel must be a Kernel, not str", "ObjectCode.get_kernel(name)"],
    ),
    "a device as stream": (
        lambda t: launch(t.device, ONE, t.kernel("nothing")),
        TypeError,
        ["Stream or GraphBuilder expected, got Device; make one with device.create_stream()"],
    ),
    "an address as stream": (
        lambda t: launch(int(t.stream.handle), ONE, t.kernel("nothing")),
        TypeError,
        ["Stream or GraphBuilder expected, got int; Stream.from_handle(address) wraps an address"],
    ),
    "arguments by name": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.out, n=3),
        TypeError,
        ["unexpected keyword argument 'n': the kernel's arguments are given by position"],
    ),
    "arguments as a tuple": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), (t.out, 3)),
        TypeError,
        ["kernel add takes 2 arguments of 8, 4 bytes; 1 given: a tuple, pass its items, as *values"],
    ),
    "a list for a pointer": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), [1, 2], 3),
        TypeError,
        ["unsupported type list for parameter 0 of kernel add; pass each of its items, as *values, or for an array"],
    ),
    "a view for a pointer": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), StridedMemoryView.from_dlpack(t.half, stream_ptr=-1), 3),
        TypeError,
        ["unsupported type cupola.core.exchange._view.StridedMemoryView for parameter 0", "pass its address, view.ptr"],
    ),
    "a stream for a pointer": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), t.stream, 3),
        TypeError,
        ["unsupported type cupola.core.device._stream.Stream", "pass a Buffer, a number, or a NumPy or ctypes scalar"],
    ),
    "a tensor on the host": (
        lambda t: launch(
            t.stream, ONE, t.kernel("add"), SimpleNamespace(is_cuda=False, data_ptr=lambda: 4096, ndim=1), 3
        ),
        TypeError,
        ["it is memory of the host; copy it to a Buffer and pass that"],
    ),
    "a foreign array on the host with DLPack alone": (
        lambda t: launch(
            t.stream, ONE, t.kernel("add"), SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (1, 0)), 3
        ),
        TypeError,
        ["it is memory of the host; copy it to a Buffer and pass that"],
    ),
    "a foreign array with DLPack alone": (
        lambda t: launch(t.stream, ONE, t.kernel("add"), SimpleNamespace(__dlpack__=t.half.__dlpack__), 3),
        TypeError,
        ["pass its address, StridedMemoryView.from_dlpack(array, stream_ptr=stream.handle).ptr, while the view lives"],
    ),
    "more memory than there is": (
        lambda t: t.device.allocate(1 << 41, stream=t.stream),
        CUDAError,
        ["CUDA_ERROR_OUT_OF_MEMORY", "cuMemAllocFromPoolAsync"],
    ),
    # --- code
    "a kernel that is not there": (
        lambda t: ObjectCode.from_ptx(INCREMENT, name="mine").get_kernel("decrement"),
        CUDAError,
        ["there is no kernel 'decrement' in the ptx code, which has: increment; did you mean 'increment'?"],
    ),
    "a kernel with a mangled name": (
        lambda t: Program("__global__ void k() {}", "c++").compile("cubin").get_kernel("k"),
        CUDAError,
        ['which has: _Z1kv. Kernels that are not extern "C"', "name_expressions=('k',))"],
    ),
    "code that does not compile": (
        lambda t: Program("__global__ void k() { oops; }", "c++", {"name": "mine.cu"}).compile("cubin"),
        CUDAError,
        ['mine.cu(1): error: identifier "oops" is undefined'],
    ),
    "the language for the type of code": (
        lambda t: Program("", "cuda"),
        RuntimeError,
        ['unsupported code_type \'cuda\'; the code types are "c++", "ptx" and "nvvm"', 'For CUDA C++ write "c++"'],
    ),
    "NVVM IR that is an object": (
        lambda t: Program(["define"], "nvvm"),
        TypeError,
        ["NVVM IR is str, bytes or bytearray, not list"],
    ),
    "an option with a slip": (
        lambda t: Program("", "c++", {"lineinof": True}),
        TypeError,
        ["ProgramOptions has no option 'lineinof'; did you mean 'lineinfo'?"],
    ),
    "a keyword of options with a slip": (
        lambda t: ProgramOptions(fast_math=True),  # type: ignore[call-arg]
        TypeError,
        ["ProgramOptions has no option 'fast_math'; did you mean 'use_fast_math'?"],
    ),
    "an option whose older spelling is nearer": (
        lambda t: t.stream.record(options={"timing": True}),
        TypeError,
        ["EventOptions has no option 'timing'; did you mean 'timing_enabled'?"],
    ),
    "a keyword of a configuration with a slip": (
        lambda t: LaunchConfig(grid=1, block=1, shmem=64),
        TypeError,
        ["LaunchConfig has no field 'shmem'; did you mean 'shmem_size'?"],
    ),
    "options in the place of a stream": (
        lambda t: t.device.create_stream(StreamOptions(priority=-1)),
        TypeError,
        ["the first argument is an existing stream: write create_stream(options=...)"],
    ),
    "one name expression without a tuple": (
        lambda t: Program("", "c++").compile("cubin", name_expressions="keep<int>"),
        TypeError,
        ["name_expressions is a sequence of names: write ('keep<int>',)"],
    ),
    "the text of PTX for its path": (
        lambda t: ObjectCode.from_ptx(INCREMENT.decode()),
        ValueError,
        ["a str is the path of a file: give the code itself as bytes, code.encode()"],
    ),
    "an architecture without sm_": (
        lambda t: Program("", "c++", {"arch": t.device.arch}).compile("cubin"),
        CUDAError,
        ["arch must look like 'sm_90' or 'compute_90', not '", "': write arch=f'sm_{device.arch}'"],
    ),
    "PTX that is none": (
        lambda t: ObjectCode.from_ptx(INCREMENT.replace(b"add.u32", b"frobnicate.u32"), name="mine").get_kernel("k"),
        CUDAError,
        ["CUDA_ERROR_INVALID_PTX", "while the ptx code 'mine' was loaded"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(things, name):
    call, error, texts = CASES[name]
    with pytest.raises(error) as caught:
        call(things)
    for text in texts:
        assert text in str(caught.value)


def test_a_bad_launch_leaves_a_recording_alone(things):
    builder = things.stream.create_graph_builder().begin_building()
    for bad in ((things.out,), (things.closed_buffer, 1), (things.out, np.int64(1))):
        with pytest.raises((TypeError, RuntimeError)):
            launch(builder, ONE, things.kernel("add"), *bad)
    launch(builder, ONE, things.kernel("add"), things.out, 5)
    graph = builder.end_building().complete()
    graph.launch(things.stream)
    things.stream.sync()
    assert ctypes.c_int.from_address(things.out.handle).value == 5


SAMPLES_PTX = b"""
.version 8.1
.target sm_90
.address_size 64
.visible .entry increment(.param .u64 x) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, 0;
    tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd1, {%r1, %r1, %r1, %r1}];
    ret;
}
"""
SAMPLES = r"""
extern "C" __global__ void everywhere(unsigned long long t, float* x) {
    asm volatile("tex.2dms.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %5, %5, %5}];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "l"(t), "r"(0));
}
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("load", "texts"),
    [
        (
            lambda arch: ObjectCode.from_ptx(SAMPLES_PTX, name="mine").get_kernel("increment"),
            ["unsupported PTX instruction 'tex.2dms.v4.f32.s32'", "in kernel 'increment'", "at PTX line 9"],
        ),
        (
            lambda arch: Program(
                SAMPLES, "c++", {"arch": arch, "lineinfo": True, "name": "mine.cu"}
            ).compile("cubin").get_kernel("everywhere"),
            ["unsupported PTX instruction 'tex.2dms.v4.f32.s32'", "at PTX line", "mine.cu:3"],
        ),
    ],
    ids=["ptx", "source"],
)  # fmt: skip
def test_instructions_that_the_cpu_device_does_not_have(device, load, texts):
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_PTX") as caught:
        load(f"sm_{device.arch}")
    for text in texts:
        assert text in str(caught.value)


MISSING = """
import ctypes
{SETUP}
from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, Program, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
for _ in range(2):  # the failure must not be remembered wrongly
    try:
        {CALL}
    except Exception as error:
        print(type(error).__name__, error)
{AGAIN}
buffer = LegacyPinnedMemoryResource().allocate(4)
ctypes.memset(buffer.handle, 0, 4)
launch(device.create_stream(), LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(PTX).get_kernel("increment"), buffer)
device.sync()
print("result", ctypes.c_int.from_address(buffer.handle).value)
"""


@pytest.mark.parametrize(
    ("setup", "call", "again", "texts"),
    [
        (
            "from cupola.pathfinder import _dynamic_libraries as d\n"
            "d._installed = d._roots = lambda _: iter(())\n"
            "d._loader.try_open = lambda *_, **__: 0",
            "Program('', 'c++').compile('cubin')",
            "",
            [
                "DynamicLibNotFoundError",
                "the CUDA library nvrtc (libnvrtc.so.13 or libnvrtc.so.12) was not found",
                'pip install "cupola[cu13]"',
            ],
        ),
        pytest.param(
            "import sys\nsys.modules['llvmlite'] = None",
            "ObjectCode.from_ptx(PTX).get_kernel('increment').attributes.num_regs; "
            "launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(PTX).get_kernel('increment'), 0)",
            "del sys.modules['llvmlite']",
            ["with llvmlite, which is not installed", 'pip install "cupola[cpu]"'],
            marks=pytest.mark.cpu_only,
        ),
    ],
    ids=["NVRTC", "llvmlite"],
)
def test_what_is_not_installed(run_python, setup, call, again, texts):
    program = MISSING.replace("{SETUP}", setup).replace("{CALL}", call).replace("{AGAIN}", again)
    done = run_python(f"PTX = {INCREMENT!r}\n{program}")
    assert done.returncode == 0, done.stderr
    for text in texts:
        assert done.stdout.count(text) == 2, done.stdout
    assert "result 1" in done.stdout
