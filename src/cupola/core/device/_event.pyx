"""Events: points in the work of a stream, to wait for and to time between."""

import warnings

from cpython.pystate cimport PyThreadState
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from cupola.core.device._context cimport current_context, enter, green_of, is_gone, leave, primary_context, resets, wrap_context
from cupola.core.base._cuda cimport (
    CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CU_EVENT_BLOCKING_SYNC,
    CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS, CUcontext, CUdevice, CUevent, CUipcEventHandle, CUresult, CUstream,
    check, closed_error, cu, driver_module,
    driver_usable, factory_error, gone_error, initialise
)
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.base._shared cimport close_uses
from cupola.core.device._green cimport GreenContext
from cupola.core.device._later cimport after_destroy, in_host_function

from cupola.core.base._options import as_options
from cupola._above import above
from cupola.core.base._cuda import put_up_signs
from cupola.core.base._errors import CUDAError

cimport cython


# Not tracked by the garbage collector: an event is never part of a reference cycle.
@cython.no_gc
@cython.freelist(16)
cdef class Event:
    """A point in the work of a stream (``CUevent``).

    Make it with :meth:`Device.create_event` or :meth:`Stream.record`; the point is set by recording the event in
    a stream. The difference of two recorded events that have timing enabled is the milliseconds between them.

    Notes
    -----
    Threads may share it, and any of them may close it: calls that have begun end as usual.

    Examples
    --------
    >>> begin = stream.record(options={"timing_enabled": True})
    >>> launch(stream, config, kernel)
    >>> end = stream.record(options={"timing_enabled": True})
    >>> end.sync()
    >>> end - begin
    0.0213
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("Event", "Device.create_event() or Stream.record()")

    def __dealloc__(self):
        _close(self)

    cdef int refuse(self) except -1:
        raise closed_error(self) if self.pointer == NULL else gone_error(self)

    cdef void destroy(self, CUevent pointer) noexcept:
        """What closing leaves to the last call that uses the native event."""
        shared = self.shared
        if shared is not None:
            self.shared = None      # and who was that lets go of it, behind this
        elif driver_usable() and not is_gone(self.context, self.born):
            _destroy_native(pointer, self.context, self.born)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Destroy the event (``cuEventDestroy``); idempotent. Work that waits for it already is not affected."""
        _close(self)

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.pointer == NULL

    @property
    def handle(self):
        """cupola.bindings.driver.CUevent: the native handle, 0 once closed."""
        return driver_module.CUevent(<uintptr_t>self.pointer)

    @property
    def is_timing_enabled(self):
        """bool: whether the event records the time."""
        self.open_pointer()
        return self.timing

    @property
    def is_blocking_sync(self):
        """bool: whether :meth:`sync` sleeps instead of spinning."""
        self.open_pointer()
        return self.blocking

    @property
    def is_ipc_enabled(self):
        """bool: whether other processes may wait for the event."""
        self.open_pointer()
        return self.ipc

    @property
    @cython.critical_section
    def ipc_descriptor(self):
        """IPCEventDescriptor: with it another process opens the event (``cuIpcGetEventHandle``).

        Raises
        ------
        RuntimeError
            The event was not recorded with ``ipc_enabled=True``, or is closed.
        """
        cdef CUipcEventHandle handle
        cdef CUevent pointer
        cdef CUresult status
        cdef int pushed
        self.open_pointer()
        if not self.ipc:
            raise RuntimeError(
                "the Event is not shared between processes: record one with stream.record(options={'ipc_enabled': True})"
            )
        if self.descriptor is None:
            from cupola.core.device._event_ipc import event_descriptor

            pushed = enter(self.context)    # a GPU's driver crashes where another device's is current
            try:
                pointer = self.begin()
                with nogil:
                    status = cu.cuIpcGetEventHandle(&handle, pointer)
                self.end(pointer)
            finally:
                leave(pushed)
            check(status, b"cuIpcGetEventHandle")
            self.descriptor = event_descriptor((<char*>&handle)[:sizeof(handle)], self.blocking)
        return self.descriptor

    def get_ipc_descriptor(self):
        """Older spelling of :attr:`ipc_descriptor`.

        Returns
        -------
        IPCEventDescriptor
        """
        warnings.warn("get_ipc_descriptor() is now the property ipc_descriptor", DeprecationWarning, stacklevel=1)
        return self.ipc_descriptor

    @classmethod
    def from_ipc_descriptor(cls, descriptor):
        """Open an event of another process, in the current context (``cuIpcOpenEventHandle``).

        That process must keep the event as long as this one is open.

        Parameters
        ----------
        descriptor : IPCEventDescriptor
            The ``ipc_descriptor`` of the event there.

        Returns
        -------
        Event

        Raises
        ------
        TypeError
            `descriptor` is something else.
        ValueError
            It has too few bytes.
        RuntimeError
            The driver cannot open the event, for example because it belongs to this process, or no context is current.
        """
        from cupola.core.device._event_ipc import IPCEventDescriptor, check_payload

        if not isinstance(descriptor, IPCEventDescriptor):
            raise TypeError(f"descriptor must be an IPCEventDescriptor, not {type(descriptor).__name__}")
        return _open(check_payload(descriptor), descriptor)

    @property
    def device(self):
        """Device: where the event was made."""
        self.open_pointer()
        return above("Device")(self.device_id)

    @property
    def context(self):
        """Context: the context that the event was made in."""
        self.open_pointer()
        return wrap_context(self.context)

    @property
    def is_done(self):
        """bool: whether the work before the event is complete; True if never recorded (``cuEventQuery``)."""
        cdef CUevent pointer = self.begin()
        cdef CUresult status = cu.cuEventQuery(pointer)
        self.end(pointer)
        if status == CUDA_ERROR_NOT_READY:
            return False
        check(status, b"cuEventQuery")
        return True

    def sync(self):
        """Wait until the work before the event is complete (``cuEventSynchronize``).

        Raises
        ------
        CUDAError
            That work, or other work in the context, failed.
        """
        cdef CUevent pointer = self.begin()
        cdef CUresult status
        with nogil:
            status = cu.cuEventSynchronize(pointer)
        self.end(pointer)
        check(status, b"cuEventSynchronize")

    def __sub__(self, other):
        """Milliseconds from `other` to this event, as a float (``cuEventElapsedTime``).

        Raises
        ------
        RuntimeError
            One of them has no timing, was not recorded, is not complete yet, or is closed.
        """
        if not isinstance(self, Event) or not isinstance(other, Event):
            return NotImplemented
        return _elapsed(<Event>other, <Event>self)

    def __eq__(self, other):
        if not isinstance(other, Event):
            return NotImplemented
        # A closed object equals only itself: a new object may get its address.
        return self is other or (self.pointer != NULL and self.pointer == (<Event>other).pointer)

    def __hash__(self):
        if self.known_hash == 0:        # else it stays, also when the event is closed
            self.known_hash = hash(<uintptr_t>self.pointer)
        return self.known_hash

    def __repr__(self):
        return f"<Event handle={<uintptr_t>self.pointer:#x}>"

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def __reduce__(self):
        if self.ipc:
            raise TypeError("multiprocessing passes an Event to another process; it cannot be pickled or copied otherwise")
        raise TypeError("an Event belongs to this process: it cannot be pickled or copied")


