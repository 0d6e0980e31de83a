"""Buffers: pieces of memory with an owner, copies between them, and fills."""

import warnings

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t, uint32_t, uintptr_t
from libc.string cimport memcpy

from cupola.core.memory._access cimport copy_async, fill_async, read_pointer
from cupola.core.device._context cimport current_context, enter_if_there, green_of, leave, resets, was_reset
from cupola.core.base._cuda cimport (
    CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT,
    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CUdeviceptr, CUresult, CUstream, check,
    closed_error, cu, driver_usable, factory_error, gone_error, initialise, not_raised,
)
from cupola.core.base._dlpack cimport DLDevice, DLTensor, classify, kDLInt, make_capsule, parse_request
from cupola.core.device._memory_resource cimport MemoryResource, byte_count
from cupola.core.device._later cimport in_host_function, let_go_later, refused_here
from cupola.core.device._stream cimport (
    Stream, StreamHandle, begin_recording, default_stream, end_recording, new_stream, older_stream, stream_argument
)

from cupola.core.memory._users cimport Users, begin_users

from cupola._above import above
from cupola.core.base._cuda import put_up_signs
from cupola.core.base._errors import CUDAError, CUDAWarning
from cupola.core.memory import _access

cimport cython

# What the attributes of a pointer say about its memory.
cdef enum Kind:
    UNREAD
    HOST            # not known to CUDA
    PINNED
    DEVICE
    MANAGED


# The fields stay when the garbage collector breaks a cycle: the memory is freed at the very end.
@cython.freelist(16)
@cython.no_gc_clear
cdef class Allocation:

    def __init__(self):
        raise factory_error("Allocation", "Buffer.from_handle or a memory resource")

    def __dealloc__(self):
        if self.resource is not None and not self.moved and driver_usable() and not self.is_gone():
            _give_back(self)

    cdef bint is_gone(self) noexcept:
        cdef Alone alone
        cdef CUcontext context
        cdef StreamHandle stream
        if self.born == resets:
            return False
        begin_alone(&alone, <PyObject*>self)
        context, stream = self.context, self.stream
        end_alone(&alone)
        if context == NULL and stream is not None:
            context = stream.context
        return was_reset(context, self.born)

    cdef int read_kind(self) except -1:
        """Ask the driver, once, what kind of memory the pointer is of (``cuPointerGetAttributes``)."""
        cdef unsigned int memory_type = 0, managed = 0
        cdef int device = -1
        cdef CUresult status
        if self.kind != UNREAD:
            return 0
        initialise()
        status = read_pointer(<CUdeviceptr>self.pointer, &memory_type, &device, &managed)
        # For memory that CUDA does not know, drivers return zeros, or one of these errors; that is not an error here.
        if status != CUDA_ERROR_INVALID_VALUE and status != CUDA_ERROR_INVALID_CONTEXT:
            check(status, b"cuPointerGetAttributes")
        else:
            memory_type = managed = 0
        self.device = device if device >= 0 and memory_type != 0 else -1
        if managed:
            self.kind = MANAGED
        elif memory_type == 0:
            self.kind = HOST
        elif memory_type == CU_MEMORYTYPE_HOST:
            self.kind = PINNED
        elif memory_type == CU_MEMORYTYPE_DEVICE:
            self.kind = DEVICE
        else:
            raise ValueError(f"the memory at {self.pointer:#x} is of an unknown kind (CUmemorytype {memory_type})")
        return 0


    cdef int give_back(self) except -1:
        cdef int pushed = 0
        if self.context == NULL:
            return self.release()
        if not enter_if_there(self.context, &pushed):
            return 0    # the memory went with its context
        try:
            return self.release()
        finally:
            leave(pushed)

    cdef int release(self) except -1:
        # What a graph has given is released by it, and by nobody later.
        if (
            self.users is not None and self.stream is not None and not self.users.before_release(self.stream)
            and not self.resource.in_graph
        ):
            put_off.append(_remains_of(self))
            return 0
        return self.resource.release(self.pointer, self.size, self.stream)

    cdef Users known_users(self):
        if self.users is None:
            with cython.critical_section(self):
                if self.users is None:
                    self.users = begin_users(self.stream, self.context, self.born)
        return self.users


