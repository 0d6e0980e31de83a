"""Launches as graphs of one node, which NVIDIA's driver takes in half the time of a launch.

A kernel that has been launched several times in a stream gets a graph. From then on its parameters and blocks are set in the
executable graph, and that is launched. What was queued before keeps the parameters that it had. Streams that are being
captured, have a priority, may belong to a green context or are not cupola's own, and the CPU device, whose launches are
quicker, have ordinary launches.
"""

from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock, PyThread_release_lock, PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from cupola.bindings import _provider
from cupola.core.base._cuda cimport (
    CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_STATUS_NONE, CUDA_KERNEL_NODE_PARAMS, CUDA_SUCCESS, CUcontext,
    CUgraph, CUgraphExec, CUgraphNode, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus, cu, driver_usable
)
from cupola.core.device._context cimport resets
from cupola.core.device._stream cimport StreamHandle
from cupola.core.program._kernel cimport Kernel

cdef enum:
    ORDINARY = 8        # launches of a kernel before it gets a graph
    STREAMS = 4         # of a kernel, which have a graph each
    MOST = 64           # graphs that a kernel is given in all; a program that goes on making streams has none then

cdef int _wanted = -1   # -1: not known yet


def use_graphs(wanted):
    """Whether launches become graphs; None, which it is at first: on a GPU they do."""
    global _wanted
    _wanted = -1 if wanted is None else bool(wanted)


cdef class Replay:
    """A kernel as a graph of one node, for the launches in a stream."""

    cdef CUgraph graph
    cdef CUgraphExec executable
    cdef CUgraphNode node
    cdef CUstream stream
    cdef unsigned long long serial      # of the stream, if it is none of the default streams
    cdef CUcontext context
    cdef unsigned long born             # `resets` when it was made
    cdef CUDA_KERNEL_NODE_PARAMS found
    cdef PyThread_type_lock lock

    def __cinit__(self):
        self.born = resets
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self.lock != NULL:
            PyThread_free_lock(self.lock)
        if self.born == resets and driver_usable():
            if self.executable != NULL:
                cu.cuGraphExecDestroy(self.executable)      # which lets launches that are queued end
            if self.graph != NULL:
                cu.cuGraphDestroy(self.graph)

    cdef CUresult make(self, Kernel kernel, void** parameters) noexcept:
        cdef CUresult status
        cdef CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED
        self.found.kernelParams = parameters
        status = cu.cuThreadExchangeStreamCaptureMode(&mode)    # another stream may be being captured
        if status != CUDA_SUCCESS:
            return status
        status = cu.cuKernelGetFunction(&self.found.func, kernel.pointer)
        if status == CUDA_SUCCESS:
            status = cu.cuGraphCreate(&self.graph, 0)
        if status == CUDA_SUCCESS:
            status = cu.cuGraphAddKernelNode(&self.node, self.graph, NULL, 0, &self.found)
        if status == CUDA_SUCCESS:
            status = cu.cuGraphInstantiate(&self.executable, self.graph, 0)
        cu.cuThreadExchangeStreamCaptureMode(&mode)
        return status

    cdef CUresult launch(self, unsigned int blocks, void** parameters) noexcept nogil:
        cdef CUresult status
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.found.gridDimX, self.found.kernelParams = blocks, parameters
        status = cu.cuGraphExecKernelNodeSetParams(self.executable, self.node, &self.found)
        if status == CUDA_SUCCESS:
            status = cu.cuGraphLaunch(self.executable, self.stream)
        PyThread_release_lock(self.lock)
        return status


cdef class Replays:
    """What a kernel has as `attached`: how often it was launched, and its graphs."""

    cdef int launches
    cdef int count              # of graphs that were made
    cdef list made
    cdef bint refused           # a graph could not be made


cdef bint replayed(
    Kernel kernel, StreamHandle stream, int64_t blocks, unsigned int threads, void** parameters
) except -1:
    global _wanted
    cdef Replays known
    cdef Replay one, chosen = None
    cdef CUcontext context = NULL
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef CUresult status
    cdef int priority = 0
    cdef unsigned long long serial = 0
    if _wanted == 0:
        return False
    if kernel.attached is None:
        kernel.attached = Replays.__new__(Replays)
        (<Replays>kernel.attached).made = []
    known = <Replays>kernel.attached
    if known.launches < ORDINARY:
        known.launches += 1
        return False
    if _wanted < 0:
        _wanted = _provider.current() == "gpu"
        if not _wanted:
            return False
    # The stream of each thread is another one under the same handle. A graph would leave the multiprocessors of a green context,
    # which a stream with an owner may belong to. Another stream may take the place of one that others make and destroy.
    if known.refused or <uintptr_t>stream.pointer == 2 or stream.owner is not None:
        return False
    if cu.cuCtxGetCurrent(&context) != CUDA_SUCCESS:
        return False
    if <uintptr_t>stream.pointer > 2:
        if not stream.owned:
            return False
        serial = stream.serial
        if cu.cuStreamIsCapturing(stream.pointer, &capture) != CUDA_SUCCESS or capture != CU_STREAM_CAPTURE_STATUS_NONE:
            return False
    for one in known.made:
        if one.stream == stream.pointer and one.serial == serial and one.context == context and one.born == resets:
            chosen = one
            break
    if chosen is None:
        if known.count >= MOST:
            return False
        # A node has a priority of its own, whatever that of the stream is.
        if cu.cuStreamGetPriority(stream.pointer, &priority) != CUDA_SUCCESS or priority != 0:
            return False
        chosen = Replay.__new__(Replay)
        chosen.stream, chosen.serial, chosen.context = stream.pointer, serial, context
        memset(&chosen.found, 0, sizeof(chosen.found))
        chosen.found.gridDimX, chosen.found.gridDimY, chosen.found.gridDimZ = <unsigned int>blocks, 1, 1
        chosen.found.blockDimX, chosen.found.blockDimY, chosen.found.blockDimZ = threads, 1, 1
        if chosen.make(kernel, parameters) != CUDA_SUCCESS:
            known.refused = True
            return False
        known.count += 1
        known.made = [*known.made[-STREAMS + 1:], chosen]
    with nogil:
        status = chosen.launch(<unsigned int>blocks, parameters)
    return status == CUDA_SUCCESS       # else an ordinary launch says what is wrong
