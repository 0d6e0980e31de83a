"""The streams that use a piece of memory, for rooms above that order the work of several streams themselves.

What is read waits for the stream that has written it, what is written waits for all that have read it since, and
the release waits for all. A wait is for the work that is in the other stream by then (CUDA Driver API,
cuStreamWaitEvent); that may be more than what used the memory, and is never less.

Work that is being recorded cannot be waited for: it has not run. Nor can what its stream had before, as long as it is
recorded: who begins a recording waits for that. The release is put off until then. A default stream is that of a
context, so that is remembered, too, and kept if it is a green one: a driver may not survive a context that is no more.
One that others have destroyed has nothing to wait for, if the driver says so.
"""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_STREAM_CAPTURE_STATUS_NONE, CUDA_ERROR_NOT_READY, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_SUCCESS, CUcontext,
    CUresult, CUstreamCaptureStatus, check, cu,
)
from cupola.core.device._context cimport current_context, enter_if_there, green_of, is_gone, leave, resets
from cupola.core.device._stream cimport StreamHandle
from cupola.core.device._stream_order cimport Awaited, begin_wait, end_wait

cimport cython

cdef enum:
    MANY = 8        # readers, from which on those are forgotten who are done


# The fields stay when the garbage collector breaks a cycle: the memory is freed at the very end.
@cython.final
@cython.no_gc_clear
cdef class User:
    pass


@cython.final
@cython.no_gc_clear
cdef class Users:

    cdef int before(self, StreamHandle stream, bint writes) except -1:
        """Let work that `stream` gets now wait for what it must not overtake."""
        cdef User writer = None, own = None, one
        cdef tuple readers
        cdef list done
        with cython.critical_section(self):
            writer, readers = self.writer, self.readers
        if writer is not None and _is(writer, stream):
            own = writer
        for one in readers:
            if _is(one, stream):
                own = one
        if own is not None and not writes:
            return 0                    # it has waited for what was written
        if own is None:
            own = _user(stream, NULL, resets)
        if writer is not None and own is not writer:
            _wait(writer, stream)       # which may have read, too
        done = []
        if writes:
            for one in readers:
                if one is not own:
                    _wait(one, stream)
            done.extend(readers)
        elif len(readers) >= MANY:
            done = [one for one in readers if _is_done(one)]
        # Other threads may have come meanwhile: they stay.
        with cython.critical_section(self):
            readers = tuple([one for one in self.readers if one not in done])
            if writes:
                self.writer, self.readers = own, readers
            else:
                self.readers = (*readers, own)
        return 0

    cdef bint before_release(self, StreamHandle stream) except -1:
        """Let `stream`, which releases the memory next, wait for all who use it.

        False: that cannot be, as one of them is being recorded, or `stream` is. A wait would end the recording.
        """
        cdef User one
        cdef list others = [one for one in self.all() if not _is(one, stream) and not _has_gone(one)]
        if not others:
            return True
        if is_recorded(stream):
            return False
        for one in others:
            if _is_recorded(one):
                return False
        for one in others:
            _wait(one, stream)
        return True

    cdef bint is_busy(self) except -1:
        """Whether work is left that uses the memory, or that nobody can tell."""
        cdef User one
        for one in self.all():
            if not _is_done(one):
                return True
        return False

    cdef int sync(self) except -1:
        """Wait for all who use the memory."""
        cdef User one
        for one in self.all():
            _sync(one)
        return 0

    cdef tuple all(self):
        cdef User writer
        cdef tuple readers
        with cython.critical_section(self):
            writer, readers = self.writer, self.readers
        return readers if writer is None else (writer, *readers)


cdef Users begin_users(StreamHandle stream, CUcontext context, unsigned long born):
    cdef Users made = Users.__new__(Users)
    made.readers = ()
    if stream is not None:
        made.writer = _user(stream, context, born)
    return made


cdef User _user(StreamHandle stream, CUcontext context, unsigned long born):
    cdef User made = User.__new__(User)
    made.stream, made.context, made.born = stream, context, born
    if context == NULL and <uintptr_t>stream.pointer <= 2:
        made.context = current_context()
    if made.context != NULL:
        made.green = green_of(made.context)
    return made


cdef bint _is(User one, StreamHandle stream) noexcept:
    return one.stream is stream and (one.context == NULL or one.context == current_context())


cdef bint _has_gone(User one) noexcept:
    return is_gone(one.context if one.context != NULL else one.stream.context, one.born)


cdef bint is_recorded(StreamHandle stream) noexcept:
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef CUresult status = cu.cuStreamIsCapturing(stream.pointer, &capture)
    if status == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:    # the default stream, while another one is recorded
        return True
    return status == CUDA_SUCCESS and capture != CU_STREAM_CAPTURE_STATUS_NONE


cdef bint _is_recorded(User one) except -1:
    cdef int pushed = 0
    if not enter_if_there(one.context, &pushed):
        return False
    try:
        return is_recorded(one.stream)
    finally:
        leave(pushed)


cdef int _wait(User producer, StreamHandle consumer) except -1:
    cdef int pushed = 0
    cdef bint recorded = False
    cdef Awaited awaited
    if _has_gone(producer) or not enter_if_there(producer.context, &pushed):
        return 0
    try:
        if not is_recorded(producer.stream):
            recorded = begin_wait(producer.stream.pointer, &awaited)
    finally:
        leave(pushed)
    if recorded:
        end_wait(&awaited, consumer.pointer)    # a default stream is that of the context that is current now
    return 0


cdef bint _is_done(User one) except -1:
    """Whether nothing of the stream's work is left. To ask a stream that is recorded would end the recording."""
    cdef int pushed = 0
    if _has_gone(one) or not enter_if_there(one.context, &pushed):
        return True
    try:
        return not is_recorded(one.stream) and cu.cuStreamQuery(one.stream.pointer) == CUDA_SUCCESS
    finally:
        leave(pushed)


cdef int _sync(User one) except -1:
    cdef CUresult status
    cdef int pushed = 0
    if _has_gone(one) or not enter_if_there(one.context, &pushed):
        return 0
    try:
        if is_recorded(one.stream):
            return 0
        status = cu.cuStreamQuery(one.stream.pointer)
        if status == CUDA_ERROR_NOT_READY:
            with nogil:
                status = cu.cuStreamSynchronize(one.stream.pointer)
        check(status, b"cuStreamSynchronize")
    finally:
        leave(pushed)
    return 0
