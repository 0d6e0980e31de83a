"""Small helpers around the bindings: reasons of failures, numbers behind handles, versions of PTX, options of NVVM."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

__all__ = [
    "check_nvvm_compiler_options",
    "envvar_bool",
    "explain",
    "get_cuda_native_handle",
    "get_minimal_required_cuda_ver_from_ptx_ver",
    "get_ptx_ver",
    "warn_if_cuda_major_version_mismatch",
]

# PTX version -> first CUDA version (PTX ISA, "Release Notes"), where the two do not count in step.
_CUDA_OF_PTX = {
    **{(1, 0): (1, 0), (1, 1): (1, 1), (1, 2): (2, 0), (1, 3): (2, 1), (1, 4): (2, 2)},
    **{(2, 0): (3, 0), (2, 1): (3, 1), (2, 2): (3, 2), (2, 3): (4, 0)},
    **{(3, 0): (4, 1), (3, 1): (5, 0), (3, 2): (5, 5)},
    **{(4, 0): (6, 0), (4, 1): (6, 5), (4, 2): (7, 0), (4, 3): (7, 5), (5, 0): (8, 0)},
    **{(6, 0): (9, 0), (6, 1): (9, 1), (6, 2): (9, 2), (6, 3): (10, 0), (6, 4): (10, 1), (6, 5): (10, 2)},
    **{(8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9)},
}
# Since CUDA 11 they mostly do, PTX 7.0 being that of CUDA 11.0: PTX major -> last minor that does.
_IN_STEP = {7: 8, 8: 5, 9: 5}

_OFF = ("", "0", "false", "no", "off")

_warned = False


def get_cuda_native_handle(obj: object) -> int:
    """Return the value of a handle of the driver or the runtime: the pointer that C has.

    Parameters
    ----------
    obj : handle
        An object of a class such as ``driver.CUstream`` or ``runtime.cudaArray_t``, whose C type is a pointer to an
        object of CUDA.

    Returns
    -------
    int

    Raises
    ------
    TypeError
        For anything else, such as a device pointer (``CUdeviceptr``), a device, a record, an int, or an object of a
        class derived from a handle's in Python: `int` converts all that stands for a number.

    Examples
    --------
    >>> from cupola.bindings import driver
    >>> get_cuda_native_handle(driver.CUstream(5))
    5
    """
    for name in ("driver", "runtime"):
        module = sys.modules.get(f"cupola.bindings.{name}")  # what is not imported made no object
        if module is not None and module._is_pointer_handle(type(obj)):
            return int(obj)  # type: ignore[call-overload, no-any-return]
    raise TypeError(f"Unknown type: {type(obj)}. A pointer handle of the driver or the runtime is expected.")


def get_ptx_ver(ptx: str | bytes) -> str:
    """Return the version of PTX code, from its ``.version`` directive.

    Parameters
    ----------
    ptx : str or bytes
        The code.

    Returns
    -------
    str
        Such as ``"8.5"``.

    Raises
    ------
    ValueError
        The text has no such directive.

    Examples
    --------
    >>> get_ptx_ver(".version 8.5\\n.target sm_90\\n.address_size 64\\n")
    '8.5'
    """
    text = ptx if isinstance(ptx, str) else bytes(ptx).decode("utf-8", "replace")
    found = re.search(r"^[ \t]*\.version[ \t]+(\d+\.\d+)", text, re.MULTILINE)
    if found is None:
        raise ValueError("this is not PTX: it has no .version directive")
    return found[1]


def get_minimal_required_cuda_ver_from_ptx_ver(ver: str) -> int:
    """Return the oldest CUDA whose driver, nvJitLink and assembler take PTX of a version.

    Parameters
    ----------
    ver : str
        Version of the PTX ISA, such as ``"8.5"``; see `get_ptx_ver`.

    Returns
    -------
    int
        1000 times major plus 10 times minor, as ``cuDriverGetVersion`` counts.

    Raises
    ------
    ValueError
        There is no such version, or it is newer than this package.

    Examples
    --------
    >>> get_minimal_required_cuda_ver_from_ptx_ver("8.8")
    12090
    """
    numbers = re.fullmatch(r"(\d+)\.(\d+)", ver)
    found = cuda_of_ptx(int(numbers[1]), int(numbers[2])) if numbers else None
    if found is None:
        newest = max(_IN_STEP)
        raise ValueError(f"PTX version {ver!r} is not known; the newest known version is {newest}.{_IN_STEP[newest]}")
    major, minor = found
    return 1000 * major + 10 * minor


def cuda_of_ptx(major: int, minor: int) -> tuple[int, int] | None:
    """The first CUDA version with a version of PTX; None when it is not known."""
    if minor <= _IN_STEP.get(major, -1):
        return major + 4, minor
    return _CUDA_OF_PTX.get((major, minor))


# A module with nothing in it; the numbers are those of the IR's version.
_EMPTY_MODULE = """\
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
!nvvmir.version = !{!0}
!0 = !{i32 %d, i32 %d, i32 %d, i32 %d}
"""


def check_nvvm_compiler_options(options: Sequence[str | bytes]) -> bool:
    """Tell whether the installed libNVVM knows compiler options, by compiling an empty module with them.

    Parameters
    ----------
    options : sequence of str or bytes
        Such as ``["-arch=compute_90", "-opt=3"]``.

    Returns
    -------
    bool
        False when it refuses one of them (``NVVM_ERROR_INVALID_OPTION``).

    Raises
    ------
    DynamicLibNotFoundError
        libNVVM is not installed.
    nvvmError
        The compilation fails for another reason.
    TypeError
        An option is not text, or `options` is one string instead of a sequence of them.
    """
    from . import nvvm

    if isinstance(options, (str, bytes)):
        raise TypeError(f"options must be a sequence of strings, got {options!r}")
    source = (_EMPTY_MODULE % nvvm.ir_version()).encode()
    program = nvvm.create_program()
    try:
        nvvm.add_module_to_program(program, source, len(source), "options")
        nvvm.compile_program(program, len(options), list(options))
    except nvvm.nvvmError as error:
        if error.status != nvvm.Result.ERROR_INVALID_OPTION:
            raise
        return False
    finally:
        nvvm.destroy_program(program)
    return True


def envvar_bool(name: str, default: bool = False) -> bool:
    """Read a switch from the environment.

    Parameters
    ----------
    name : str
        Name of the variable.
    default : bool
        The answer when it is not set.

    Returns
    -------
    bool
        False when the variable is empty, ``0``, ``false``, ``no`` or ``off`` (in capitals or not), True for all else.
    """
    value = os.environ.get(name)
    return default if value is None else value.strip().lower() not in _OFF


def explain(status: int) -> str:
    """Return what the CPU device knows about the call of this thread that failed last: which argument is wrong, or
    what a kernel did, where, with the line of the source.

    CUDA's own functions have no place for that, so a helper that turns a status into an exception adds it to the text.

    Parameters
    ----------
    status : driver.CUresult or runtime.cudaError_t
        The status that the call returned.

    Returns
    -------
    str
        One or more lines; empty on a GPU, for success, and when another call has failed since.

    Examples
    --------
    >>> from cupola.bindings import driver
    >>> status, address = driver.cuMemAlloc(0)
    >>> reason = explain(status)
    """
    cpu = sys.modules.get("cupola.cpu._driver")  # imported by the first call that runs on the CPU device
    if cpu is None:
        return ""
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    function = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    text = ctypes.create_string_buffer(4096)
    function(pointer(cpu.explain, b"cupola.cpu._driver.explain"))(int(status), text, len(text))
    return text.value.decode(errors="replace")


def warn_if_cuda_major_version_mismatch() -> None:
    """Warn, once per process, when the compiler is of a newer CUDA major version than the driver.

    One build of cupola serves the drivers of CUDA 12 and 13, so the bindings themselves always fit. What may not is the
    installed NVRTC: a driver loads neither PTX nor machine code of a newer major version. Nothing is said when NVRTC is
    not installed. The variable ``CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING`` silences the warning; see `envvar_bool`
    for what counts as set.

    Warns
    -----
    UserWarning
        The text says which versions there are and what to install.

    Raises
    ------
    DynamicLibNotFoundError
        ``CUPOLA_DEVICE=gpu`` is set, and there is no driver.
    """
    global _warned
    if _warned or envvar_bool("CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING"):
        return
    from cupola.pathfinder import DynamicLibNotFoundError

    from . import driver, nvrtc

    status, serves = driver.cuDriverGetVersion()
    try:
        nvrtc_status, major, minor = nvrtc.nvrtcVersion()
    except DynamicLibNotFoundError:
        return
    _warned = True
    if status or nvrtc_status or major <= serves // 1000:
        return
    import warnings

    warnings.warn(
        f"NVRTC is from CUDA {major}.{minor}, and the driver supports CUDA {serves // 1000}.{serves % 1000 // 10} "
        f"at most: "
        "it cannot load what this NVRTC compiles. Update the driver, or install a compiler that fits:  "
        f'pip uninstall nvidia-cuda-nvrtc; pip install "cupola[cu{serves // 1000}]"',
        UserWarning,
        stacklevel=2,
    )
