"""Streams: queues of work of a device, made by cupola or by other libraries."""

import warnings

from cpython.object cimport PyObject
from cpython.pystate cimport PyThreadState
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport strtol

from cupola.core.device cimport _context
from cupola.core.device._context cimport Context, current_context, enter, green_of, is_gone, leave, resets, wrap_context
from cupola.core.base._cuda cimport (
    CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING, CUcontext, CUdevice, CUevent, CUresult,
    CUstream,
    check, closed_error, cu, driver_module, driver_usable, factory_error, gone_error,
)
from cupola.core.device._event cimport Event, event_from_options, new_event, record_event
from cupola.core.base._gil cimport let_others_run, take_back
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._green cimport GreenContext
from cupola.core.device._later cimport after_destroy, in_host_function

from cupola.core.base._options import as_options
from cupola._above import above
from cupola.core.base._cuda import put_up_signs

cimport cython


cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>

    static _Thread_local PyObject *cupola_streams;      /* a list of those in whose blocks the thread is, or NULL */

    #define CUPOLA_PER_THREAD "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"

    #ifdef Py_GIL_DISABLED
    static const char *cupola_per_thread(void) { return getenv(CUPOLA_PER_THREAD); }
    #else
    /* getenv() compares all names. The environment is the one of last time if all its entries are. */
    enum { CUPOLA_ENTRIES = 256 };
    extern char **environ;
    static char **cupola_environment;       /* NULL: none is known */
    static char *cupola_entries[CUPOLA_ENTRIES];
    static size_t cupola_entries_size;      /* in bytes, with the NULL that ends them */
    static const char *cupola_text;

    static const char *cupola_per_thread(void)
    {
        size_t count = 0;
        if (cupola_environment != NULL && environ == cupola_environment
            && memcmp(environ, cupola_entries, cupola_entries_size) == 0)
            return cupola_text;
        cupola_environment = NULL;
        cupola_text = getenv(CUPOLA_PER_THREAD);
        while (environ != NULL && environ[count] != NULL && count < CUPOLA_ENTRIES)
            count++;
        if (environ != NULL && count < CUPOLA_ENTRIES) {
            cupola_entries_size = (count + 1) * sizeof(char *);
            memcpy(cupola_entries, environ, cupola_entries_size);
            cupola_environment = environ;
        }
        return cupola_text;
    }
    #endif
    """
    PyObject* cupola_streams
    const char* cupola_per_thread()         # the value of the environment variable now, or NULL


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        const char* tp_name
        unsigned long tp_flags
    enum:
        Py_TPFLAGS_HEAPTYPE
    void PyType_Modified(PyTypeObject* kind)


def call_streams_of_cuda_core():
    """From here on the module of the class `Stream` is ``cuda.core``.

    nvmath-python and others tell by the name of that module which package a stream is of. An extension type keeps it in
    its full name.
    """
    cdef PyTypeObject* kind = <PyTypeObject*>Stream
    if not kind.tp_flags & Py_TPFLAGS_HEAPTYPE:
        kind.tp_name = b"cuda.core.Stream"
        PyType_Modified(kind)


cdef CUresult _destroy(void* stream) noexcept nogil:
    return cu.cuStreamDestroy(<CUstream>stream)


cdef unsigned long long _serials = 0
cdef object _counting = object()


@cython.freelist(8)
cdef class StreamHandle:
    def __cinit__(self):
        global _serials
        self.born = resets
        with cython.critical_section(_counting):
            _serials += 1
            self.serial = _serials

    def __dealloc__(self):
        cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
        cdef PyThreadState* others
        if self.owned and self.pointer != NULL and driver_usable() and not self.is_gone():
            if not in_host_function():
                others = let_others_run()
                status = cu.cuStreamDestroy(self.pointer)
                take_back(others)
            if status != CUDA_SUCCESS:
                after_destroy(status, _destroy, self.pointer, b"cuStreamDestroy", self.context, self.born)

    cdef bint is_gone(self) noexcept:
        return is_gone(self.context, self.born)


@cython.freelist(8)
cdef class Stream:
    """A queue of work on a device (``CUstream``): its entries run in order, beside those of other streams.

    Make it with :meth:`Device.create_stream`, which also wraps the streams of other libraries. :meth:`wait` accepts
    any object with ``__cuda_stream__()``, and a Stream has that method, too.

    Notes
    -----
    Threads may share it, and any of them may close it: calls that have begun end as usual. What two threads queue comes in
    one order or the other.

    Examples
    --------
    >>> copies = dev.create_stream(priority=0)
    >>> buffer.fill(0, stream=copies)
    >>> stream.wait(copies)
    >>> stream.sync()
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("Stream", "Device.create_stream() or Stream.from_handle()")

    cdef StreamHandle open_handle(self):
        return self.hold()

    cdef int refuse(self) except -1:
        raise closed_error(self) if self.known_handle() is None else gone_error(self)

    cdef CUcontext find_context(self) except NULL:
        return _context_of(self.hold())

    cdef int find_device(self) except -1:
        cdef int pushed = enter(self.find_context())
        cdef CUdevice device = 0
        cdef CUresult status
        try:
            status = cu.cuCtxGetDevice(&device)
        finally:
            leave(pushed)
        check(status, b"cuCtxGetDevice")
        return device

    @staticmethod
    @cython.binding(True)
    def from_handle(handle):
        """Wrap the address of a ``CUstream`` that another library owns and keeps alive.

        Parameters
        ----------
        handle : int
            The address, or an object that converts to it; 0 and 1 are the legacy default stream, 2 is the
            per-thread one.

        Returns
        -------
        Stream
            Closing it does not destroy the native stream.

        Raises
        ------
        TypeError
            It is not a number.
        OverflowError
            It is negative.
        """
        cdef StreamHandle native = StreamHandle.__new__(StreamHandle)
        native.pointer = <CUstream><uintptr_t>handle
        return new_stream(native)

    def close(self):
        """Close the stream; idempotent.

        A stream that cupola made is destroyed (``cuStreamDestroy``) when nothing else needs it; a buffer that is freed
        in its order does. Queued work still completes.
        """
        cdef Alone alone
        cdef StreamHandle native        # let go of at the end, which may let other threads run
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        self.native = None
        self.pointer = NULL
        end_alone(&alone)

    def __enter__(self):
        """The stream becomes the one of calls without a stream on this thread: those of arrays, and ``kernel[grid, block]``."""
        enter_stream(self)
        return self

    def __exit__(self, kind, error, trace):
        """Wait for the work and close the stream. Behind an exception it is only closed."""
        leave_stream(self)
        try:
            if kind is None and self.native is not None:
                self.sync()
        finally:
            self.close()

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.native is None

    @property
    def handle(self):
        """cupola.bindings.driver.CUstream: the native handle, 0 once closed."""
        return driver_module.CUstream(<uintptr_t>self.pointer)

    def __cuda_stream__(self):
        """tuple of (int, int): the version of this protocol, 0, and the address, for other libraries."""
        return 0, <uintptr_t>self.open_handle().pointer

    @property
    def is_nonblocking(self):
        """bool: whether the stream does not synchronize with the legacy default stream (``cuStreamGetFlags``)."""
        cdef StreamHandle native = self.hold()
        cdef unsigned int flags = 0
        if self.nonblocking < 0:
            check(cu.cuStreamGetFlags(native.pointer, &flags), b"cuStreamGetFlags")
            self.nonblocking = (flags & CU_STREAM_NON_BLOCKING) != 0
        return self.nonblocking != 0

    @property
    def priority(self):
        """int: lower numbers run first (``cuStreamGetPriority``)."""
        cdef StreamHandle native = self.hold()
        cdef int priority = 0
        with cython.critical_section(self):
            if self.level is None:
                check(cu.cuStreamGetPriority(native.pointer, &priority), b"cuStreamGetPriority")
                self.level = priority
            return self.level

    @property
    def device(self):
        """Device: the device that the stream's work runs on."""
        cdef int device_id = self.find_device()
        return above("Device")(device_id)

    @property
    def context(self):
        """Context: the context of the stream; the caller's current one for the default streams."""
        return wrap_context(self.find_context())

    @property
    def resources(self):
        """DeviceResources: what of the device the stream's kernels may use: all, or the part of a green context."""
        from cupola.core.device._resources import resources_of_context

        return resources_of_context(self.context)

    def sync(self):
        """Wait until all work queued so far is complete (``cuStreamSynchronize``).

        Raises
        ------
        CUDAError
            That work, or other work in the context, failed.
        """
        cdef StreamHandle native = self.hold()
        cdef CUstream pointer = native.pointer
        cdef CUresult status
        with nogil:
            status = cu.cuStreamSynchronize(pointer)
        check(status, b"cuStreamSynchronize")

    def record(self, event=None, options=None, *, timing_enabled=False, blocking_sync=False, ipc_enabled=False):
        """Record an event behind the work queued so far (``cuEventRecord``).

        Parameters
        ----------
        event : Event, optional
            Recorded again; None makes a new event.
        options : EventOptions or dict, optional
            For the new event; ignored when there is an `event`.
        timing_enabled, blocking_sync, ipc_enabled : bool, optional
            The fields of `options`, as keywords.

        Returns
        -------
        Event
            The event; `event` itself if given.

        Raises
        ------
        TypeError
            `event` is not an Event or is shared between processes, or an option is unknown.
        RuntimeError
            The stream or the event is closed.
        """
        cdef StreamHandle native
        cdef Event recorded
        cdef dict keywords = None       # not from Python, which would make one for each call
        self.require_open()
        if event is None:
            if timing_enabled is not False or blocking_sync is not False or ipc_enabled is not False:
                keywords = {
                    "timing_enabled": timing_enabled, "blocking_sync": blocking_sync, "ipc_enabled": ipc_enabled
                }
            recorded = event_from_options(self.find_context(), options, keywords, True)
        elif isinstance(event, Event):
            recorded = <Event>event
            if recorded.ipc:
                raise TypeError("an event that processes share can be recorded only once: record a new one")
        else:
            raise TypeError(f"event must be an Event or None, not {type(event).__name__}")
        native = self.hold()
        record_event(recorded, native.pointer)
        return recorded

    def wait(self, event_or_stream):
        """Make later work in this stream wait for an event, or for the work in another stream.

        The host does not wait (``cuStreamWaitEvent``).

        Parameters
        ----------
        event_or_stream : Event, Stream or object with ``__cuda_stream__()``
            For a stream, the wait is for the work that is queued in it now. An event that was never recorded causes no
            wait.

        Raises
        ------
        ValueError
            It is none of these, or its ``__cuda_stream__()`` does not follow the protocol.
        RuntimeError
            The stream, or the object that it should wait for, is closed.
        """
        cdef StreamHandle native, awaited
        cdef Event event
        cdef Stream other
        cdef CUevent target
        cdef CUresult status
        cdef PyThreadState* others
        self.require_open()
        if isinstance(event_or_stream, Event):
            event = <Event>event_or_stream
        else:
            if isinstance(event_or_stream, Stream):
                other = <Stream>event_or_stream
            elif hasattr(type(event_or_stream), "__cuda_stream__") or hasattr(event_or_stream, "__cuda_stream__"):
                other = _waited(event_or_stream)
            else:
                raise ValueError(
                    "wait() takes an Event, a Stream or an object with __cuda_stream__(), "
                    f"not {type(event_or_stream).__name__}"
                )
            event = new_event(other.find_context(), False, False)
            awaited = other.hold()
            turn = None
            if type(event_or_stream) is not Stream:
                turn = begin_recording(event_or_stream, ())
            try:
                record_event(event, awaited.pointer)
            finally:
                end_recording(turn)
        native = self.hold()
        target = event.begin()
        others = let_others_run()
        status = cu.cuStreamWaitEvent(native.pointer, target, 0)
        take_back(others)
        event.end(target)
        check(status, b"cuStreamWaitEvent")

    def create_graph_builder(self):
        """Make a builder that captures this stream.

        Returns
        -------
        cupola.graph.GraphBuilder
            Call its ``begin_building()`` next.

        Raises
        ------
        RuntimeError
            The stream is closed.
        """
        self.open_handle()
        return above("GraphBuilder")._from_stream(self)

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        # A closed object equals only itself: a new object may get its address.
        return self is other or (
            self.native is not None and (<Stream>other).native is not None and self.pointer == (<Stream>other).pointer
        )

    def __hash__(self):
        if self.known_hash == 0:        # else it stays, also when the stream is closed
            self.known_hash = hash(<uintptr_t>self.pointer)
        return self.known_hash

    def __repr__(self):
        cdef CUcontext context = NULL
        cdef StreamHandle native = self.known_handle()
        if native is not None and not native.is_gone() and (
            not _is_default(native.pointer) or current_context() != NULL
        ):
            context = _context_of(native)
        return f"<Stream handle={<uintptr_t>self.pointer:#x} context={<uintptr_t>context:#x}>"

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def __reduce__(self):
        raise TypeError("a Stream belongs to this process: it cannot be pickled or copied")


