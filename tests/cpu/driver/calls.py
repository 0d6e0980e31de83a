"""Calling the driver in tests: results, explanations, and host functions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from cupola.bindings import driver, nvrtc

SUCCESS = driver.CUresult.CUDA_SUCCESS
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def ok(result: tuple[Any, ...]) -> Any:
    """What a call returned besides its status, which must be CUDA_SUCCESS."""
    assert result[0] == SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]


def status(result: tuple[Any, ...]) -> str:
    """The name of the status that a call returned."""
    return str(result[0].name)


def updated(executable: Any, graph: Any) -> tuple[Any, Any]:
    """cuGraphExecUpdate by its C function: the status and why, which the bindings do not tell when it fails."""
    address, _ = ok(driver.cuGetProcAddress(b"cuGraphExecUpdate", 12000, 0))
    call = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(address)
    info = driver.CUgraphExecUpdateResultInfo()
    return driver.CUresult(call(int(executable), int(graph), info.getPtr())), info


def explanation(result: tuple[Any, ...]) -> str:
    """The CPU device's explanation of the status that was just returned on this thread."""
    from cupola.cpu import _driver

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer = get(_driver.explain, b"cupola.cpu._driver.explain")
    explain = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(pointer)
    buffer = ctypes.create_string_buffer(4096)
    explain(int(result[0]), buffer, len(buffer))
    return buffer.value.decode()


def driver_version() -> int:
    """The version of CUDA that the driver is for: 1000 * major + 10 * minor."""
    return int(ok(driver.cuDriverGetVersion()))


class HostWork:
    """Streams held up by the host, and host functions, kept alive for the test.

    `note(x)` appends x to `notes` when the stream gets there; `block()` makes a stream wait for `release()`. It waits
    for a value in pinned memory, not in a host function: a GPU's driver may call the host functions of all streams from
    one thread, where one that waits holds up the others.
    """

    def __init__(self) -> None:
        self.notes: list[Any] = []
        self._functions: list[Any] = []
        self._gate: Any = None

    def function(self, call: Any) -> int:
        wrapped = HOST_FUNCTION(lambda _: call())
        self._functions.append(wrapped)
        return ctypes.cast(wrapped, ctypes.c_void_p).value or 0

    def note(self, stream: Any, note: Any) -> None:
        ok(driver.cuLaunchHostFunc(stream, self.function(lambda: self.notes.append(note)), 0))

    def call(self, stream: Any, call: Any) -> None:
        ok(driver.cuLaunchHostFunc(stream, self.function(call), 0))

    def prepare(self) -> None:
        """Make what streams are blocked with, in the current context."""
        if self._gate is None:  # before anything waits: to allocate may wait for the device
            self._gate = ctypes.c_uint32.from_address(int(ok(driver.cuMemHostAlloc(4, 0))))
            self._gate.value = 0

    def block(self, stream: Any) -> None:
        self.prepare()
        ok(driver.cuStreamWaitValue32(stream, ctypes.addressof(self._gate), 1, 0))

    def release(self) -> None:
        if self._gate is not None:
            self._gate.value = 1

    def close(self) -> None:
        """Let the streams go on, and wait for them."""
        self.release()
        ok(driver.cuCtxSynchronize())
        if self._gate is not None:
            address, self._gate = ctypes.addressof(self._gate), None
            ok(driver.cuMemFreeHost(address))


@functools.cache
def compiled(source: str, kind: str = "cubin", target: str = "") -> bytes:
    """CUDA C++ compiled by NVRTC, for the device in use unless a target is given: ``"cubin"`` or ``"ptx"``."""
    attribute = driver.CUdevice_attribute
    major = ok(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0))
    minor = ok(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
    options = [f"-arch={target or f'sm_{major}{minor}'}".encode(), b"-lineinfo", b"-default-device"]
    program = ok(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], []))
    result = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(result[0]):
        log = b"\0" * ok(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.decode())
    if kind == "cubin":
        image = bytes(ok(nvrtc.nvrtcGetCUBINSize(program)))
        ok(nvrtc.nvrtcGetCUBIN(program, image))
    else:
        image = bytes(ok(nvrtc.nvrtcGetPTXSize(program)))
        ok(nvrtc.nvrtcGetPTX(program, image))
    return image


def pack(*arguments: Any) -> tuple[Any, Any]:
    """ctypes values as the kernelParams of a launch, and what must be kept until the launch returns."""
    pointers = (ctypes.c_void_p * max(1, len(arguments)))(*(ctypes.addressof(a) for a in arguments))
    return pointers, arguments


def launch(function: Any, stream: Any, *arguments: Any, grid: Any = 1, block: Any = 1, shared: int = 0) -> Any:
    """The result of cuLaunchKernel."""
    grid = (grid, 1, 1) if isinstance(grid, int) else grid
    block = (block, 1, 1) if isinstance(block, int) else block
    pointers, _kept = pack(*arguments)
    return driver.cuLaunchKernel(function, *grid, *block, shared, stream, ctypes.addressof(pointers), 0)
