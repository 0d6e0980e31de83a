"""Launching kernels."""

import sys
import warnings

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.tuple cimport PyTuple_GET_SIZE

from cupola.core._arguments cimport Slot, pack
from cupola.core._cuda cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUfunction, CUlaunchConfig, CUresult, check, closed_error, cu, fail_because
)
from cupola.core._kernel cimport Kernel
from cupola.core._launch_config cimport LaunchConfig
from cupola.core._stream cimport Stream, foreign_stream, stream_argument

cdef enum:
    FEW = 24        # arguments up to here are packed on the C stack


def launch(stream, LaunchConfig config not None, Kernel kernel not None, *kernel_args):
    """Launch a kernel (``cuLaunchKernelEx``); returns at once, the kernel runs in the order of the stream.

    Parameters
    ----------
    stream : Stream or GraphBuilder
        Where the kernel runs, or is captured.
    config : LaunchConfig
        How many threads, and how they are grouped.
    kernel : Kernel
        What to run.
    *kernel_args
        One for each parameter of the kernel: a Buffer or an address as int for a pointer; int, float, bool,
        complex; NumPy and ctypes scalars and structures. A Python int or float is passed with the width of the
        parameter. Values are copied during the call; the memory that pointers name must stay until the kernel is
        done.

    Raises
    ------
    TypeError
        The number of arguments, or the size of one, is not what the kernel has.
    ValueError
        A cooperative grid is larger than what runs at the same time.
    CUDAError
        The driver refused the launch; the text names the limit that was exceeded. What goes wrong inside the
        kernel is raised by a later ``sync()``.

    Examples
    --------
    >>> launch(stream, LaunchConfig(grid=n // 256, block=256), kernel, buffer, 2.0, n)
    """
    cdef void* pointers[FEW]
    cdef Slot slots[FEW]
    cdef void* many
    cdef Py_ssize_t count = PyTuple_GET_SIZE(kernel_args)
    cdef Stream target
    if type(stream) is Stream:
        target = <Stream>stream
        if target.native is None:
            raise closed_error(stream)
    else:
        target = _find_stream(stream)
    if count <= FEW:
        _submit(target, config, kernel, kernel_args, pointers, slots)
        return
    many = PyMem_Malloc(count * (sizeof(Slot) + sizeof(void*)))
    if many == NULL:
        raise MemoryError()
    try:
        _submit(target, config, kernel, kernel_args, <void**>(<Slot*>many + count), <Slot*>many)
    finally:
        PyMem_Free(many)


cdef inline int _submit(
    Stream stream, LaunchConfig config, Kernel kernel, tuple arguments, void** pointers, Slot* slots
) except -1:
    cdef CUlaunchConfig native = config.native
    cdef CUfunction function = <CUfunction>kernel.pointer    # the driver takes a CUkernel in its place
    cdef CUresult status
    native.hStream = stream.pointer
    pack(kernel, arguments, pointers, slots)
    if config.cooperative:
        _check_cooperative(stream, config, kernel)
    with nogil:
        status = cu.cuLaunchKernelEx(&native, function, pointers, NULL)
    if status != CUDA_SUCCESS:
        _retry(status, stream, config, kernel, &native, pointers)
    return 0


cdef int _retry(CUresult status, Stream stream, LaunchConfig config, Kernel kernel, CUlaunchConfig* native,
                void** pointers) except -1:
    """Say which limit a refused launch exceeded, unless it is one that can be raised and is worth another try."""
    cdef CUfunction function = <CUfunction>kernel.pointer
    from cupola.core import _launch_limits
    cdef str reason = None
    cdef int device_id
    if _launch_limits.may_explain(status):
        device_id = stream.find_device()
        if status == CUDA_ERROR_INVALID_VALUE and _launch_limits.raise_shared_memory(config, kernel, device_id):
            with nogil:
                status = cu.cuLaunchKernelEx(native, function, pointers, NULL)
            if status == CUDA_SUCCESS:
                return 0
        reason = _launch_limits.exceeded(config, kernel, device_id)
    return fail_because(status, b"cuLaunchKernelEx", reason)


cdef int _check_cooperative(Stream stream, LaunchConfig config, Kernel kernel) except -1:
    from cupola.core import _launch_limits
    _launch_limits.check_cooperative(config, kernel, stream.find_device())
    return 0


cdef Stream _find_stream(object stream):
    """Anything but a plain Stream: a subclass, a graph builder, or a stream of another library."""
    if isinstance(stream, Stream) or stream is None or not hasattr(stream, "__cuda_stream__"):
        return stream_argument(stream)
    graph = sys.modules.get("cupola.graph")
    if graph is not None and isinstance(stream, graph.GraphBuilder):
        return stream_argument(stream)
    warnings.warn(
        f"launch() with {type(stream).__name__}: wrap it once with Device.create_stream(obj)", DeprecationWarning,
        stacklevel=1,
    )
    return foreign_stream(stream)