cdef CUcontext _context_of(StreamHandle native) except NULL:
    cdef CUcontext context = native.context
    cdef CUresult status
    if context != NULL:
        return context
    if _is_default(native.pointer):
        context = current_context()
        if context == NULL:
            raise RuntimeError(
                "a default stream belongs to the current context, and none is current on this thread: "
                "call Device.set_current() first"
            )
        return context
    status = cu.cuStreamGetCtx(native.pointer, &context)
    check(status, b"cuStreamGetCtx")
    native.context = context
    return context


cdef bint _is_default(CUstream pointer) noexcept:
    return <uintptr_t>pointer <= 2      # NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD


cdef Stream new_stream(StreamHandle native):
    cdef Stream stream = Stream.__new__(Stream)
    stream.pointer = native.pointer
    stream.native = native
    stream.nonblocking = -1
    return stream


cdef Stream _default_stream_token(uintptr_t value):
    cdef Stream stream = Stream.from_handle(value)
    stream.nonblocking = 0
    stream.level = 0
    return stream


cdef Stream create_stream(CUcontext context, object options, object nonblocking, object priority):
    cdef CUstream pointer = NULL
    cdef unsigned int flags = CU_STREAM_NON_BLOCKING
    cdef int least = 0
    cdef int greatest = 0
    cdef int level = 0      # the lowest, on every device
    cdef CUresult status
    cdef GreenContext green = green_of(context)
    cdef int pushed
    cdef PyThreadState* others
    if options is not None or nonblocking is not True or priority is not None:
        from cupola.core.device._options import StreamOptions
        keywords = None
        if nonblocking is not True or priority is not None:
            keywords = {"nonblocking": nonblocking, "priority": priority}
        chosen = as_options(StreamOptions, options, keywords)
        flags = CU_STREAM_NON_BLOCKING if chosen.nonblocking else CU_STREAM_DEFAULT
        priority = chosen.priority
        if green is not None and flags != CU_STREAM_NON_BLOCKING:
            raise ValueError("streams of a green context are non-blocking: leave out nonblocking=False")
    if green is not None and priority is None:
        return _green_stream(green)
    pushed = enter(context)
    try:
        if priority is not None:
            level = priority
            check(cu.cuCtxGetStreamPriorityRange(&least, &greatest), b"cuCtxGetStreamPriorityRange")
            if not greatest <= level <= least:
                raise ValueError(f"priority must be within [{greatest}, {least}], got {level}")
        if green is None:
            others = let_others_run()
            status = cu.cuStreamCreateWithPriority(&pointer, flags, level)
            take_back(others)
    finally:
        leave(pushed)
    if green is not None:
        return _green_stream(green, level)
    check(status, b"cuStreamCreateWithPriority")
    return _own_stream(pointer, context, None, flags, level)


