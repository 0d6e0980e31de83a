"""Launching kernels.

`launch` is called so often, and with so many arguments, that it is written by hand as a METH_FASTCALL method: it reads
its arguments where the interpreter has them, while a ``def`` with ``*kernel_args`` would copy them into a tuple first.
"""

import warnings

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from cupola.core.launch._arguments cimport Slot, operands, pack, pack_as, read_buffers
from cupola.core.device._context cimport enter, leave
from cupola.core.base._cuda cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUfunction, CUlaunchConfig, CUresult, cu, fail_because, fail_with
)
from cupola._above import above
from cupola.core.program._kernel cimport Kernel, Parameter
from cupola.core.launch._launch_config cimport LaunchConfig
from cupola.core.device._stream cimport (
    Recorder, Stream, StreamHandle, begin_recording, end_recording, foreign_stream, new_stream, stream_argument
)

cdef extern from *:
    """
    static PyMethodDef cupola_launch_method;

    static PyObject *cupola_make_launch(void *function, const char *text, PyObject *module_name)
    {
        cupola_launch_method.ml_name = "launch";
        cupola_launch_method.ml_meth = (PyCFunction)function;
        cupola_launch_method.ml_flags = METH_FASTCALL | METH_KEYWORDS;
        cupola_launch_method.ml_doc = text;
        return PyCFunction_NewEx(&cupola_launch_method, NULL, module_name);
    }
    """
    object cupola_make_launch(void* function, const char* text, object module_name)

# Up to the dashes it is the signature; the bytes stay as long as the function, which is forever.
cdef bytes _TEXT = b"""launch(stream, config, kernel, *kernel_args)
--

Launch a kernel (``cuLaunchKernelEx``); returns at once, the kernel runs in the order of the stream.

Parameters
----------
stream : Stream or GraphBuilder
    Where the kernel runs, or is captured.
config : LaunchConfig
    How many threads, and how they are grouped.
kernel : Kernel
    What to run.
*kernel_args
    One for each parameter of the kernel. For a pointer: an Array, a Buffer, an array of another library on the device,
    an address as int, or an array of the host as In(array), Out(array) or InOut(array). For others: int, float, bool, complex; NumPy and ctypes scalars and structures. A Python int or
    float is passed with the width of the parameter. Values are copied during the call; memory that is passed by
    address must stay valid until the kernel is done. A graph keeps the kernel and the memory of Buffers that were
    captured, also when the Buffers are closed.

Raises
------
TypeError
    The number of arguments, or the size or type of one, does not match the kernel.
ValueError
    A cooperative grid is larger than what runs at the same time.
CUDAError
    The driver refused the launch; the text names the limit that was exceeded. A fault inside the kernel is raised by a
    later ``sync()``.

Examples
--------
>>> launch(stream, LaunchConfig(grid=n // 256, block=256), kernel, buffer, 2.0, n)
"""


cdef PyObject* _launch(PyObject* module, PyObject** arguments, Py_ssize_t count, PyObject* names) except NULL:
    if names == NULL and count >= 3:
        _run(<object>arguments[0], <object>arguments[1], <object>arguments[2], arguments + 3, count - 3)
    else:
        _run_by_name(arguments, count, <tuple>names if names != NULL else ())
    Py_INCREF(None)
    return <PyObject*>None


launch = cupola_make_launch(<void*>_launch, _TEXT, __name__)


cdef int _run_by_name(PyObject** arguments, Py_ssize_t count, tuple names) except -1:
    """The first three may be given by name; what is missing or unknown is an error."""
    cdef dict given = {}
    cdef Py_ssize_t i
    for i in range(min(count, 3)):
        given[("stream", "config", "kernel")[i]] = <object>arguments[i]
    for i in range(len(names)):
        if names[i] not in ("stream", "config", "kernel"):
            raise TypeError(
                f"launch() got an unexpected keyword argument {names[i]!r}: the kernel's arguments are given by position"
            )
        if names[i] in given:
            raise TypeError(f"launch() got multiple values for argument {names[i]!r}")
        given[names[i]] = <object>arguments[count + i]
    missing = [name for name in ("stream", "config", "kernel") if name not in given]
    if missing:
        raise TypeError(
            f"launch() is missing {', '.join(missing)}: it takes stream, config, kernel and the kernel's arguments"
        )
    return _run(given["stream"], given["config"], given["kernel"], NULL, 0)