# No free list: the base class's objects are smaller, and a recycled object would keep the collector's mark that its
# finalizer has run.
cdef class FinalizedAllocation(Allocation):

    # The garbage collector runs the finalizers of a cycle before it clears any object of it, so a resource written in
    # Python still works. After that, no weak reference can revive the object.
    def __del__(self):
        cdef object known
        if self.imports is not None:
            known = self.imports.get(self.import_key)
            if known is not None and known() in (None, self):   # not imported anew meanwhile
                self.imports.pop(self.import_key, None)
        if self.resource is not None and not self.moved and driver_usable() and not self.is_gone():
            _give_back(self)
        self.resource = None


cdef void _give_back(Allocation self) noexcept:
    # A resource written in Python is called only once, so it must not be called where the driver refuses its calls.
    if in_host_function() or (isinstance(self, FinalizedAllocation) and refused_here()):
        _give_back_later(self)
        return
    try:
        self.give_back()
    except Exception as error:
        if isinstance(error, CUDAError) and error.status == CUDA_ERROR_NOT_PERMITTED:
            _give_back_later(self)
        else:
            _warn_of_leak(self, error)


cdef void _give_back_later(Allocation self) noexcept:
    let_go_later(_remains_of(self))


cdef Allocation _remains_of(Allocation self):
    """What releases the memory in its place, when it is let go of."""
    cdef Allocation remains
    if isinstance(self, FinalizedAllocation):
        remains = FinalizedAllocation.__new__(FinalizedAllocation)
    else:
        remains = Allocation.__new__(Allocation)
    remains.pointer, remains.size, remains.resource = self.pointer, self.size, self.resource
    remains.stream, remains.context, remains.born = self.stream, self.context, self.born
    remains.green, remains.pool = self.green, self.pool
    remains.users = self.users
    return remains


# The garbage collector may release memory at any time, also while a stream is recorded that would have to wait.
cdef list put_off = []
cdef bint _releasing = False


cdef int release_put_off() except -1:
    global _releasing
    if _releasing:
        return 0        # a release tries it, too
    _releasing = True
    try:
        for _ in range(len(put_off)):   # those there are now: what must still wait is put behind them
            try:
                put_off.pop(0)          # whose destructor releases the memory
            except IndexError:
                break                   # another thread does the same
    finally:
        _releasing = False
    return 0


cdef int _warn_of_leak(Allocation self, object error) except -1:
    if isinstance(error, CUDAError):
        not_raised(error)
        # A fault that was reported before made the whole context unusable, and the memory is freed with the context.
        if error._repeated or error.status == CUDA_ERROR_CONTEXT_IS_DESTROYED:
            return 0
    warnings.warn(
        f"{type(self.resource).__name__} failed to free {self.size} bytes at {self.pointer:#x}: "
        f"{type(error).__name__}: {error}",
        CUDAWarning,
        stacklevel=1,
    )
    return 0


cdef int _order_release(Allocation self, StreamHandle stream) except -1:
    """Order the release of the memory behind the work in `stream`."""
    cdef Alone alone
    cdef CUcontext context = NULL
    cdef object before, green = None, green_before      # let go of behind the end
    if <uintptr_t>stream.pointer <= 2:
        context = _current_context()
        green = green_of(context)
    begin_alone(&alone, <PyObject*>self)
    before, green_before = self.stream, self.green
    self.stream, self.context, self.green = stream, context, green
    end_alone(&alone)
    return 0


cdef int order_recorded_use(Buffer buffer, StreamHandle stream) except -1:
    cdef Allocation allocation = buffer.open_allocation()
    if allocation.stream is not stream:
        allocation.known_users()        # who orders the release now
        _order_release(allocation, stream)
    return 0


cdef Users users_of(Buffer buffer):
    return buffer.open_allocation().known_users()


cdef CUcontext _current_context() except NULL:
    """Each context has its own default stream, so the current context is stored with that."""
    cdef CUcontext context = current_context()
    if context == NULL:
        raise RuntimeError(
            "no context is current on this thread, so the default stream cannot order the release of the buffer; "
            "call Device.set_current() first or pass another stream"
        )
    return context