cdef Stream _own_stream(CUstream pointer, CUcontext context, GreenContext green, unsigned int flags, int level):
    cdef StreamHandle native = StreamHandle.__new__(StreamHandle)
    cdef Stream stream
    native.pointer = pointer
    native.context = context
    native.owned = True
    native.owner = green
    stream = new_stream(native)
    stream.nonblocking = flags == CU_STREAM_NON_BLOCKING
    stream.level = level
    return stream


cdef Stream _green_stream(GreenContext green, int level=0):
    cdef CUstream pointer = NULL
    cdef CUresult status
    cdef PyThreadState* others = let_others_run()
    status = cu.cuGreenCtxStreamCreate(&pointer, green.pointer, CU_STREAM_NON_BLOCKING, level)
    take_back(others)
    check(status, b"cuGreenCtxStreamCreate")
    return _own_stream(pointer, green.context, green, CU_STREAM_NON_BLOCKING, level)


cdef object _stream_of_green_context(CUcontext context, object green, object options):
    if options is None:
        return _green_stream(<GreenContext>green)
    return create_stream(context, options, True, None)


_context.green_stream = _stream_of_green_context


cdef Stream foreign_stream(object owner):
    cdef StreamHandle native
    if isinstance(owner, Stream):
        return new_stream((<Stream>owner).open_handle())  # which closing the other does not destroy
    try:
        found = owner.__cuda_stream__
    except AttributeError:
        raise TypeError(
            f"{type(owner).__name__} is not a stream: it has no __cuda_stream__() method; "
            "Stream.from_handle(address) wraps an address"
        ) from None
    if callable(found):
        found = found()
    else:
        warnings.warn(
            "__cuda_stream__ should be a method that returns (0, address), not an attribute", DeprecationWarning,
            stacklevel=1,
        )
    try:
        length = len(found)
    except TypeError:
        length = -1
    if length != 2:
        raise RuntimeError(f"__cuda_stream__() must return the pair (0, address), got {found!r}")
    version, address = found
    if version != 0:
        raise RuntimeError(f"version {version!r} of __cuda_stream__ is not supported, only version 0")
    native = StreamHandle.__new__(StreamHandle)
    native.pointer = <CUstream><uintptr_t>address
    native.owner = owner
    return new_stream(native)


