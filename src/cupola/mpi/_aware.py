"""Whether the library of MPI reads and writes device memory itself."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from mpi4py import MPI

from cupola.bindings import _provider


@cache
def is_cuda_aware() -> bool:
    """Tell whether MPI takes addresses of device memory here; if not, messages pass through pinned memory.

    The library is asked once, by ``MPIX_Query_cuda_support``, which Open MPI and MPICH have. On the CPU device the
    answer is no, since any library can use its memory (`is_host_memory`). The environment variable ``CUPOLA_MPI_CUDA``,
    0 or 1, answers in its place, for libraries without that function.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        For another value of the variable.
    """
    said = os.environ.get("CUPOLA_MPI_CUDA", "")
    if said not in ("", "0", "1"):
        raise ValueError(f"CUPOLA_MPI_CUDA is {said!r}: 1 says that MPI takes device memory, 0 that it does not")
    if said:
        return said == "1"
    if _provider.is_cpu():
        return False
    ask = getattr(ctypes.CDLL(MPI.__file__), "MPIX_Query_cuda_support", None)
    return ask is not None and bool(ask())


@cache
def only_waits() -> bool:
    """Tell whether MPI takes device memory only in methods that wait, and in messages from one rank to another.

    So it is with Open MPI: its collective operations that do not wait, and those on windows, read the addresses
    themselves, which ends the process.
    """
    return bool(MPI.get_vendor()[0] == "Open MPI")


@cache
def is_host_memory() -> bool:
    """Tell whether any library of MPI can use device memory, since the device is the CPU device.

    Messages whose methods wait go from array to array then. ``CUPOLA_MPI_CUDA=0`` sends them through pinned memory as
    on a GPU, and so does a check that watches who uses the memory.
    """
    return not is_cuda_aware() and _provider.is_cpu() and os.environ.get("CUPOLA_MPI_CUDA") != "0"
