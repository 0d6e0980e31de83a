"""Ordering one stream after another, with events that are kept for reuse."""

from cpython.object cimport PyObject
from cpython.pystate cimport PyThreadState
from libc.stdint cimport uintptr_t

from cupola.core.device._context cimport current_context, enter, is_gone, leave, resets, when_reset
from cupola.core.base._cuda cimport (
    CU_EVENT_DISABLE_TIMING, CUDA_SUCCESS, CUcontext, CUevent, CUresult, CUstream, check, cu, initialise,
)
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.base._shared cimport Alone, begin_alone, end_alone

cdef enum:
    MOST_IDLE = 32

cdef struct Idle:
    CUcontext context
    CUevent event

# Events that wait for their next use; read and changed alone (_shared.pxd). An event may be recorded anew as soon as the
# wait for it is queued (CUDA Driver API, cuStreamWaitEvent: the wait is for what was recorded at the time of the call).
cdef Idle _idle[MOST_IDLE]
cdef int _count = 0
cdef object _of_idle = object()     # what they are alone with


cdef CUevent _take(CUcontext context) noexcept:
    """An idle event of `context`, which is the caller's from here on, or NULL."""
    global _count
    cdef Alone alone
    cdef int i
    cdef CUevent event = NULL
    begin_alone(&alone, <PyObject*>_of_idle)
    for i in range(_count - 1, -1, -1):
        if _idle[i].context == context:
            event = _idle[i].event
            _count -= 1
            _idle[i] = _idle[_count]
            break
    end_alone(&alone)
    return event


cdef void _put_back(CUcontext context, CUevent event) noexcept:
    global _count
    cdef Alone alone
    begin_alone(&alone, <PyObject*>_of_idle)
    if _count != MOST_IDLE:
        _idle[_count].context, _idle[_count].event = context, event
        _count += 1
        event = NULL
    end_alone(&alone)
    if event != NULL:
        _destroy(event)


cdef void _destroy(CUevent event) noexcept:
    cdef PyThreadState* others = let_others_run()
    cu.cuEventDestroy(event)
    take_back(others)


def _forget_idle(address):
    while _take(<CUcontext><uintptr_t>address) != NULL:
        pass    # events go with their context


when_reset(_forget_idle)


cdef int wait_for(CUstream producer, CUstream consumer) except -1:
    cdef Awaited awaited
    if producer == consumer:
        return 0
    initialise()
    begin_wait(producer, &awaited)
    return end_wait(&awaited, consumer)


cdef bint begin_wait(CUstream producer, Awaited* awaited) except -1:
    cdef CUresult status
    cdef PyThreadState* others
    awaited.context = _context_of(producer)
    awaited.born = resets
    awaited.event = _take(awaited.context)
    if awaited.event == NULL:
        awaited.event = _new_event(awaited.context)
    others = let_others_run()
    status = cu.cuEventRecord(awaited.event, producer)
    take_back(others)
    if status != CUDA_SUCCESS:
        _destroy(awaited.event)
        check(status, b"cuEventRecord")
    return True


cdef int end_wait(Awaited* awaited, CUstream consumer) except -1:
    cdef CUresult status
    cdef PyThreadState* others = let_others_run()
    status = cu.cuStreamWaitEvent(consumer, awaited.event, 0)
    take_back(others)
    if status != CUDA_SUCCESS:
        _destroy(awaited.event)
        return check(status, b"cuStreamWaitEvent")
    if not is_gone(awaited.context, awaited.born):      # reset by another thread meanwhile
        _put_back(awaited.context, awaited.event)
    return 0


cdef CUcontext _context_of(CUstream stream) except NULL:
    cdef CUcontext context = NULL
    if <uintptr_t>stream <= 2:      # a default stream is that of the current context
        context = current_context()
        if context == NULL:
            raise RuntimeError(
                "no context is current on this thread, so the default stream cannot be waited for; "
                "call Device.set_current() first, or pass stream_ptr=-1 when no synchronization is needed"
            )
        return context
    check(cu.cuStreamGetCtx(stream, &context), b"cuStreamGetCtx")
    return context


cdef CUevent _new_event(CUcontext context) except NULL:
    cdef CUevent event = NULL
    cdef int pushed = enter(context)
    cdef PyThreadState* others = let_others_run()
    cdef CUresult status = cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)
    take_back(others)
    leave(pushed)
    check(status, b"cuEventCreate")
    return event