cdef Buffer new_buffer(uintptr_t pointer, size_t size, MemoryResource resource, StreamHandle stream, object cls=Buffer):
    cdef Buffer buffer = begin_buffer(stream, cls, True)
    fill_buffer(buffer, pointer, size, resource)     # from here on the memory is ours to free
    return buffer


cdef Buffer begin_buffer(StreamHandle stream, object cls, bint finalized):
    cdef Allocation allocation
    cdef Buffer buffer = Buffer.__new__(Buffer) if cls is Buffer else <Buffer?>cls.__new__(cls)
    if finalized:
        allocation = FinalizedAllocation.__new__(FinalizedAllocation)
    else:
        allocation = Allocation.__new__(Allocation)
    allocation.born = resets
    if stream is not None:
        if <uintptr_t>stream.pointer <= 2:
            allocation.context = _current_context()
            allocation.green = green_of(allocation.context)
        allocation.stream = stream
    buffer.allocation = allocation
    return buffer


@cython.freelist(16)
cdef class Buffer:
    """A piece of memory of `size` bytes, on a device, on the host, or both.

    Buffers come from :meth:`Device.allocate`, from the ``allocate`` of a memory resource, or wrap memory of another
    owner (:meth:`from_handle`). They can be passed to kernels, and close themselves at the end of a ``with`` block or
    when they are collected.

    Notes
    -----
    Threads may share it, and any of them may close it; the memory is freed once. As with streams, it is up to the program
    that no work uses the memory behind its release.

    Examples
    --------
    >>> with dev.allocate(4000, stream=stream) as buffer:
    ...     buffer.copy_from(np.ones(1000, np.float32), stream=stream)
    ...     result = buffer.copy_to(np.empty(1000, np.float32), stream=stream)
    >>> stream.sync()
    >>> bool(result.all())
    True
    """

    def __init__(self, *args, **kwargs):
        raise factory_error(
            "Buffer", "Device.allocate, the allocate method of a memory resource, or Buffer.from_handle"
        )

    @staticmethod
    @cython.binding(True)
    def from_handle(ptr, size, mr=None, owner=None, *, stream=None):
        """Wrap memory that exists already. The address is not checked.

        Parameters
        ----------
        ptr : int or driver.CUdeviceptr
            Address.
        size : int
            Bytes.
        mr : MemoryResource, optional
            Frees the memory when the buffer is closed: ``mr.deallocate(ptr, size, stream=stream)``.
        owner : object, optional
            Owns the memory, and is kept alive instead. Not together with `mr`.
        stream : Stream or GraphBuilder, optional
            Orders the deallocation by `mr`; by default the default stream of the current context.

        Returns
        -------
        Buffer

        Raises
        ------
        ValueError
            For `mr` with `owner`, or `stream` without `mr`.
        RuntimeError
            When the default stream would be recorded and no context is current.
        """
        return wrap_handle(Buffer, ptr, size, mr, owner, stream)

    @classmethod
    @cython.embedsignature(False)      # which would show `older`
    def from_ipc_descriptor(cls, mr, ipc_descriptor, older=None, *, stream=None):
        """from_ipc_descriptor($type, mr, ipc_descriptor, *, stream=None)\n--\n\nMap memory that another process allocated (``cuMemPoolImportPointer``).

        That process must keep its buffer as long as this one is open. The same descriptor imported again gives a
        buffer on the same mapping, which ends with the last of them.

        Parameters
        ----------
        mr : DeviceMemoryResource or PinnedMemoryResource
            The pool, imported from that process.
        ipc_descriptor : IPCBufferDescriptor
            The ``ipc_descriptor`` of the buffer there.
        stream : Stream or GraphBuilder
            Orders the release of the mapping.

        Returns
        -------
        Buffer

        Raises
        ------
        TypeError
            When `mr` has no pool, or `ipc_descriptor` is something else.
        RuntimeError
            When `mr` is closed or not shared between processes.
        ValueError
            When the descriptor has too few bytes, or claims more memory than there is.
        CUDAError
            When the descriptor is of another pool, or of this process.
        """
        if older is not None:
            stream = older_stream(older, stream, "from_ipc_descriptor(mr, ipc_descriptor")
        return above("import_buffer")(cls, mr, ipc_descriptor, stream)

    cdef Allocation open_allocation(self):
        cdef Allocation allocation = self.known_allocation()
        if allocation is None:
            raise closed_error(self)
        if allocation.is_gone():
            raise gone_error(self)
        return allocation

    # --- properties -----------------------------------------------------------------------------------

    @property
    def handle(self):
        """int: the address, 0 once closed."""
        return self.pointer

    @property
    def size(self):
        """int: bytes, 0 once closed."""
        return self.nbytes

    @property
    def is_closed(self):
        """bool: whether the buffer was closed."""
        return self.allocation is None

    @property
    def memory_resource(self):
        """MemoryResource or None: the resource that frees the memory."""
        cdef Allocation allocation = self.known_allocation()
        return None if allocation is None else allocation.resource

    @property
    def owner(self):
        """object or None: the owner of memory that no resource frees."""
        cdef Allocation allocation = self.known_allocation()
        return None if allocation is None else allocation.owner

    @property
    def is_mapped(self):
        """bool: whether the memory was imported from another process; False once closed."""
        cdef Allocation allocation = self.known_allocation()
        return allocation is not None and allocation.mapped

    @property
    def ipc_descriptor(self):
        """IPCBufferDescriptor: with it another process imports the buffer (``cuMemPoolExportPointer``).

        Made at the first access. An imported buffer returns the descriptor that it was imported with.

        Raises
        ------
        RuntimeError
            The buffer is closed, or its memory resource is not shared between processes.
        AttributeError
            It has no memory resource, or one without pools.
        """
        return above("export_buffer")(self)

    def get_ipc_descriptor(self):
        """Older spelling of :attr:`ipc_descriptor`.

        Returns
        -------
        IPCBufferDescriptor
        """
        warnings.warn("get_ipc_descriptor() is now the property ipc_descriptor", DeprecationWarning, stacklevel=1)
        return self.ipc_descriptor

    @property
    def device_id(self):
        """int: ordinal of the device, -1 for none (``cuPointerGetAttributes`` without a memory resource)."""
        cdef Allocation allocation = self.open_allocation()
        if allocation.resource is not None:
            return allocation.resource.device_id
        allocation.read_kind()
        return allocation.device

    @property
    def is_device_accessible(self):
        """bool: whether kernels may use the memory (``cuPointerGetAttributes`` without a memory resource)."""
        cdef Allocation allocation = self.open_allocation()
        if allocation.resource is not None:
            return allocation.resource.is_device_accessible
        allocation.read_kind()
        return allocation.kind != HOST

    @property
    def is_host_accessible(self):
        """bool: whether the CPU may use the memory (``cuPointerGetAttributes`` without a memory resource)."""
        cdef Allocation allocation = self.open_allocation()
        if allocation.resource is not None:
            return allocation.resource.is_host_accessible
        allocation.read_kind()
        return allocation.kind != DEVICE

    @property
    def is_managed(self):
        """bool: whether this is unified memory that migrates (``cuPointerGetAttributes``)."""
        cdef Allocation allocation = self.open_allocation()
        allocation.read_kind()
        if allocation.kind == MANAGED:
            return True
        # Managed memory of a pool does not carry the attribute.
        return allocation.resource is not None and bool(allocation.resource.is_managed)

    # --- closing --------------------------------------------------------------------------------------

    def close(self, stream=None):
        """Free the memory. Closing twice is fine.

        This does not wait: the release is ordered behind the work already in its stream. Memory that a graph or a
        texture still uses is freed when the last of them no longer needs it.

        Parameters
        ----------
        stream : Stream or GraphBuilder, optional
            Orders the release, instead of the stream recorded when the buffer was made.
        """
        cdef Allocation allocation = self.known_allocation()     # let go of at the end
        cdef StreamHandle native
        cdef Alone alone
        cdef tuple parting = None
        if allocation is None:
            return
        if stream is not None:
            native = stream_argument(stream).hold()
            _order_release(allocation, native)
        if allocation.resource is not None and allocation.resource.shared:
            parting = _parting(self, allocation)
        begin_alone(&alone, <PyObject*>self)
        if self.allocation is allocation:       # and no other thread was faster
            if parting is not None:
                self.parting = parting
            self.pointer = 0
            self.nbytes = 0
            self.allocation = None
        end_alone(&alone)

    def set_deallocation_stream(self, stream):
        """Record `stream` as the one that orders the release. The buffer stays usable. This does not wait.

        Parameters
        ----------
        stream : Stream or GraphBuilder
            A default stream stands for that of the current context.

        Raises
        ------
        RuntimeError
            When the buffer is closed, or for a default stream without a current context.
        """
        cdef StreamHandle native
        self.open_allocation()
        native = stream_argument(stream).hold()
        _order_release(self.open_allocation(), native)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # --- copies and fills -----------------------------------------------------------------------------

    @cython.embedsignature(False)      # which would show `older`
    def copy_to(self, dst=None, older=None, *, stream=None, options=None):
        """copy_to($self, dst=None, *, stream=None, options=None)\n--\n\nCopy the whole buffer, asynchronously (``cuMemcpyAsync``).

        Parameters
        ----------
        dst : Buffer or array, optional
            Of the same number of bytes. A writable array with the buffer protocol or DLPack takes the place of a
            Buffer. It gets the elements in row-major order, and must be contiguous in that order unless it is in
            pageable memory. None allocates a Buffer from the memory resource of this one.
        stream : Stream or GraphBuilder
            Where the copy is queued, or recorded.
        options : utils.CopyOptions, optional
            When the source may be read, and where managed memory is. They need CUDA 13: before, the order
            ``"during_api_call"`` is refused and the other orders are the stream's.

        Returns
        -------
        Buffer or array
            The destination. An array in pageable memory has been written when the call returns; other arrays are
            written in the order of the stream, and kept alive until then.

        Raises
        ------
        TypeError
            When `dst` is neither, or `options` are given for a capturing or the legacy default stream.
        ValueError
            When the sizes differ, the array is read-only or in another order, or there is no memory resource to
            allocate the destination from.
        RuntimeError
            When the driver cannot read the source during the call.
        """
        cdef Allocation allocation = self.open_allocation()
        if older is not None:
            stream = older_stream(older, stream, "copy_to(dst")
        if dst is None:
            stream_argument(stream)
            if allocation.resource is None:
                raise ValueError("this buffer has no memory resource to allocate the destination from; pass dst")
            dst = allocation.resource.allocate(self.nbytes, stream=stream)
        if options is None and isinstance(dst, Buffer):
            if (<Buffer>dst).pointer == 0:
                _require_open_argument("dst", <Buffer>dst)
            _copy(<Buffer>dst, self, stream)
        else:
            above("copy_arrays")(dst, self, stream, options)
        return dst

    @cython.embedsignature(False)      # which would show `older`
    def copy_from(self, src, older=None, *, stream=None, options=None):
        """copy_from($self, src, *, stream=None, options=None)\n--\n\nOverwrite the whole buffer, asynchronously (``cuMemcpyAsync``).

        Parameters
        ----------
        src : Buffer or array
            Of the same number of bytes. An array with the buffer protocol or DLPack takes the place of a Buffer. Its
            elements are copied in row-major order, and must be contiguous in that order unless it is in pageable
            memory. If its memory is pageable, it has been read when the call returns; other arrays are read in the
            order of the stream, and kept alive until then.
        stream : Stream or GraphBuilder
            Where the copy is queued, or recorded.
        options : utils.CopyOptions, optional
            As for :meth:`copy_to`.

        Raises
        ------
        TypeError
            When `src` is neither, or `options` are given for a capturing or the legacy default stream.
        ValueError
            When the sizes differ, or the array is in another order.
        RuntimeError
            When the driver cannot read the source during the call.
        """
        if older is not None:
            stream = older_stream(older, stream, "copy_from(src")
        if options is None and isinstance(src, Buffer):
            if (<Buffer>src).pointer == 0:
                _require_open_argument("src", <Buffer>src)
            _copy(self, <Buffer>src, stream)
        else:
            above("copy_arrays")(self, src, stream, options)

    @cython.embedsignature(False)      # which would show `older`
    def fill(self, value, older=None, *, stream=None):
        """fill($self, value, *, stream=None)\n--\n\nRepeat a pattern over the whole buffer, asynchronously (``cuMemsetD8Async``, D16, D32).

        Parameters
        ----------
        value : int or bytes-like
            A byte from 0 to 255, or 1, 2 or 4 bytes in memory order (NumPy scalars, too).
        stream : Stream or GraphBuilder
            Where the fill is queued, or recorded.

        Raises
        ------
        OverflowError
            For an integer outside 0..255.
        ValueError
            For a pattern of another length, or if the size is not a multiple of its length.
        """
        cdef uint32_t pattern = 0
        cdef int width
        cdef CUresult status
        cdef Stream queue
        cdef StreamHandle held
        cdef CUstream native
        cdef CUdeviceptr pointer
        cdef size_t count
        require_open(self)
        if older is not None:
            stream = older_stream(older, stream, "fill(value")
        width = fill_pattern(value, &pattern)
        if self.nbytes % width:
            raise ValueError(f"the size of the buffer, {self.nbytes} bytes, must be divisible by {width}")
        queue = stream_argument(stream)
        turn = None
        if type(stream) is not Stream:
            turn = begin_recording(stream, (graph_operand(self.open_allocation()),))
        try:
            require_open(self)      # which what has run in between may have changed
            held = queue.hold()
            native, pointer, count = held.pointer, <CUdeviceptr>self.pointer, self.nbytes // width
            with nogil:
                status = fill_async(pointer, pattern, width, count, native)
            if status != CUDA_SUCCESS:
                _access.fill(pointer, pattern, width, count, new_stream(held), status)
        finally:
            if turn is not None:
                end_recording(turn)

    # --- exchange -------------------------------------------------------------------------------------

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The buffer as a DLPack capsule: one dimension of `size` int8 elements. This does not wait.

        The capsule, and then its consumer, keeps the Buffer object alive. If you close the Buffer explicitly, they are
        left with freed memory.

        Parameters
        ----------
        stream : int, optional
            Ignored.
        max_version : tuple of (int, int), optional
            From (1, 0) on the capsule is a versioned one.
        dl_device, copy
            Must be None (`copy` may be False).

        Raises
        ------
        BufferError
            For a request to move or copy, and for memory that neither host nor device can access.
        """
        cdef bint versioned
        cdef DLTensor tensor
        cdef int64_t extent, stride = 1
        self.open_allocation()
        versioned = parse_request(stream, max_version, dl_device, copy)
        extent = <int64_t>self.nbytes
        tensor.data = <void*>self.pointer
        tensor.device = _dl_device(self)
        tensor.ndim = 1
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = kDLInt, 8, 1
        tensor.shape, tensor.strides = &extent, &stride
        tensor.byte_offset = 0
        return make_capsule(&tensor, self, versioned, False)

    def __dlpack_device__(self):
        """tuple of (int, int): the DLPack device type and id of the memory."""
        cdef DLDevice device
        self.open_allocation()
        device = _dl_device(self)
        return device.device_type, device.device_id

    def __array__(self, dtype=None, copy=None):
        return above("buffer_as_ndarray")(self, dtype, copy)

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def __reduce__(self):
        return above("reduce_buffer")(self)

    def __eq__(self, other):
        if not isinstance(other, Buffer):
            return NotImplemented
        # A closed object equals only itself: a new object may get its address.
        return self is other or (
            self.allocation is not None and (<Buffer>other).allocation is not None
            and self.pointer == (<Buffer>other).pointer and self.nbytes == (<Buffer>other).nbytes
            and hash(self) == hash(other)       # one that has grown keeps its hash
        )

    def __hash__(self):
        if self.known_hash == 0:        # else it stays, also when the buffer is closed or grows
            self.known_hash = hash((self.pointer, self.nbytes))
        return self.known_hash

    def __repr__(self):
        mapped = " is_mapped=True" if self.is_mapped else ""
        return f"<Buffer ptr={self.pointer:#x} size={self.nbytes}{mapped}>"


cdef tuple _parting(Buffer buffer, Allocation allocation):
    """Sent by a multiprocessing queue for a buffer that is closed before the queue's own thread reads it."""
    cdef tuple parting = None       # then the queue will say that the buffer is closed
    try:
        parting = above("reduce_buffer")(buffer) if allocation.resource.is_ipc_enabled else None
    except CUDAError as error:
        not_raised(error)
    return parting


