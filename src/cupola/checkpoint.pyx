"""Pausing a process that uses CUDA, and taking its memory off the GPU (CUDA Driver API, "CUDA Checkpointing").

A process is locked, then checkpointed; later it is restored and unlocked. Any process may ask that of another one of the
same user. What may follow what is said once, in `NEXT`.
"""

import os
from collections.abc import Mapping

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from cupola.core.base._cuda cimport (
    CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_READY, CUDA_ERROR_NOT_SUPPORTED,
    CUDA_ERROR_OPERATING_SYSTEM, CUcheckpointGpuPair, CUcheckpointLockArgs, CUcheckpointRestoreArgs, CUprocessState,
    CUresult, CUuuid, cu, driver_module, fail, fail_because, fail_with, initialise,
)

__all__ = ["Process"]

# The states in the order of CUprocessState, and what can be done in each.
cdef tuple STATES = ("running", "locked", "checkpointed", "failed")
cdef dict NEXT = {
    "running": "only lock() can follow",
    "locked": "checkpoint() or unlock() can follow",
    "checkpointed": "only restore() can follow",
    "failed": "nothing can follow but ending it",
}

cdef str HEXADECIMAL = "0123456789abcdefABCDEF"


cdef class Process:
    # Cython writes no signature where all parameters are required, so it is written here.
    """Process(pid)\n--\n\nA process that uses CUDA, to be paused and to have its device memory taken off the GPU for a while.

    No driver is needed to make one. Two objects are equal only if they are the same. Every operation asks the driver,
    and raises RuntimeError where that is older than CUDA 12.8 or the system is not Linux, and :class:`~cupola.CUDAError`
    when the process is in another state than the operation wants (``CUDA_ERROR_ILLEGAL_STATE``), does not use CUDA
    (``CUDA_ERROR_NOT_INITIALIZED``), or has ended or belongs to somebody else (``CUDA_ERROR_OPERATING_SYSTEM``).

    Parameters
    ----------
    pid : int
        The number of the process. It may be the one that asks.

    Raises
    ------
    TypeError
        `pid` is not an int.
    ValueError
        `pid` is not positive.

    Notes
    -----
    Threads may share it: it does not change.
    """

    cdef readonly object pid
    """int: the number of the process."""

    def __init__(self, pid):
        if isinstance(pid, bool) or not isinstance(pid, int):
            raise TypeError(f"pid must be an int, got {type(pid).__name__}")
        if pid <= 0:
            raise ValueError(f"pid must be positive, got {pid}")
        self.pid = pid

    def __reduce__(self):
        return type(self), (self.pid,)

    def __repr__(self):
        return f"<Process pid={self.pid}>"

    @property
    def state(self):
        """ProcessStateType: 'running', 'locked', 'checkpointed' or 'failed' (``cuCheckpointProcessGetState``)."""
        cdef int pid = self.pid
        cdef CUprocessState state
        cdef CUresult status
        with nogil:
            status = cu.cuCheckpointProcessGetState(pid, &state)
        _check(self, status, b"cuCheckpointProcessGetState")
        if not 0 <= <int>state < len(STATES):
            raise RuntimeError(f"the driver says that process {self.pid} is in state {<int>state}, which is not known here")
        return STATES[<int>state]

    @property
    def restore_thread_id(self):
        """int: the thread of the process that restores it, for a tool that restores the process itself as well.

        Such a tool, CRIU for example, lets this thread run first (``cuCheckpointProcessGetRestoreThreadId``).
        """
        cdef int pid = self.pid
        cdef int thread = 0
        cdef CUresult status
        with nogil:
            status = cu.cuCheckpointProcessGetRestoreThreadId(pid, &thread)
        _check(self, status, b"cuCheckpointProcessGetRestoreThreadId")
        return thread

    def lock(self, timeout_ms=0):
        """Let the process call CUDA no more, and wait until all its work on the device is done.

        From then on its calls wait until `unlock` (``cuCheckpointProcessLock``). The process must be running.

        Parameters
        ----------
        timeout_ms : int
            How long to wait, in milliseconds; 0: for ever.

        Raises
        ------
        TypeError
            `timeout_ms` is not an int.
        ValueError
            `timeout_ms` is negative.
        CUDAError
            The work took longer (``CUDA_ERROR_NOT_READY``): the process goes on running.
        """
        cdef int pid = self.pid
        cdef CUcheckpointLockArgs arguments
        cdef CUresult status
        if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int):
            raise TypeError(f"timeout_ms must be an int, got {type(timeout_ms).__name__}")
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative, got {timeout_ms}; 0 waits for ever")
        memset(&arguments, 0, sizeof(arguments))
        arguments.timeoutMs = timeout_ms
        with nogil:
            status = cu.cuCheckpointProcessLock(pid, &arguments)
        if status == CUDA_ERROR_NOT_READY:
            fail_with(status, b"cuCheckpointProcessLock", f"process {self.pid} still had work on the device after "
                         f"{timeout_ms} ms: it goes on; try again, or with a longer timeout_ms")
        _check(self, status, b"cuCheckpointProcessLock")

    def checkpoint(self):
        """Move the device memory of the locked process to its host memory, and free it on the device.

        The process holds nothing on the device until `restore` (``cuCheckpointProcessCheckpoint``).
        """
        cdef int pid = self.pid
        cdef CUresult status
        with nogil:
            status = cu.cuCheckpointProcessCheckpoint(pid, NULL)
        _check(self, status, b"cuCheckpointProcessCheckpoint")

    def restore(self, gpu_mapping=None):
        """Give the checkpointed process its device memory back, at the same addresses. It stays locked until `unlock`.

        ``cuCheckpointProcessRestore``.

        Parameters
        ----------
        gpu_mapping : mapping, optional
            From the UUID of each GPU before the checkpoint to that of the GPU that is to take its place, which must be of
            the same kind. Every GPU that the kernel's driver sees has to be in it, whatever ``CUDA_VISIBLE_DEVICES`` says.
            UUIDs are written as :attr:`.Device.uuid` is, or as ``CUuuid`` of the bindings.

        Raises
        ------
        TypeError
            `gpu_mapping` is not a mapping, or has something else than UUIDs in it.
        ValueError
            A text is not 32 hexadecimal digits, with hyphens or without.
        """
        cdef int pid = self.pid
        cdef CUcheckpointRestoreArgs arguments
        cdef CUcheckpointGpuPair* pairs = NULL
        cdef CUresult status
        cdef list uuids = _pairs(gpu_mapping)
        if uuids:
            pairs = <CUcheckpointGpuPair*>calloc(len(uuids), sizeof(CUcheckpointGpuPair))
            if pairs == NULL:
                raise MemoryError
            for i, (old, new) in enumerate(uuids):
                memcpy(&pairs[i].oldUuid, <const char*><bytes>old, sizeof(CUuuid))
                memcpy(&pairs[i].newUuid, <const char*><bytes>new, sizeof(CUuuid))
        memset(&arguments, 0, sizeof(arguments))
        arguments.gpuPairs = pairs
        arguments.gpuPairsCount = len(uuids)
        try:
            if pid != os.getpid():
                initialise()    # the driver wants that, or persistence mode; in a checkpointed process it would wait
            with nogil:
                status = cu.cuCheckpointProcessRestore(pid, &arguments if pairs != NULL else NULL)
            _check(self, status, b"cuCheckpointProcessRestore")
        finally:
            free(pairs)

    def unlock(self):
        """Let the locked process call CUDA again (``cuCheckpointProcessUnlock``)."""
        cdef int pid = self.pid
        cdef CUresult status
        with nogil:
            status = cu.cuCheckpointProcessUnlock(pid, NULL)
        _check(self, status, b"cuCheckpointProcessUnlock")


