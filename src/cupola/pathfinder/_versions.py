"""Which version a library or a set of headers has.

A library is asked itself when it has a function for that which needs no device; else the wheel that the file came in
says it, else the file's name (``libcufile.so.1.15.0`` behind the link ``libcufile.so.0``).
"""

from __future__ import annotations

import glob
import os
import re

from ._header_table import Headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

DRIVER_FILE = "/proc/driver/nvidia/version"

# How a version is put into one number, as (divisor of the major, divisor of the minor, and of the patch or 0).
_CUDA = (1000, 10, 0)  # 13050 is 13.5
_PACKED = (10000, 100, 1)  # 22804 is 2.28.4
_THOUSANDS = (1000, 100, 1)  # cuDNN up to 8, NCCL up to 2.8

# Stem of the file -> function, and how it tells: "pair" writes major and minor, "property" is asked for each,
# "pointer" writes one number and "result" returns one.
_FUNCTIONS: dict[str, tuple[str, str, tuple[int, int, int]]] = {
    "cuda": ("cuDriverGetVersion", "pointer", _CUDA),
    "cudart": ("cudaRuntimeGetVersion", "pointer", _CUDA),
    "nvrtc": ("nvrtcVersion", "pair", _CUDA),
    "nvJitLink": ("nvJitLinkVersion", "pair", _CUDA),
    "nvfatbin": ("nvFatbinVersion", "pair", _CUDA),
    "cublas": ("cublasGetProperty", "property", _CUDA),
    "cufft": ("cufftGetProperty", "property", _CUDA),
    "curand": ("curandGetProperty", "property", _CUDA),
    "cusolver": ("cusolverGetProperty", "property", _CUDA),
    "cusparse": ("cusparseGetProperty", "property", _CUDA),
    "cudnn": ("cudnnGetVersion", "result", _PACKED),
    "cutensor": ("cutensorGetVersion", "result", _PACKED),
    "nccl": ("ncclGetVersion", "pointer", _PACKED),
}


def library_version(handle: int, path: str | None) -> str | None:
    """The version of a loaded library, or None when nothing tells it."""
    stem = stem_of(os.path.basename(path or ""))
    told = _ask(*_FUNCTIONS[stem], handle) if stem in _FUNCTIONS else None
    if stem == "cuda":
        return told  # libcuda.so.1 has been called so through all versions
    return told or (path and (_version_of_wheel(path) or _version_in_name(path))) or None


def stem_of(file: str) -> str:
    """A library's own name in that of its file: ``libnvrtc.so.13`` and ``nvrtc64_130_0.dll`` are both nvrtc."""
    if file.endswith(".dll"):
        stem = re.sub(r"(?:64)?(?:_[\d_.]+)?\.dll$", "", file)
        return "cuda" if stem == "nvcuda" else stem
    return file.partition(".so")[0].removeprefix("lib")


def header_version(headers: Headers, folder: str) -> str | None:
    """The version of a set of headers in a folder, or None when nothing tells it."""
    key = os.path.join(folder, headers.key)
    if not os.path.isfile(key):
        return None
    return _version_of_macro(headers, folder) or _version_of_wheel(key)


def driver_release() -> str | None:
    """The release of the display driver, such as ``"580.65.06"``, by the kernel's account; None without one."""
    try:
        with open(DRIVER_FILE) as file:
            found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)\s", file.read())
    except OSError:
        return None
    return found[1] if found else None


def _ask(function: str, kind: str, packing: tuple[int, int, int], handle: int) -> str | None:
    import ctypes

    try:
        call = getattr(ctypes.CDLL(None, handle=handle), function)
    except AttributeError:
        return None  # an older library
    parts = [ctypes.c_int() for _ in range(3)]
    if kind == "result":
        call.restype = ctypes.c_size_t
        return _unpack(call(), packing)
    if kind == "pointer":
        return None if call(ctypes.byref(parts[0])) else _unpack(parts[0].value, packing)
    if kind == "pair":
        return None if call(ctypes.byref(parts[0]), ctypes.byref(parts[1])) else _joined(parts[:2])
    # libraryPropertyType (library_types.h): 0, 1, 2 for major, minor, patch.
    return None if any(call(i, ctypes.byref(part)) for i, part in enumerate(parts)) else _joined(parts)


def _joined(parts: list[ctypes.c_int]) -> str:
    return ".".join(str(part.value) for part in parts)


def _unpack(number: int, packing: tuple[int, int, int]) -> str | None:
    if number <= 0:
        return None
    if packing == _PACKED and number < 10000:
        packing = _THOUSANDS
    major, minor, patch = packing
    text = f"{number // major}.{number % major // minor}"
    return f"{text}.{number % minor // patch}" if patch else text


def _version_of_macro(headers: Headers, folder: str) -> str | None:
    if headers.version is None:
        return None
    file, macro = headers.version
    try:
        with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as source:
            text = source.read(1 << 16)  # near the beginning in all of them
    except OSError:
        return None
    found = re.search(rf"^\s*#\s*define\s+{macro}\s+(\d+)", text, re.MULTILINE)
    if found is None:
        return None
    number = int(found[1])
    if macro == "CCCL_VERSION":  # 3003005 is 3.3.5
        return f"{number // 1000000}.{number // 1000 % 1000}.{number % 1000}"
    return _unpack(number, _PACKED if macro.startswith("NCCL") else _CUDA)


def _version_of_wheel(path: str) -> str | None:
    """The version of the wheel whose RECORD names the file."""
    root, _, inside = path.replace(os.sep, "/").rpartition("-packages/")
    if not root:
        return None
    root += "-packages"
    for record in glob.glob(os.path.join(glob.escape(root), "*.dist-info", "RECORD")):
        distribution = os.path.basename(os.path.dirname(record)).removesuffix(".dist-info")
        # NVIDIA's wheels only: others may be many, and large.
        if not distribution.startswith(("nvidia_", "cu", "nvpl")):
            continue
        try:
            with open(record, encoding="utf-8") as file:
                if any(line.startswith(inside + ",") for line in file):
                    return distribution.rpartition("-")[2]
        except OSError:
            continue
    return None


def _version_in_name(path: str) -> str | None:
    found = re.search(r"\.so\.(\d[\d.]*)$|64_(\d[\d.]*)\.dll$", os.path.realpath(path))
    return found[1] or found[2] if found else None