def import_event(descriptor, int device_id):
    """Open an event from multiprocessing, in the primary context of its device if no context is current."""
    cdef CUcontext context
    cdef int pushed
    initialise()
    context = current_context()
    if context == NULL:
        context = primary_context(device_id)
    pushed = enter(context)
    try:
        return Event.from_ipc_descriptor(descriptor)
    finally:
        leave(pushed)


cdef Event _open(bytes payload, object descriptor):
    cdef CUipcEventHandle handle
    cdef CUevent pointer = NULL
    cdef CUresult status
    cdef Event event
    memcpy(&handle, <const char*>payload, sizeof(handle))
    initialise()
    if current_context() == NULL:
        raise RuntimeError("an event needs a current context: call Device.set_current() on this thread first")
    with nogil:
        status = cu.cuIpcOpenEventHandle(&pointer, handle)
    try:
        check(status, b"cuIpcOpenEventHandle")
    except CUDAError as error:
        raise RuntimeError(f"failed to open the event of another process: {error}") from error
    event = foreign_event(pointer, None)
    event.ipc, event.blocking, event.descriptor = True, descriptor._blocking, descriptor
    return event


cdef void _close(Event event) noexcept:
    cdef CUevent pointer = event.pointer
    event.pointer = NULL
    if pointer != NULL and close_uses(&event.uses):
        event.destroy(pointer)


cdef void _destroy_native(CUevent pointer, CUcontext context, unsigned long born) noexcept:
    cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
    cdef PyThreadState* others
    if not in_host_function():
        others = let_others_run()
        status = cu.cuEventDestroy(pointer)
        take_back(others)
    if status != CUDA_SUCCESS:
        after_destroy(status, _destroy_again, pointer, b"cuEventDestroy", context, born)


cdef CUresult _destroy_again(void* event) noexcept nogil:
    return cu.cuEventDestroy(<CUevent>event)


cdef class SharedEvent:
    def __dealloc__(self):
        if driver_usable() and not is_gone(self.context, self.born):
            _destroy_native(self.pointer, self.context, self.born)


cdef object share_event(Event event):
    cdef SharedEvent shared
    cdef CUevent pointer = event.begin()
    with cython.critical_section(event):
        found = event.shared
        if found is None:
            shared = SharedEvent.__new__(SharedEvent)
            shared.pointer, shared.context, shared.born = pointer, event.context, event.born
            shared.device_id, shared.timing, shared.blocking = event.device_id, event.timing, event.blocking
            shared.green = event.green
            event.shared = found = shared
    event.end(pointer)
    return found


