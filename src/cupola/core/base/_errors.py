"""The errors and warnings of the package, and the advice that goes with the common ones."""

from __future__ import annotations

import warnings


class CUDAError(Exception):
    """A CUDA call failed, or was refused because it would have failed.

    The text starts with CUDA's name of the status and its description, then says which function returned it,
    what the driver adds, and what can be done about it when that is known.

    Attributes
    ----------
    name : str
        CUDA's name of the status, such as ``CUDA_ERROR_OUT_OF_MEMORY``; empty when the error was found before
        any call.
    status : int
        Its number, 0 likewise.
    call : str
        The CUDA function that returned it, empty likewise.
    """

    # Whether the same fault of a context was reported before, so a destructor need not warn of it again; and whether
    # it was raised before, so a program could catch it.
    _repeated = False
    _raised_before = False

    def __init__(self, *args: object, name: str = "", status: int = 0, call: str = "") -> None:
        super().__init__(*args)
        self.name = name
        self.status = status
        self.call = call


class OutOfMemoryError(CUDAError, MemoryError):
    """The device, or what CUDA needs of the host, has not so much free memory (``CUDA_ERROR_OUT_OF_MEMORY``).

    It is a MemoryError as well, as what NumPy raises is.

    Attributes
    ----------
    name : str
        ``CUDA_ERROR_OUT_OF_MEMORY``.
    status : int
        Its number, 2.
    call : str
        The CUDA function that returned it.
    """

    # MemoryError has a __new__ of its own, which Python refuses for a class that begins with another base: what copies
    # errors asks for it, such as tblib, by which Dask sends them.
    def __new__(cls, *args: object, **_: object) -> OutOfMemoryError:
        return Exception.__new__(cls, *args)


class NVRTCError(CUDAError):
    """The runtime compiler failed; the compilation log is part of the text.

    Attributes
    ----------
    name : str
        NVRTC's name of the result, such as ``NVRTC_ERROR_COMPILATION``.
    status : int
        Its number.
    call : str
        The NVRTC function that returned it.
    """


class CUDAWarning(UserWarning):
    """Something went wrong where no exception can be raised, for example while an object was destroyed."""


class CompilerWarning(UserWarning):
    """The compiler's log for a program that compiled, when no `logs` were passed."""


for _public in (CUDAError, OutOfMemoryError, NVRTCError, CUDAWarning, CompilerWarning):
    _public.__module__ = "cupola"  # tracebacks then say the name that programs catch it by


FORKED = (
    "this process was forked from one that had already used CUDA, which does not survive a fork: "
    "start child processes with multiprocessing.get_context('spawn')"
)

_FAULT = (
    "The fault may belong to a kernel that was launched before the call that reports it. CUDA cannot be used in "
    "this process any more: restart it. With CUPOLA_DEVICE=cpu the program runs on the CPU device, which names the "
    "source line of a bad access."
)