def wrap_handle(cls, ptr, size, mr, owner, stream):
    """Buffer.from_handle for `cls`."""
    cdef Allocation allocation
    cdef Buffer buffer
    cdef MemoryResource resource = None
    cdef StreamHandle native = None
    cdef uintptr_t pointer
    cdef size_t count = byte_count(size)
    if ptr is None:
        raise TypeError("ptr must be an address, got None")
    pointer = int(ptr)
    if mr is not None:
        if not isinstance(mr, MemoryResource):
            raise TypeError(f"mr must be a MemoryResource, got {type(mr).__name__}")
        if owner is not None:
            raise ValueError("mr and owner cannot be given together: one of them owns the memory")
        resource = <MemoryResource>mr
        if stream is not None:
            native = stream_argument(stream).hold()
        elif resource.is_device_accessible:
            native = default_stream().known_handle()
        return new_buffer(pointer, count, resource, native, cls)
    if stream is not None:
        raise ValueError("stream orders the deallocation by mr, so it needs mr")
    buffer = new_buffer(pointer, count, None, None, cls)
    buffer.allocation.owner = owner
    return buffer


cdef int _require_open_argument(str name, Buffer buffer) except -1:
    """Say which of both buffers of a copy has been closed, where it is not the one whose method is called."""
    if buffer.known_allocation() is None:
        raise RuntimeError(f"{closed_error(buffer)}: it is the argument {name}")
    return 0


