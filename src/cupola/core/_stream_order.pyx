"""One stream waiting for another, with events that are kept for the next time."""

from libc.stdint cimport uintptr_t

from cupola.core._context cimport current_context, enter, leave, when_reset
from cupola.core._cuda cimport (
    CU_EVENT_DISABLE_TIMING, CUDA_SUCCESS, CUcontext, CUevent, CUresult, CUstream, check, cu, initialise,
)

# Idle events by context. An event may be recorded anew as soon as the wait for it is queued (CUDA Driver API,
# cuStreamWaitEvent: the wait is for what was recorded at the time of the call).
cdef dict _idle = {}


def _forget_idle(address):
    _idle.pop(address, None)    # events go with their context


when_reset(_forget_idle)


cdef int wait_for(CUstream producer, CUstream consumer) except -1:
    cdef CUcontext context
    cdef CUevent event
    cdef CUresult status
    cdef const char* call = b"cuEventRecord"
    cdef list idle
    if producer == consumer:
        return 0
    initialise()
    context = _context_of(producer)
    idle = _idle.get(<uintptr_t>context)
    if idle is None:
        idle = _idle.setdefault(<uintptr_t>context, [])
    # Taken out of the list while in use, so that threads do not share one.
    event = <CUevent><uintptr_t>idle.pop() if idle else _new_event(context)
    with nogil:
        status = cu.cuEventRecord(event, producer)
        if status == CUDA_SUCCESS:
            call = b"cuStreamWaitEvent"
            status = cu.cuStreamWaitEvent(consumer, event, 0)
    if status != CUDA_SUCCESS:
        cu.cuEventDestroy(event)
        return check(status, call)
    idle.append(<uintptr_t>event)
    return 0


cdef CUcontext _context_of(CUstream stream) except NULL:
    cdef CUcontext context = NULL
    if <uintptr_t>stream <= 2:      # a default stream is that of the current context
        context = current_context()
        if context == NULL:
            raise RuntimeError(
                "no context is current on this thread, so the default stream cannot be waited for; "
                "call Device.set_current() first, or pass stream_ptr=-1 when no synchronisation is needed"
            )
        return context
    check(cu.cuStreamGetCtx(stream, &context), b"cuStreamGetCtx")
    return context


cdef CUevent _new_event(CUcontext context) except NULL:
    cdef CUevent event = NULL
    cdef int pushed = enter(context)
    cdef CUresult status = cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)
    leave(pushed)
    check(status, b"cuEventCreate")
    return event
