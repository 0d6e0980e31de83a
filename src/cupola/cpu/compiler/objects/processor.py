"""The processor that machine code is for.

That is this computer's with all its instructions, unless ``CUPOLA_CPU_FEATURES`` names fewer:

``native``
    What there is.
``baseline``
    What every computer of this architecture has: on x86-64 no AVX.
``x86-64-v2``, ``x86-64-v3``, ``x86-64-v4``
    The levels of the x86-64 psABI: SSE 4.2, AVX2, AVX-512.

So code paths for other computers can be tried, and an older one can share the cache of object code.
"""

from __future__ import annotations

import functools
import os
import platform
from typing import Any

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.records import dataclass

X86 = ("x86_64", "AMD64")

# What each level adds that matters here, or that a computer may lack (x86-64 psABI, "Micro-Architecture Levels").
_LEVELS = {
    "x86-64": (),
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}


@dataclass(frozen=True, slots=True)
class Processor:
    """What LLVM wants to know: a name, and features as ``+avx2,-avx512f``; and the features that there are."""

    name: str
    features: str
    instructions: frozenset[str]


@functools.cache
def processor(binding: Any) -> Processor:
    """The processor to make code for.

    Parameters
    ----------
    binding
        llvmlite's binding of LLVM.

    Raises
    ------
    ImageError
        When ``CUPOLA_CPU_FEATURES`` is invalid, or names features that this computer does not have.
    """
    wish = os.environ.get("CUPOLA_CPU_FEATURES", "native")
    name, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    have = frozenset(feature[1:] for feature in features.split(",") if feature.startswith("+"))
    if wish == "native":
        return Processor(name, features, have)
    is_x86 = platform.machine() in X86
    known = ("native", "baseline", *(list(_LEVELS)[1:] if is_x86 else ()))
    if wish not in known:
        raise ImageError(
            "CUDA_ERROR_NOT_SUPPORTED", f"CUPOLA_CPU_FEATURES must be one of {', '.join(known)} here, not {wish!r}"
        )
    if not is_x86:
        return Processor("generic", "", frozenset())
    level = "x86-64" if wish == "baseline" else wish
    wanted = instructions_of(level)
    if missing := sorted(wanted - have):
        raise ImageError(
            "CUDA_ERROR_NOT_SUPPORTED",
            f"CUPOLA_CPU_FEATURES={wish} needs instructions that this computer lacks: {', '.join(missing)}",
        )
    return Processor(level, "", wanted)


def instructions_of(level: str) -> frozenset[str]:
    """The extensions of the instruction set that a level of x86-64 has, with those of the levels below."""
    found: set[str] = set()
    for each, added in _LEVELS.items():
        found.update(added)
        if each == level:
            break
    return frozenset(found)