cdef int _copy(Buffer target, Buffer source, object stream) except -1:
    cdef Stream queue
    cdef StreamHandle held
    cdef CUstream native
    cdef CUdeviceptr to, frm
    cdef size_t size = source.nbytes
    cdef CUresult status
    require_open(target)
    require_open(source)
    if target.nbytes != size:
        raise ValueError(
            f"the buffers must be of the same size: the source has {size} bytes, the destination {target.nbytes}"
        )
    queue = stream_argument(stream)
    turn = None
    if type(stream) is not Stream:
        turn = begin_recording(
            stream, (graph_operand(target.open_allocation()), graph_operand(source.open_allocation()))
        )
    try:
        if turn is not None:        # what has run in between may have changed them
            require_open(target)
            require_open(source)
        held = queue.hold()
        native, to, frm = held.pointer, <CUdeviceptr>target.pointer, <CUdeviceptr>source.pointer
        with nogil:
            status = copy_async(to, frm, size, native)
        if status != CUDA_SUCCESS:
            _access.copy(to, frm, size, new_stream(held), status)
    finally:
        if turn is not None:
            end_recording(turn)
    return 0


cdef int fill_pattern(object value, uint32_t* pattern) except -1:
    """Read the value of a fill into `pattern`; returns its width in bytes."""
    cdef Py_buffer view
    cdef Py_ssize_t length
    cdef long byte
    if PyLong_Check(value):
        if not 0 <= value <= 255:
            raise OverflowError(f"the value must be from 0 to 255, got {value}; pass bytes for a wider pattern")
        byte = value
        pattern[0] = <uint32_t>byte
        return 1
    if not PyObject_CheckBuffer(value):
        raise TypeError(f"the value must be an int or a bytes-like object, got {type(value).__name__}")
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    length = view.len
    if length == 1 or length == 2 or length == 4:
        # Little-endian hosts only: the low bytes of the pattern are the bytes in memory order.
        memcpy(pattern, view.buf, length)
    PyBuffer_Release(&view)
    if length != 1 and length != 2 and length != 4:
        raise ValueError(f"the pattern must have 1, 2, or 4 bytes, got {length}")
    return <int>length


cdef DLDevice _dl_device(Buffer buffer) except *:
    cdef bint device = buffer.is_device_accessible, host = buffer.is_host_accessible
    cdef bint managed = device and host and buffer.is_managed
    return classify(device, host, managed, buffer.device_id if device and not host else 0)


put_up_signs(Buffer)