cdef class Recorder:
    cdef Stream recorded_stream(self):
        raise NotImplementedError

    cdef int keep_operands(self, object operands) except -1:
        raise NotImplementedError


cdef Stream _waited(object owner):
    """Wrap the argument of :meth:`Stream.wait`; any error in its ``__cuda_stream__`` is a ValueError there."""
    try:
        return foreign_stream(owner)
    except Exception as error:
        raise ValueError(f"wait() cannot take the {type(owner).__name__}: {str(error) or repr(error)}") from error


cdef Stream other_stream_argument(object stream):
    cdef Stream found
    if isinstance(stream, Stream):
        found = <Stream>stream
        found.open_handle()
        return found
    if stream is None:
        raise TypeError("a stream is required; device.default_stream is one")
    if isinstance(stream, Recorder):
        found = (<Recorder>stream).recorded_stream()
        if found is None:
            raise closed_error(stream)
        return found
    if isinstance(stream, int):
        advice = "Stream.from_handle(address) wraps an address"
    elif hasattr(stream, "create_stream"):
        advice = "make one with device.create_stream(), or use device.default_stream"
    else:
        advice = "Device.create_stream(obj) wraps the stream of another library"
    raise TypeError(f"Stream or GraphBuilder expected, got {type(stream).__name__}; {advice}")


