"""What `launch` and prepared launches share."""

from cpython.object cimport PyObject

from cupola.core.launch._arguments cimport Slot, pack, pack_as
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUfunction, CUlaunchAttribute, CUlaunchConfig, CUresult, cu
from cupola.core.program._kernel cimport Kernel, Parameter
from cupola.core.launch._launch_config cimport MOST_ATTRIBUTES, LaunchConfig, keep_node, snapshot
from cupola.core.device._stream cimport Stream, StreamHandle

cdef enum:
    FEW = 24        # arguments up to here are packed on the C stack

# For anything but a plain Stream: a subclass, a graph builder, or a stream of another library.
cdef int submit_elsewhere(
    object stream, LaunchConfig config, Kernel kernel, const Parameter* parameters, PyObject** arguments,
    Py_ssize_t count, void** pointers, Slot* slots
) except -1

# For arguments with arrays of the host: copy these, launch, and copy back.
cdef int submit_host_arrays(
    object stream, LaunchConfig config, Kernel kernel, PyObject** arguments, Py_ssize_t count
) except -1

# The error of a refused launch, or a second try; and the check of a cooperative launch.
cdef int retry(
    CUresult status, StreamHandle stream, LaunchConfig config, Kernel kernel, CUlaunchConfig* native, void** pointers
) except -1
cdef int check_cooperative(Stream stream, LaunchConfig config, Kernel kernel) except -1


cdef inline int start(StreamHandle held, LaunchConfig config, Kernel kernel, void** pointers) except -1:
    """Launch what is packed."""
    cdef CUlaunchConfig native = config.native
    cdef CUlaunchAttribute[MOST_ATTRIBUTES] attributes
    cdef CUfunction function = <CUfunction>kernel.pointer    # the driver takes a CUkernel in its place
    cdef CUresult status
    if native.numAttrs != 0:
        snapshot(config, &native, attributes)
    native.hStream = held.pointer
    with nogil:
        status = cu.cuLaunchKernelEx(&native, function, pointers, NULL)
    if status != CUDA_SUCCESS:
        retry(status, held, config, kernel, &native, pointers)
    if native.numAttrs != 0:
        keep_node(config, &native)
    return 0


cdef inline int submit(
    object stream, LaunchConfig config, Kernel kernel, const Parameter* parameters, PyObject** arguments,
    Py_ssize_t count, void** pointers, Slot* slots
) except -1:
    """Pack the arguments, for the kernel's own parameters where `parameters` is NULL, and launch."""
    cdef Stream target
    cdef int found
    if type(stream) is not Stream:
        return submit_elsewhere(stream, config, kernel, parameters, arguments, count, pointers, slots)
    target = <Stream>stream
    if parameters != NULL:
        found = pack_as(kernel, parameters, 1, arguments, count, pointers, slots)
    else:
        found = pack(kernel, arguments, count, pointers, slots)
    if found:
        return submit_host_arrays(stream, config, kernel, arguments, count)
    if config.cooperative:
        check_cooperative(target, config, kernel)
    # The stream is held behind all code of the arguments, which may have closed it.
    return start(target.hold(), config, kernel, pointers)
