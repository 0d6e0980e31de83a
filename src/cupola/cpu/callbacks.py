"""The callbacks of cuFFT: functions of the user's, as LTO-IR, linked with a kernel that calls one for each element.

On a GPU they become part of cuFFT's own kernels. Here a kernel is launched before the transform, which puts what the
callback loads into memory of its own, or after it, which gives the callback what is to be stored.
"""

from __future__ import annotations

import functools
import re

from cupola._above import above
from cupola.cpu.compiler.facts import OWN

# Dimensions of the batch and of a transform, outermost first, and their strides in elements.
_LAYOUT = "struct layout { unsigned long long count[4], stride[4], total; };\n"

_OFFSET = """
    extern __shared__ double shared[];
    unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    for (unsigned long long i = first; i < l.total; i += gridDim.x * (unsigned long long)blockDim.x) {
        unsigned long long rest = i, offset = 0;
        for (int d = 3; d >= 0; d--) {
            offset += rest % l.count[d] * l.stride[d];
            rest /= l.count[d];
        }
"""

_LOAD = """
extern "C" __device__ TYPE NAME(void *data, unsigned long long offset, void *info, void *shared);
extern "C" __global__ void cupola_callback(void *data, TYPE *packed, layout l, void *info) {OFFSET
        packed[i] = NAME(data, offset, info, shared);
    }
}
"""

_STORE = """
extern "C" __device__ void NAME(void *data, unsigned long long offset, TYPE element, void *info, void *shared);
extern "C" __global__ void cupola_callback(void *data, const TYPE *packed, layout l, void *info) {OFFSET
        NAME(data, offset, packed[i], info, shared);
    }
}
"""

# By cufftXtCallbackType, without the bit that says that it stores.
_TYPES = ("float2", "double2", "float", "double")


@functools.lru_cache(maxsize=32)
def link(name: str, code: bytes, kind: int, capability: int) -> bytes:
    """PTX with the kernel ``cupola_callback``, which calls a callback for each element.

    Parameters
    ----------
    name
        The callback's name in `code`, as a function of C or of C++.
    code
        LTO-IR, or a fat binary with it.
    kind
        A ``cufftXtCallbackType``.
    capability
        Compute capability, such as 90.

    Raises
    ------
    RuntimeError, ImportError
        It cannot be linked, or NVRTC or nvJitLink are missing.
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} is no name of a function")
    architecture = f"sm_{capability}"
    text = _LAYOUT + (_STORE if kind & 4 else _LOAD)
    source = text.replace("OFFSET", _OFFSET).replace("TYPE", _TYPES[kind & 3]).replace("NAME", name)
    ptx = _link(source, code, architecture)
    if name in missing(ptx):  # it is C++'s, whose symbol has the types of its parameters, too
        ptx = _link(source.replace('extern "C" __device__', "__device__"), code, architecture)
    return ptx.rstrip(b"\0") + OWN.encode()


def missing(ptx: bytes) -> set[str]:
    """The functions that PTX calls but does not have."""
    return {name.decode() for name in re.findall(rb"\.extern \.func\s+(?:\([^)]*\)\s*)?(\w+)", ptx)}


def _link(source: str, code: bytes, architecture: str) -> bytes:
    options = above("ProgramOptions")(arch=architecture, link_time_optimization=True)
    kernel = above("Program")(source, "c++", options).compile("ltoir")
    linking = above("LinkerOptions")(arch=architecture, link_time_optimization=True, ptx=True)
    callback = above("ObjectCode").from_ltoir(code, name="callback")
    return bytes(above("Linker")(callback, kernel, options=linking).link("ptx").code)