cdef Event shared_event(SharedEvent shared):
    cdef Event event = Event.__new__(Event)
    event.pointer, event.context, event.born = shared.pointer, shared.context, shared.born
    event.device_id, event.timing, event.blocking = shared.device_id, shared.timing, shared.blocking
    event.shared = shared
    return event


cdef Event foreign_event(CUevent pointer, object owner):
    cdef Event event = Event.__new__(Event)
    cdef CUdevice device = 0
    event.pointer, event.context, event.born, event.shared = pointer, current_context(), resets, owner
    if event.context != NULL:
        check(cu.cuCtxGetDevice(&device), b"cuCtxGetDevice")
    event.device_id = device
    return event


cdef object _elapsed(Event start, Event end):
    cdef CUevent first, last
    cdef float milliseconds = 0
    cdef CUresult status
    start.open_pointer()
    end.open_pointer()
    if not (start.timing and end.timing):
        raise RuntimeError(
            "both events need timing to measure the time between them: make them with "
            "EventOptions(timing_enabled=True)"
        )
    first = start.begin()
    try:
        last = end.begin()
    except:
        start.end(first)
        raise
    status = cu.cuEventElapsedTime(&milliseconds, first, last)
    start.end(first)
    end.end(last)
    if status == CUDA_ERROR_INVALID_HANDLE:
        raise RuntimeError("record both events in a stream before asking for the time between them")
    if status == CUDA_ERROR_NOT_READY:
        raise RuntimeError("the work before one of the events has not completed: call sync() on the later one first")
    check(status, b"cuEventElapsedTime")
    return milliseconds


cdef int record_event(Event event, CUstream stream) except -1:
    cdef CUevent pointer = event.begin()
    cdef CUresult status
    cdef PyThreadState* others
    if event.timing or event.blocking or event.ipc or event.shared is not None:
        # Recording the time takes a place in the stream's queue, which may be full, and so may the signal that wakes a
        # host thread. An event from elsewhere may have timing.
        with nogil:
            status = cu.cuEventRecord(pointer, stream)
    else:
        others = let_others_run()
        status = cu.cuEventRecord(pointer, stream)
        take_back(others)
    event.end(pointer)
    return check(status, b"cuEventRecord")


cdef Event new_event(CUcontext context, bint timing, bint blocking):
    return _create(
        context, timing, blocking,
        (0 if timing else CU_EVENT_DISABLE_TIMING) | (CU_EVENT_BLOCKING_SYNC if blocking else 0),
    )


cdef Event _create(CUcontext context, bint timing, bint blocking, unsigned int flags):
    cdef Event event = Event.__new__(Event)
    cdef CUevent pointer = NULL
    cdef CUdevice device = 0
    cdef int pushed = 0
    cdef CUresult status
    cdef PyThreadState* others
    cdef CUcontext made_in = context
    if context == NULL:
        context = current_context()
        if context == NULL:
            raise RuntimeError("an event needs a current context: call Device.set_current() on this thread first")
    green = green_of(context)
    if green is not None:       # its owner is mostly current already
        pushed = enter((<GreenContext>green).owner)
    elif made_in != NULL:
        pushed = enter(context)
    try:
        check(cu.cuCtxGetDevice(&device), b"cuCtxGetDevice")
        others = let_others_run()
        status = cu.cuEventCreate(&pointer, flags)
        take_back(others)
    finally:
        leave(pushed)
    check(status, b"cuEventCreate")
    event.pointer = pointer
    event.context = context
    event.born = resets
    event.device_id = device
    event.timing = timing
    event.blocking = blocking
    event.green = green
    return event


cdef Event event_from_options(CUcontext context, object options, dict keywords, bint in_stream=False):
    cdef Event event
    if options is None and not keywords:
        return new_event(context, False, False)
    from cupola.core.device._options import EventOptions
    chosen = as_options(EventOptions, options, keywords)
    chosen._check()
    if chosen.ipc_enabled:
        if not in_stream:
            raise TypeError("an event with ipc_enabled comes from stream.record(options=...), which records it at once")
        if chosen.timing_enabled:
            raise TypeError(
                "an event that processes share cannot have timing: leave out timing_enabled or ipc_enabled"
            )
        from cupola.core.device._event_ipc import let_events_pass
        let_events_pass(Event, import_event)
        event = _create(
            context, False, bool(chosen.blocking_sync),
            CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS | (CU_EVENT_BLOCKING_SYNC if chosen.blocking_sync else 0),
        )
        event.ipc = True
        return event
    return new_event(context, bool(chosen.timing_enabled), bool(chosen.blocking_sync))


put_up_signs(Event)
