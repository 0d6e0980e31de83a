"""Contexts: the primary one of each device, wrappers, and making one current for a few calls."""

from _thread import RLock
from _weakref import ref

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_INITIALIZED, CUDA_SUCCESS, CUcontext,
    CUdevice, CUresult, check, closed_error, cu, driver_module, factory_error, forget_faults
)
from cupola.core.base._shared cimport add_shared

from cupola._above import above
from cupola.core.base._errors import CUDAError

cimport cython


cdef class Context:
    """The state of a device for a process: allocations, modules, streams and events (``CUcontext``).

    Get it from :attr:`Device.context`, :meth:`Device.set_current`, :attr:`Stream.context` or
    :attr:`Event.context`. The primary context of a device, which is the one that ``set_current()`` takes, is
    retained for the life of the process; closing a Context only drops this wrapper.

    A *green* context comes from :meth:`Device.create_context`: kernels of its streams run on a part of the device's
    multiprocessors. It is destroyed when it is closed and what was made in it is gone: its streams and events, and
    the memory that work in its default stream uses.

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("Context", "Device.set_current() and Device.context")

    @property
    def handle(self):
        """cupola.bindings.driver.CUcontext or None: the native handle, None once closed."""
        if self.pointer == NULL:
            return None
        return driver_module.CUcontext(<uintptr_t>self.pointer)

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.pointer == NULL

    @property
    def is_green(self):
        """bool: whether the context was made from part of a device's resources."""
        return self.green is not None

    @property
    def resources(self):
        """DeviceResources: what of the device the context may use, of a green context its part.

        Raises
        ------
        RuntimeError
            The context is closed.
        """
        if self.pointer == NULL:
            raise closed_error(self)
        return above("resources_of_context")(self)

    def create_stream(self, options=None):
        """Make a stream whose kernels run on the part of the device that this green context has.

        The context need not be current (``cuGreenCtxStreamCreate``).

        Parameters
        ----------
        options : StreamOptions or dict, optional
            What it is for. Streams of green contexts are non-blocking.

        Returns
        -------
        Stream
            It keeps the green context.

        Raises
        ------
        RuntimeError
            The context is closed, or is no green one: use :meth:`Device.create_stream` then.
        ValueError
            ``nonblocking=False``, or the priority is outside the device's range.
        """
        cdef CUcontext pointer
        with cython.critical_section(self):
            pointer, green = self.pointer, self.green
        if pointer == NULL:
            raise closed_error(self)
        if green is None:
            raise RuntimeError(
                "Context.create_stream() is for green contexts; in the primary context use Device.create_stream()"
            )
        return green_stream(pointer, green, options)

    @property
    def device(self):
        """Device: the device that the context belongs to."""
        return above("Device")(self.device_id)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Drop this reference to the context; idempotent.

        Raises
        ------
        RuntimeError
            The context is current on the calling thread.
        """
        with cython.critical_section(self):
            if self.pointer == NULL:
                return
            if current_context() == self.pointer:
                raise RuntimeError("Context is current on this thread: make another one current before closing it")
            self.pointer = NULL
            self.green = None

    def __eq__(self, other):
        if not isinstance(other, Context):
            return NotImplemented
        # A closed object equals only itself.
        return self is other or (self.pointer != NULL and self.pointer == (<Context>other).pointer)

    def __hash__(self):
        if self.known_hash == 0:        # else it stays, also when the context is closed
            self.known_hash = hash(<uintptr_t>self.pointer)
        return self.known_hash

    def __repr__(self):
        return f"<Context handle={<uintptr_t>self.pointer:#x} device={self.device_id}>"

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def __reduce__(self):
        raise TypeError("a Context belongs to this process: it cannot be pickled or copied")


cdef Context wrap_context(CUcontext pointer):
    cdef Context context = Context.__new__(Context)
    cdef CUdevice device = 0
    cdef int pushed = enter(pointer)
    cdef CUresult status
    try:
        status = cu.cuCtxGetDevice(&device)
    finally:
        leave(pushed)
    check(status, b"cuCtxGetDevice")
    context.pointer = pointer
    context.device_id = device
    context.green = green_of(pointer)
    return context


# ---- green contexts -------------------------------------------------------------------------------------------------

cdef dict _greens = {}      # address of a green context -> weak reference to what keeps it


cdef object find_green(CUcontext pointer):
    known = _greens.get(<uintptr_t>pointer)
    return None if known is None else known()


cdef int add_green(CUcontext pointer, object keeper) except -1:
    global greens
    _greens[<uintptr_t>pointer] = ref(keeper)
    add_shared(&greens, 1)
    return 0


cdef void remove_green(CUcontext pointer) noexcept:
    global greens
    if _greens.pop(<uintptr_t>pointer, None) is not None:
        add_shared(&greens, -1)


# ---- the current context --------------------------------------------------------------------------------------------


cdef CUcontext current_context() except? NULL:
    cdef CUcontext context = NULL
    cdef CUresult status = cu.cuCtxGetCurrent(&context)
    if status == CUDA_ERROR_NOT_INITIALIZED:
        return NULL
    check(status, b"cuCtxGetCurrent")
    return context


# Retained primary contexts by ordinal; never released: objects of any thread may live in them until the end.
cdef dict _primary = {}
cdef object _retaining = RLock()      # of the reentrant kind: the collector may run anything meanwhile

cdef dict _last_reset = {}      # address of a context -> what `resets` was after its last reset
cdef list _forget = []


cdef CUcontext primary_context(int device_id) except NULL:
    cdef CUcontext context = NULL
    cdef CUresult status
    cdef object known = _primary.get(device_id)
    if known is not None and not _is_inactive(device_id):
        return <CUcontext><uintptr_t>known
    _retaining.acquire()
    try:
        known = _primary.get(device_id)
        if known is not None:
            if not _is_inactive(device_id):     # another thread was faster
                return <CUcontext><uintptr_t>known
            # This must happen before the context exists again, so that no object notes the old count.
            _note_reset(known)
            # "Resetting the primary context does not release it": that is up to those who retained it.
            del _primary[device_id]
            with nogil:
                cu.cuDevicePrimaryCtxRelease(device_id)
        with nogil:
            status = cu.cuDevicePrimaryCtxRetain(&context, device_id)
        check(status, b"cuDevicePrimaryCtxRetain")
        _primary[device_id] = <uintptr_t>context
    finally:
        _retaining.release()
    return context


cdef bint _is_inactive(int device_id) noexcept:
    """Whether somebody has reset the primary context (``cuDevicePrimaryCtxReset``, ``cudaDeviceReset``)."""
    cdef unsigned int flags = 0
    cdef int active = 1
    # The call may return the error of earlier work in the context, which then is still there.
    return cu.cuDevicePrimaryCtxGetState(device_id, &flags, &active) == CUDA_SUCCESS and active == 0


cdef int _note_reset(object address) except -1:
    global resets
    _last_reset[address] = resets + 1       # before anybody asks
    resets += 1
    forget_faults()
    for forget in _forget:
        forget(address)
    return 0


cdef bint was_reset(CUcontext context, unsigned long since) noexcept:
    return <unsigned long>_last_reset.get(<uintptr_t>context, 0) > since


cdef int when_reset(object forget) except -1:
    _forget.append(forget)
    return 0


cdef int enter(CUcontext context) except -1:
    cdef CUcontext current = NULL
    check(cu.cuCtxGetCurrent(&current), b"cuCtxGetCurrent")
    if current == context:
        return 0
    check(cu.cuCtxPushCurrent(context), b"cuCtxPushCurrent")
    return 1


cdef bint enter_if_there(CUcontext context, int* pushed) except -1:
    cdef bint there = True
    pushed[0] = 0
    if context != NULL:
        try:
            pushed[0] = enter(context)
        except CUDAError as error:
            there = error.status not in (CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED)
            if there:
                raise
    return there


cdef int leave(int pushed) except -1:
    cdef CUcontext popped
    if pushed:
        check(cu.cuCtxPopCurrent(&popped), b"cuCtxPopCurrent")
    return 0