cdef str _ORDER = "launch takes (stream, config, kernel, *kernel_args)"


cdef int _run(object stream, object config, object kernel, PyObject** arguments, Py_ssize_t count) except -1:
    cdef void* pointers[FEW]
    cdef Slot slots[FEW]
    cdef void* many
    if not isinstance(config, LaunchConfig):
        raise TypeError(
            f"config must be a LaunchConfig, not {type(config).__name__}: {_ORDER}, such as "
            "launch(stream, LaunchConfig(grid=64, block=256), kernel, buffer)"
        )
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel must be a Kernel, not {type(kernel).__name__}: {_ORDER}, and a Kernel comes from "
            "ObjectCode.get_kernel(name)"
        )
    if count <= FEW:
        return submit(stream, <LaunchConfig>config, <Kernel>kernel, NULL, arguments, count, pointers, slots)
    many = PyMem_Malloc(count * (sizeof(Slot) + sizeof(void*)))
    if many == NULL:
        raise MemoryError()
    try:
        return submit(
            stream, <LaunchConfig>config, <Kernel>kernel, NULL, arguments, count, <void**>(<Slot*>many + count),
            <Slot*>many
        )
    finally:
        PyMem_Free(many)


cdef int submit_elsewhere(
    object stream, LaunchConfig config, Kernel kernel, const Parameter* parameters, PyObject** arguments,
    Py_ssize_t count, void** pointers, Slot* slots
) except -1:
    cdef Stream target = _find_stream(stream)
    cdef int found
    if parameters != NULL:
        found = pack_as(kernel, parameters, 1, arguments, count, pointers, slots)
    else:
        found = pack(kernel, arguments, count, pointers, slots)
    if found:
        return submit_host_arrays(stream, config, kernel, arguments, count)
    turn = begin_recording(stream, operands(kernel, arguments, count))
    try:
        if config.cooperative:
            check_cooperative(target, config, kernel)
        read_buffers(arguments, count, slots)
        start(target.hold(), config, kernel, pointers)     # held as in submit
    finally:
        end_recording(turn)
    return 0


cdef int submit_host_arrays(
    object stream, LaunchConfig config, Kernel kernel, PyObject** arguments, Py_ssize_t count
) except -1:
    above("launch_with_copies")(stream, config, kernel, [<object>arguments[i] for i in range(count)])
    return 0


cdef int retry(CUresult status, StreamHandle stream, LaunchConfig config, Kernel kernel, CUlaunchConfig* native,
               void** pointers) except -1:
    """Say which limit a refused launch exceeded, unless it is one that can be raised and is worth another try."""
    cdef CUfunction function = <CUfunction>kernel.pointer
    if cu.head.raise_pending() != 0:
        return -1
    from cupola.core.launch import _launch_limits
    cdef str reason = None
    cdef int device_id
    if _launch_limits.may_explain(status):
        device_id = new_stream(stream).find_device()
        if status == CUDA_ERROR_INVALID_VALUE and _launch_limits.raise_shared_memory(config, kernel, device_id):
            with nogil:
                status = cu.cuLaunchKernelEx(native, function, pointers, NULL)
            if status == CUDA_SUCCESS:
                return 0
        reason = _launch_limits.exceeded(config, kernel, device_id)
        if reason is not None:
            return fail_with(status, b"cuLaunchKernelEx", reason)
        reason = _launch_limits.may_be_too_new(config)
    return fail_because(status, b"cuLaunchKernelEx", reason)


cdef int check_cooperative(Stream stream, LaunchConfig config, Kernel kernel) except -1:
    from cupola.core.launch import _launch_limits
    cdef int pushed = enter(stream.find_context())      # how many blocks fit is asked of the current context
    try:
        _launch_limits.check_cooperative(config, kernel, stream.find_device())
    finally:
        leave(pushed)
    return 0


cdef Stream _find_stream(object stream):
    """Anything but a plain Stream: a subclass, a graph builder, or a stream of another library."""
    if isinstance(stream, Stream) or stream is None or not hasattr(stream, "__cuda_stream__"):
        return stream_argument(stream)
    if isinstance(stream, Recorder):
        return stream_argument(stream)
    warnings.warn(
        f"launch() with {type(stream).__name__}: wrap it once with Device.create_stream(obj)", DeprecationWarning,
        stacklevel=1,
    )
    return foreign_stream(stream)
