"""Single functions of the driver and the runtime: from C, from cupola.bindings and from cuda.bindings.

On a GPU all three are measured on the same handles. Elsewhere, or with ``--stub``, functions that do nothing take the
driver's place, so that the figures are the cost of the call alone.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cupola import pathfinder

Measure = Callable[[int], float]

SOURCE = b'extern "C" __global__ void one(float* x) {}'
# Names of the handles and values that both packages wrap in their own classes.
STATEMENTS = {
    "cuCtxGetCurrent": "driver.cuCtxGetCurrent()",
    "cuEventQuery": "driver.cuEventQuery(event)",
    "cuEventRecord": "driver.cuEventRecord(event, stream)",
    "cuStreamWaitEvent": "driver.cuStreamWaitEvent(stream, event, 0)",
    "cuStreamIsCapturing": "driver.cuStreamIsCapturing(stream)",
    "cuPointerGetAttribute": "driver.cuPointerGetAttribute(attribute, pointer)",
    "cuMemcpyAsync, 1 KiB": "driver.cuMemcpyAsync(pointer, other, 1024, stream)",
    "cuMemAllocAsync + cuMemFreeAsync": "driver.cuMemFreeAsync(driver.cuMemAllocAsync(1024, stream)[1], stream)",
    "cuLaunchKernel, address": "driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, address, 0)",
    "cuLaunchKernel, tuples": "driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, 0)",
    "cudaEventRecord": "runtime.cudaEventRecord(runtime_event, runtime_stream)",
    "cudaMemcpyAsync, 1 KiB": "runtime.cudaMemcpyAsync(int_pointer, int_other, 1024, to_device, runtime_stream)",
    "nvrtcVersion": "nvrtc.nvrtcVersion()",
}


def build() -> ctypes.CDLL:
    target = Path(tempfile.mkdtemp()) / "functions.so"
    source = str(Path(__file__).with_name("functions.c"))
    subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", source, "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def use_stub(library: ctypes.CDLL) -> None:
    """Make functions that do nothing the driver of this process, which must not have made a call yet."""
    from cupola.bindings import _provider

    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    lookup = new(ctypes.cast(library.lookup_nothing, ctypes.c_void_p), b"benchmark.lookup", None)
    _provider._driver = ("nothing", None, lookup, None, False)
    _provider._emulated_runtime = lambda: ("nothing", None, lookup, None, False)


def resources(on_gpu: bool) -> dict[str, int]:
    """The numbers of a stream, an event, two pointers and a kernel."""
    if not on_gpu:
        return {"stream": 16, "event": 32, "pointer": 4096, "other": 8192, "kernel": 48}
    from cupola.bindings import driver, nvrtc

    def check(result: tuple[Any, ...]) -> Any:
        if result[0] != 0:
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    kind = driver.CUdevice_attribute
    major = check(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = check(driver.cuDeviceGetAttribute(kind.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"one.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=sm_%d%d" % (major, minor)]))
    cubin = bytearray(check(nvrtc.nvrtcGetCUBINSize(program)))
    check(nvrtc.nvrtcGetCUBIN(program, cubin))
    module = check(driver.cuModuleLoadData(cubin))
    stream = check(driver.cuStreamCreate(1))
    event = check(driver.cuEventCreate(2))
    check(driver.cuEventRecord(event, stream))
    found = {
        "stream": stream,
        "event": event,
        "pointer": check(driver.cuMemAlloc(1024)),
        "other": check(driver.cuMemAlloc(1024)),
        "kernel": check(driver.cuModuleGetFunction(module, b"one")),
    }
    return {name: int(handle) for name, handle in found.items()}


def python_names(package: str, numbers: dict[str, int]) -> dict[str, Any]:
    """What the statements use, in the classes of `package` ("cupola" or "cuda")."""
    modules = {name: importlib.import_module(f"{package}.bindings.{name}") for name in ("driver", "runtime", "nvrtc")}
    driver, runtime = modules["driver"], modules["runtime"]
    pointer = driver.CUdeviceptr(numbers["pointer"])
    keep = ctypes.c_void_p(numbers["pointer"])
    addresses = (ctypes.c_void_p * 1)(ctypes.addressof(keep))
    return {
        **modules,
        "stream": driver.CUstream(numbers["stream"]),
        "event": driver.CUevent(numbers["event"]),
        "pointer": pointer,
        "other": driver.CUdeviceptr(numbers["other"]),
        "kernel": driver.CUfunction(numbers["kernel"]),
        "attribute": driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        "runtime_stream": runtime.cudaStream_t(numbers["stream"]),
        "runtime_event": runtime.cudaEvent_t(numbers["event"]),
        "to_device": runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice,
        "int_pointer": numbers["pointer"],
        "int_other": numbers["other"],
        "arguments": ((numbers["pointer"],), (ctypes.c_void_p,)),
        "address": ctypes.addressof(addresses),
        "keep": (keep, addresses),
    }


def c_measures(library: ctypes.CDLL, numbers: dict[str, int], on_gpu: bool) -> dict[str, Measure]:
    """The same calls from C, by the exported symbols that cupola calls, too."""
    library.measure.restype = library.measure_pair.restype = ctypes.c_double
    loaded: dict[str, ctypes.CDLL] = {}

    def symbol(owner: str, name: str) -> ctypes.c_void_p:
        if not on_gpu:
            library.lookup_nothing.restype = ctypes.c_void_p
            return ctypes.c_void_p(library.lookup_nothing(name.encode()))
        if owner not in loaded:
            loaded[owner] = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib(owner).abs_path)
        return ctypes.cast(getattr(loaded[owner], name), ctypes.c_void_p)

    room = (ctypes.c_uint64 * 4)()
    out = ctypes.addressof(room)
    stream, event, pointer, other = (numbers[name] for name in ("stream", "event", "pointer", "other"))
    value = ctypes.c_uint64(pointer)
    kernel_arguments = (ctypes.c_void_p * 1)(ctypes.addressof(value))
    launch = (numbers["kernel"], 1, 1, 1, 32, 1, 1, 0, stream, ctypes.addressof(kernel_arguments), 0)
    calls: dict[str, tuple[str, str, tuple[int, ...]]] = {
        "cuCtxGetCurrent": ("cuda", "cuCtxGetCurrent", (out,)),
        "cuEventQuery": ("cuda", "cuEventQuery", (event,)),
        "cuEventRecord": ("cuda", "cuEventRecord", (event, stream)),
        "cuStreamWaitEvent": ("cuda", "cuStreamWaitEvent", (stream, event, 0)),
        "cuStreamIsCapturing": ("cuda", "cuStreamIsCapturing", (stream, out)),
        "cuPointerGetAttribute": ("cuda", "cuPointerGetAttribute", (out, 9, pointer)),
        "cuMemcpyAsync, 1 KiB": ("cuda", "cuMemcpyAsync", (pointer, other, 1024, stream)),
        "cuLaunchKernel, address": ("cuda", "cuLaunchKernel", launch),
        "cuLaunchKernel, tuples": ("cuda", "cuLaunchKernel", launch),
        "cudaEventRecord": ("cudart", "cudaEventRecord", (event, stream)),
        "cudaMemcpyAsync, 1 KiB": ("cudart", "cudaMemcpyAsync", (pointer, other, 1024, 3, stream)),
        "nvrtcVersion": ("nvrtc", "nvrtcVersion", (out, out + 8)),
    }

    def measurer(function: ctypes.c_void_p, arguments: tuple[int, ...]) -> Measure:
        array = (ctypes.c_uint64 * 11)(*arguments)
        keep = (room, value, kernel_arguments)
        return lambda n: float(library.measure(n, function, array)) if keep else 0.0

    measures = {row: measurer(symbol(owner, name), given) for row, (owner, name, given) in calls.items()}
    allocate, release = symbol("cuda", "cuMemAllocAsync"), symbol("cuda", "cuMemFreeAsync")
    sized = (ctypes.c_uint64 * 3)(out, 1024, stream)
    measures["cuMemAllocAsync + cuMemFreeAsync"] = lambda n: float(
        library.measure_pair(n, allocate, sized, release, ctypes.c_uint64(stream))
    )
    return measures
