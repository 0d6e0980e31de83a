"""The tables of cuRAND's quasirandom generators, which NVIDIA's library gives to whoever asks.

Sobol sequences differ by their direction vectors. Those of cuRAND, and the constants of the scrambled ones, are in
``libcurand`` alone (``curandGetDirectionVectors32`` and its kin), which needs no GPU for that: ``pip install
nvidia-curand``.
"""

from __future__ import annotations

import ctypes
import functools

from cupola.pathfinder._dynamic_libraries import copies_of

DIMENSIONS = 20000


@functools.cache
def tables(kind: int) -> bytes:
    """The direction vectors of all dimensions, then one constant for each dimension, 0 where there is none.

    Parameters
    ----------
    kind
        A ``curandRngType``: of 32 bits (201, and 202 scrambled) or of 64 bits (203 and 204).

    Raises
    ------
    ImportError
        NVIDIA's library is not installed, or does not give them.
    """
    needed = "quasirandom generators have the tables of NVIDIA's libcurand: pip install nvidia-curand"
    bits, is_scrambled = (32, 64)[kind > 202], kind in (202, 204)
    size = bits // 8
    address = ctypes.c_void_p()
    refusals = []
    # By path: where a program loads cuRAND by name, the CPU device's has that name.
    for path, _ in copies_of("curand"):
        library = ctypes.CDLL(path)
        # The sets are numbered 101 to 104 as the generators are 201 to 204.
        status = getattr(library, f"curandGetDirectionVectors{bits}")(ctypes.byref(address), kind - 100)
        if not status and address.value:
            break
        refusals.append(f"curandGetDirectionVectors{bits} of {path} returned {status}")
    else:
        raise ImportError(" (".join([needed, *refusals]) + ")" * len(refusals))
    vectors = ctypes.string_at(address.value, DIMENSIONS * bits * size)
    if not is_scrambled:
        return vectors + bytes(DIMENSIONS * size)
    status = getattr(library, f"curandGetScrambleConstants{bits}")(ctypes.byref(address))
    if status or not address.value:
        raise ImportError(f"{needed} (curandGetScrambleConstants{bits} of {path} returned {status})")
    return vectors + ctypes.string_at(address.value, DIMENSIONS * size)