HINTS: dict[str, str] = {
    "CUDA_ERROR_INVALID_VALUE": (
        "An argument is out of range or a handle is null; on the CPU device the error says which. The reference of the "
        "function named above lists its limits."
    ),
    "CUDA_ERROR_INVALID_HANDLE": (
        "The handle was destroyed already, or belongs to another context: use objects on the device on which they "
        "were made, and keep them alive as long as their handles are in use."
    ),
    "CUDA_ERROR_NOT_INITIALIZED": "Make a Device first: that initializes the driver.",
    "CUDA_ERROR_INVALID_CONTEXT": "No usable context is current on this thread: call Device(n).set_current() on it.",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": (
        "The context was destroyed or reset, and its objects with it: call Device(n).set_current() and make them again."
    ),
    "CUDA_ERROR_DEVICE_UNAVAILABLE": (
        "Another process has exclusive use of the GPU, or the GPU's compute mode prohibits its use: see `nvidia-smi "
        "-q -d COMPUTE`."
    ),
    "CUDA_ERROR_SYSTEM_NOT_READY": (
        "The system is still starting: on machines with NVSwitch the fabric manager must run (systemctl status "
        "nvidia-fabricmanager)."
    ),
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": (
        "The library for forward compatibility (package cuda-compat) is loaded in place of the driver's libcuda, "
        "but this GPU does not support it: remove it from LD_LIBRARY_PATH."
    ),
    "CUDA_ERROR_NO_DEVICE": "No GPU is visible: check CUDA_VISIBLE_DEVICES, or set CUPOLA_DEVICE=cpu.",
    "CUDA_ERROR_OUT_OF_MEMORY": (
        "Close buffers that are no longer needed, let go of arrays, and synchronize the streams that free them, before "
        "asking for more. `cupola top` shows which processes have the device's memory."
    ),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": (
        "The code was compiled for another architecture: compile with "
        'ProgramOptions(arch=f"sm_{device.arch}"), or to "ptx" for the same or a lower compute capability.'
    ),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "The PTX is newer than the driver: update the driver, compile to cubin, or use the NVRTC of an older CUDA."
    ),
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": (
        "PTX cannot be compiled: the driver's compiler (libnvidia-ptxjitcompiler, or llvmlite for the CPU device: "
        "pip install 'cupola[cpu]') is missing. Compile to cubin, or install it."
    ),
    "CUDA_ERROR_INVALID_PTX": "The PTX does not assemble for this device; check its .target and .version.",
    "CUDA_ERROR_INVALID_IMAGE": "The bytes are not a cubin, PTX or fatbin that this driver can load.",
    "CUDA_ERROR_NOT_FOUND": (
        "There is no such kernel or variable in the code: kernels of C++ have mangled names unless they are "
        'extern "C"; compile with name_expressions, and get them by those.'
    ),
    "CUDA_ERROR_NOT_SUPPORTED": (
        "This device or driver does not have the feature: see Device.properties, and `cupola doctor` for the versions."
    ),
    "CUDA_ERROR_INVALID_DEVICE": "There is no such device: Device.get_all_devices() lists the devices.",
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": (
        "The devices cannot use each other's memory (Device.can_access_peer): copy through host memory instead."
    ),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (
        "A block needs more registers or shared memory than the device has: use fewer threads in a block, "
        "ProgramOptions(max_register_count=...), or less shared memory (kernel.attributes, Device.properties)."
    ),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (
        "All blocks of a cooperative launch must fit on the device at once: "
        "kernel.occupancy.max_active_blocks_per_multiprocessor times Device.properties.multiprocessor_count."
    ),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (
        "The user-mode and kernel-mode drivers differ: reboot, or reinstall the driver."
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "The call is not permitted while the stream is being captured.",
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "An earlier error ended the capture: begin a new one.",
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": "Join every forked builder before ending the capture.",
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": (
        "The default stream cannot be captured, nor used while a blocking stream is captured: use "
        "device.create_stream()."
    ),
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": "A capture ends on the thread that began it.",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "The kernel ran longer than the display's watchdog permits.",
    "CUDA_ERROR_ILLEGAL_ADDRESS": _FAULT,
    "CUDA_ERROR_MISALIGNED_ADDRESS": _FAULT,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": _FAULT,
    "CUDA_ERROR_LAUNCH_FAILED": _FAULT,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": _FAULT,
    "CUDA_ERROR_ASSERT": (
        "An assert() in a kernel failed; its text is on stderr. CUDA cannot be used in this process any more: "
        "restart it."
    ),
}


def driver_error(status: int, name: str, description: str, call: str, details: list[str], forked: bool) -> CUDAError:
    """Compose the error for a driver status; `details` are further lines, most specific first."""
    head = f"{name}: {description}" if name and description else name or f"UNEXPECTED ERROR CODE: {status}"
    lines = [f"{head} ({call})", *details]
    hint = FORKED if forked else HINTS.get(name)
    if hint and not details:
        lines.append(hint)
    error_class = OutOfMemoryError if name == "CUDA_ERROR_OUT_OF_MEMORY" else CUDAError
    return error_class("\n".join(lines), name=name, status=status, call=call)


def warn(message: str) -> None:
    """Issue a CUDAWarning from a destructor: there is no line of the user's to point to."""
    warnings.warn(message, CUDAWarning, stacklevel=2)
