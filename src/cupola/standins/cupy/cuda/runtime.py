"""Functions of the CUDA runtime, with CuPy's names: ``cudaMalloc`` is ``malloc``. A status is an exception.

Handles and enumerators are ints. Names are made when they are first asked for.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

from cupola.bindings import runtime as _native
from cupola.standins.cupy._errors import CUDARuntimeError as CUDARuntimeError
from cupola.standins.cupy._errors import checked as _checked

is_hip = False

streamLegacy = 1
streamPerThread = 2

# Enumerators whose names begin with "cuda" in CUDA.
_CONSTANTS = {
    "eventDefault": 0, "eventBlockingSync": 1, "eventDisableTiming": 2, "eventInterprocess": 4,
    "hostAllocDefault": 0, "hostAllocPortable": 1, "hostAllocMapped": 2, "hostAllocWriteCombined": 4,
    "memcpyHostToHost": 0, "memcpyHostToDevice": 1, "memcpyDeviceToHost": 2, "memcpyDeviceToDevice": 3,
    "memcpyDefault": 4,
    "memoryTypeUnregistered": 0, "memoryTypeHost": 1, "memoryTypeDevice": 2, "memoryTypeManaged": 3,
    "streamCaptureModeGlobal": 0, "streamCaptureModeThreadLocal": 1, "streamCaptureModeRelaxed": 2,
    "streamCaptureStatusNone": 0, "streamCaptureStatusActive": 1, "streamCaptureStatusInvalidated": 2,
    "streamDefault": 0, "streamNonBlocking": 1,
    "CUDA_R_32F": 0, "CUDA_R_64F": 1, "CUDA_R_16F": 2, "CUDA_R_8I": 3, "CUDA_C_32F": 4, "CUDA_C_64F": 5,
    "CUDA_C_16F": 6, "CUDA_C_8I": 7, "CUDA_R_8U": 8, "CUDA_C_8U": 9, "CUDA_R_16BF": 14,
    "cudaCpuDeviceId": -1, "cudaInvalidDeviceId": -2,
    "cudaMemAttachGlobal": 1, "cudaMemAttachHost": 2, "cudaMemAttachSingle": 4,
    "cudaArrayDefault": 0, "cudaArraySurfaceLoadStore": 2, "cudaIpcMemLazyEnablePeerAccess": 1,
}  # fmt: skip

# Functions that are what CUDA has, but for the name.
_FUNCTIONS = [
    "deviceCanAccessPeer", "deviceDisablePeerAccess", "deviceEnablePeerAccess", "deviceGetAttribute",
    "deviceGetByPCIBusId", "deviceGetDefaultMemPool", "deviceGetLimit", "deviceGetMemPool", "deviceSetLimit",
    "deviceSetMemPool", "deviceSynchronize", "driverGetVersion", "eventCreate", "eventCreateWithFlags", "eventDestroy",
    "eventElapsedTime", "eventRecord", "eventSynchronize", "free", "freeArray", "freeAsync", "freeHost", "getDevice",
    "getDeviceCount", "graphDebugDotPrint", "graphDestroy", "graphExecDestroy", "graphLaunch", "graphUpload",
    "hostAlloc", "hostRegister", "hostUnregister", "malloc", "mallocAsync", "mallocFromPoolAsync", "memGetInfo",
    "memPoolDestroy", "memPoolTrimTo", "memcpy", "memcpy2D", "memcpy2DAsync", "memcpyAsync", "memcpyPeer",
    "memcpyPeerAsync", "memset", "memsetAsync", "profilerStart", "profilerStop", "runtimeGetVersion", "setDevice",
    "streamBeginCapture", "streamCreate", "streamCreateWithFlags", "streamCreateWithPriority", "streamDestroy",
    "streamEndCapture", "streamGetFlags", "streamGetPriority", "streamSynchronize", "streamWaitEvent",
]  # fmt: skip

# Parameters that are enumerations, by their places.
_ENUMS: dict[str, dict[int, str]] = {
    "deviceGetAttribute": {0: "cudaDeviceAttr"},
    "deviceGetLimit": {0: "cudaLimit"},
    "deviceSetLimit": {0: "cudaLimit"},
    "memcpy": {3: "cudaMemcpyKind"},
    "memcpyAsync": {3: "cudaMemcpyKind"},
    "memcpy2D": {6: "cudaMemcpyKind"},
    "memcpy2DAsync": {6: "cudaMemcpyKind"},
    "streamBeginCapture": {1: "cudaStreamCaptureMode"},
}
_DEFAULTS = {"streamBeginCapture": (2,), "eventRecord": (0,), "streamWaitEvent": (0,), "deviceEnablePeerAccess": (0,)}
_COUNTS = {"streamBeginCapture": 2, "eventRecord": 2, "streamWaitEvent": 3, "deviceEnablePeerAccess": 2}


def _plain(value: Any) -> Any:
    """A result as CuPy gives it: handles and enumerators as ints."""
    if value is None or isinstance(value, (int, float, str, bytes, bool)):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    try:
        return int(value)
    except TypeError:
        return value


def _function(name: str) -> Any:
    native = getattr(_native, "cuda" + name[0].upper() + name[1:])
    enums = _ENUMS.get(name, {})

    def call(*arguments: Any) -> Any:
        given = list(arguments)
        if len(given) < _COUNTS.get(name, 0):
            given += _DEFAULTS[name]
        for place, kind in enums.items():
            if place < len(given):
                given[place] = getattr(_native, kind)(int(given[place]))
        return _plain(_checked(native(*given)))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"As cuda{name[0].upper()}{name[1:]}: {(native.__doc__ or '').strip().partition(chr(10))[0]}"
    return call


def __getattr__(name: str) -> Any:
    if name in _CONSTANTS:
        found: Any = _CONSTANTS[name]
    elif name in _FUNCTIONS:
        found = _function(name)
    elif name.startswith("cuda") and (value := _enumerator(name)) is not None:
        found = value
    else:
        raise AttributeError(
            f"cupola's stand-in for CuPy has no cupy.cuda.runtime.{name}; cupola.bindings.runtime has all of CUDA's"
        )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_CONSTANTS, *_FUNCTIONS})


def _enumerator(name: str) -> int | None:
    """The value of an enumerator such as ``cudaDevAttrWarpSize``."""
    for kind in vars(_native).values():
        if isinstance(kind, type) and hasattr(kind, "__members__") and name in kind.__members__:
            return int(kind.__members__[name])
    return None


def check_status(status: int) -> None:
    """Raise CUDARuntimeError for a status that is not success."""
    if int(status):
        raise CUDARuntimeError(status)


# Fields that CUDA 13 has no more, and the attributes that have the same.
_FORMER = {
    "clockRate": "ClockRate", "computeMode": "ComputeMode", "cooperativeMultiDeviceLaunch":
    "CooperativeMultiDeviceLaunch", "deviceOverlap": "GpuOverlap", "kernelExecTimeoutEnabled": "KernelExecTimeout",
    "maxTexture1DLinear": "MaxTexture1DLinearWidth", "memoryClockRate": "MemoryClockRate",
    "singleToDoublePrecisionPerfRatio": "SingleToDoublePrecisionPerfRatio",
}  # fmt: skip

# Fields that CuPy does not give.
_NOT_GIVEN = {
    "clusterLaunch", "deferredMappingCudaArraySupported", "deviceNumaConfig", "deviceNumaId", "dtype", "from_array",
    "getPtr", "gpuDirectRDMAFlushWritesOptions", "gpuDirectRDMASupported", "gpuDirectRDMAWritesOrdering",
    "gpuPciDeviceID", "gpuPciSubsystemID", "hostNumaId", "hostNumaMultinodeIpcSupported",
    "hostRegisterReadOnlySupported", "hostRegisterSupported", "ipcEventSupported", "memPitch",
    "memoryPoolSupportedHandleTypes", "memoryPoolsSupported", "mpsEnabled", "sparseCudaArraySupported",
    "timelineSemaphoreInteropSupported", "to_array", "unifiedFunctionPointers",
}  # fmt: skip


def getDeviceProperties(device: int) -> dict[str, Any]:
    """What the device has, by the names of ``cudaDeviceProp``."""
    given: Any = _checked(_native.cudaGetDeviceProperties(device))
    found: dict[str, Any] = {}
    for name in dir(given):
        if name.startswith("_") or name in _NOT_GIVEN:
            continue
        try:
            value = getattr(given, name)
        except AttributeError:  # a field of another version of CUDA
            continue
        if name == "uuid":
            found[name] = bytes(value.bytes)
        elif isinstance(value, (bytes, str)):
            found[name] = value
        elif isinstance(value, (list, tuple, numpy.ndarray)):
            found[name] = tuple(int(one) for one in value)
        else:
            found[name] = int(value)
    for name, attribute in _FORMER.items():
        if name not in found:
            number = _enumerator(f"cudaDevAttr{attribute}")
            status, value = _native.cudaDeviceGetAttribute(_native.cudaDeviceAttr(number or 0), device)
            found[name] = int(value) if int(status) == 0 else 0
    return found


def deviceGetPCIBusId(device: int) -> str:
    """The address of a device on the bus."""
    text: Any = _checked(_native.cudaDeviceGetPCIBusId(32, device))
    return bytes(text).split(b"\0")[0].decode()


def streamQuery(stream: int) -> int:
    """0 when all work of the stream is done, else cudaErrorNotReady."""
    status = int(_native.cudaStreamQuery(stream)[0])
    if status not in (0, 600):
        raise CUDARuntimeError(status)
    return status


def eventQuery(event: int) -> int:
    """0 when the event has happened, else cudaErrorNotReady."""
    status = int(_native.cudaEventQuery(event)[0])
    if status not in (0, 600):
        raise CUDARuntimeError(status)
    return status


def streamIsCapturing(stream: int) -> bool:
    """Whether work of the stream is being recorded."""
    status: Any = _checked(_native.cudaStreamIsCapturing(stream))
    return int(status) == 1


def graphInstantiate(graph: int) -> int:
    """An executable graph."""
    made: Any = _checked(_native.cudaGraphInstantiate(graph, 0))
    return int(made)


def mallocManaged(size: int, flags: int = 1) -> int:
    """Memory that the host and devices may use."""
    made: Any = _checked(_native.cudaMallocManaged(size, flags))
    return int(made)


class PointerAttributes:
    """What is known of an address.

    Parameters
    ----------
    device : int
        Which has the memory; -2: none.
    devicePointer, hostPointer : int
        The address on the device and on the host.
    type : int
        A ``memoryType``.
    """

    def __init__(self, device: int, devicePointer: int, hostPointer: int, type: int = -1) -> None:
        self.device, self.devicePointer, self.hostPointer, self.type = device, devicePointer, hostPointer, type


def pointerGetAttributes(ptr: int) -> PointerAttributes:
    """What is known of an address."""
    found: Any = _checked(_native.cudaPointerGetAttributes(ptr))
    return PointerAttributes(
        int(found.device), int(found.devicePointer or 0), int(found.hostPointer or 0), int(found.type)
    )


def pointerGetMemoryType(ptr: int) -> int:
    """The ``memoryType`` of an address."""
    return pointerGetAttributes(ptr).type


_HostFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_waiting: dict[int, Any] = {}


def launchHostFunc(stream: int, callback: Any, arg: Any) -> None:
    """Call ``callback(arg)`` when the work of the stream so far is done."""
    place = 0

    def run(_: Any) -> None:
        try:
            callback(arg)
        finally:
            if not captured:
                _waiting.pop(place, None)

    captured = streamIsCapturing(stream)  # then a graph calls it each time
    function = _HostFunction(run)
    place = id(function)
    _waiting[place] = function
    address = ctypes.cast(function, ctypes.c_void_p).value
    try:
        _checked(_native.cudaLaunchHostFunc(stream, address, 0))
    except CUDARuntimeError:
        del _waiting[place]  # nobody calls it
        raise


def streamAddCallback(stream: int, callback: Any, arg: Any, flags: int = 0) -> None:
    """Call ``callback(stream, status, arg)`` when the work of the stream so far is done."""
    launchHostFunc(stream, lambda given: callback(stream, 0, given), arg)


def ipcGetMemHandle(devPtr: int) -> bytes:
    """A handle of memory for another process."""
    found: Any = _checked(_native.cudaIpcGetMemHandle(devPtr))
    return bytes(found.reserved)


def memPrefetchAsync(devPtr: int, count: int, dstDevice: int, stream: int) -> None:
    """Move managed memory to a device, or to the host, -1."""
    place = _native.cudaMemLocation()
    kinds = _native.cudaMemLocationType
    place.type = kinds.cudaMemLocationTypeHost if dstDevice < 0 else kinds.cudaMemLocationTypeDevice
    place.id = max(dstDevice, 0)
    _checked(_native.cudaMemPrefetchAsync(devPtr, count, place, 0, stream))