cdef list _pairs(object mapping):
    """The bytes of the UUIDs of a mapping."""
    if mapping is None:
        return []
    if not isinstance(mapping, Mapping):
        raise TypeError(
            "gpu_mapping must be a mapping from the UUIDs of GPUs to those of GPUs that take their places, got "
            f"{type(mapping).__name__}"
        )
    return [(_uuid(old), _uuid(new)) for old, new in mapping.items()]


cdef bytes _uuid(object value):
    if isinstance(value, driver_module.CUuuid):
        return bytes(value.bytes)
    if not isinstance(value, str):
        raise TypeError(f"a UUID in gpu_mapping must be a text or a CUuuid, got {type(value).__name__}")
    digits = value.replace("-", "")
    if len(digits) != 32 or digits.strip(HEXADECIMAL):
        raise ValueError(f"a UUID in gpu_mapping must be 32 hexadecimal digits, with hyphens or without, got {value!r}")
    return bytes.fromhex(digits)


cdef int _check(Process process, CUresult status, const char* call) except -1:
    """Raise what a status says, with the state that was in the way."""
    cdef CUprocessState state
    cdef int pid
    if status == 0:
        return 0
    if status == CUDA_ERROR_NOT_SUPPORTED or status == CUDA_ERROR_NOT_FOUND:
        try:
            fail(status, call)
        except RuntimeError:
            raise                   # the driver lacks the function
        except Exception as error:
            raise RuntimeError(
                f"{error}\nCheckpoints need a driver of CUDA 12.8 or later on Linux, and a process without managed memory and "
                "without memory of other processes; and who asks for them must not have recorded a timeline (CUPTI)"
            ) from None
    if status == CUDA_ERROR_ILLEGAL_STATE:
        pid = process.pid
        if cu.cuCheckpointProcessGetState(pid, &state) == 0 and 0 <= <int>state < len(STATES):
            name = STATES[<int>state]
            return fail_with(status, call, f"process {pid} is {name}: {NEXT[name]}")
    if status == CUDA_ERROR_NOT_INITIALIZED:
        return fail_with(status, call, f"process {process.pid} does not use CUDA, or not the same kind of device as this one")
    if status == CUDA_ERROR_OPERATING_SYSTEM:
        return fail_because(status, call, f"process {process.pid} has ended, or belongs to another user")
    return fail(status, call)