cdef object older_stream(object older, object stream, str call):
    if stream is not None:
        raise TypeError(f"the stream is given twice: write {call}, stream=stream)")
    warnings.warn(f"{call}, stream) is now {call}, stream=stream)", DeprecationWarning, stacklevel=1)
    return older


cdef object begin_recording(object stream, tuple operands):
    cdef Recorder recorder
    if not isinstance(stream, Recorder):
        return None
    recorder = <Recorder>stream
    recorder.turn.acquire()
    try:
        recorder.keep_operands(operands)
    except BaseException:
        recorder.turn.release()
        raise
    return recorder.turn


cdef int end_recording(object turn) except -1:
    if turn is not None:
        turn.release()
    return 0


LEGACY_DEFAULT_STREAM = _default_stream_token(1)
PER_THREAD_DEFAULT_STREAM = _default_stream_token(2)

cdef Stream _legacy = LEGACY_DEFAULT_STREAM
cdef Stream _per_thread = PER_THREAD_DEFAULT_STREAM


cdef Stream default_stream():
    cdef const char* text = cupola_per_thread()
    if text != NULL and strtol(text, NULL, 10) != 0:
        return _per_thread
    return _legacy


cdef Stream current_stream():
    return None if cupola_streams == NULL else <Stream>(<list>cupola_streams)[-1]


def enter_stream(Stream stream not None):
    """Make `stream` the one of calls without a stream on this thread, until :func:`leave_stream`."""
    global cupola_streams
    cdef list streams
    stream.require_open()
    if cupola_streams == NULL:
        streams = []
        Py_INCREF(streams)
        cupola_streams = <PyObject*>streams
    (<list>cupola_streams).append(stream)


def leave_stream(Stream stream not None):
    """Take back the last :func:`enter_stream` of `stream` on this thread, if there is one."""
    global cupola_streams
    cdef list streams
    cdef Py_ssize_t i
    if cupola_streams == NULL:
        return
    streams = <list>cupola_streams
    for i in range(len(streams) - 1, -1, -1):
        if streams[i] is stream:      # blocks of generators may end in another order
            del streams[i]
            break
    if not streams:
        cupola_streams = NULL
        Py_DECREF(streams)


def stream_in_force(stream):
    """The stream of a call: `stream` if given, else the current one; else the default one, and that the call must wait.

    Returns
    -------
    tuple of (Stream or Recorder, bool)
        Open.
    """
    if stream is None:
        stream = current_stream()
        if stream is None:
            return default_stream(), True
    stream_argument(stream)
    return stream, False


put_up_signs(Stream)
