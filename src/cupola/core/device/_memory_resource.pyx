"""The base class of all memory resources."""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from libc.stdint cimport uintptr_t

from cupola._above import above
from cupola.core.device._stream cimport StreamHandle, default_stream, new_stream


cdef extern from "Python.h":
    size_t PyLong_AsSize_t(object) noexcept


cdef size_t byte_count(object size) except? <size_t>-1:
    cdef size_t count
    if not isinstance(size, int):
        if not hasattr(type(size), "__index__"):
            advice = "; round it, as in int(size)" if isinstance(size, float) else ""
            raise TypeError(f"size must be an int, a number of bytes, not {type(size).__name__}{advice}")
        size = size.__index__()
    count = PyLong_AsSize_t(size)
    if count == <size_t>-1 and PyErr_Occurred() != NULL:
        PyErr_Clear()
        if size < 0:
            raise OverflowError(f"size must not be negative: {size}")
        raise OverflowError(f"size must be a number of bytes below 2**64, got {size}")
    return count


cdef class MemoryResource:
    """Where buffers come from: subclass it to bring your own allocator.

    A subclass provides :meth:`allocate`, :meth:`deallocate` and the properties ``is_device_accessible``,
    ``is_host_accessible`` and ``device_id``; unified memory also sets ``is_managed``. Make it the source of
    ``Device.allocate`` with ``device.memory_resource = resource``.

    Notes
    -----
    Threads may share the resources of this package. Buffers call :meth:`allocate` and :meth:`deallocate` of a subclass on any
    thread, on several at once.

    Examples
    --------
    >>> class Counting(MemoryResource):
    ...     is_device_accessible, is_host_accessible, device_id = True, False, 0
    ...     def __init__(self, source):
    ...         self.source, self.live = source, {}
    ...     def allocate(self, size, *, stream):
    ...         inner = self.source.allocate(size, stream=stream)
    ...         self.live[inner.handle] = inner
    ...         return Buffer.from_handle(inner.handle, size, mr=self, stream=stream)
    ...     def deallocate(self, ptr, size, *, stream):
    ...         self.live.pop(ptr).close(stream)
    >>> dev.memory_resource = counting = Counting(dev.memory_resource)
    >>> buffer = dev.allocate(1000, stream=stream)
    >>> len(counting.live)
    1
    """

    def allocate(self, size, *, stream):
        """Allocate `size` bytes, usable by work submitted to `stream` from here on.

        Parameters
        ----------
        size : int
            Number of bytes.
        stream : Stream or GraphBuilder
            Orders the allocation.

        Returns
        -------
        Buffer
            Make it with ``Buffer.from_handle(ptr, size, mr=self, stream=stream)``.
        """
        raise _missing(self, "allocate(size, *, stream)")

    def deallocate(self, ptr, size, *, stream):
        """Free the memory at address `ptr`, ordered behind the work already in `stream`.

        Called once for each buffer, when it is closed or collected: possibly on another thread than the one
        that allocated. An exception becomes a warning, because no caller could catch it.

        Parameters
        ----------
        ptr : int
            The address given to ``Buffer.from_handle``.
        size : int
            Number of bytes, as given there.
        stream : Stream
            Never None.
        """
        raise _missing(self, "deallocate(ptr, size, *, stream)")

    @property
    def is_device_accessible(self):
        """bool: whether kernels may use the memory."""
        raise _missing(self, "the property is_device_accessible")

    @property
    def is_host_accessible(self):
        """bool: whether the CPU may use the memory."""
        raise _missing(self, "the property is_host_accessible")

    @property
    def device_id(self):
        """int: ordinal of the device that the memory belongs to, -1 for none."""
        raise _missing(self, "the property device_id")

    @property
    def is_managed(self):
        """bool: whether this is unified memory that migrates; False unless overridden."""
        return False

    def _repr_html_(self):
        return above("html_of")(self)

    cdef object obtain(self, object size, object stream):
        return self.allocate(size, stream=stream)

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        self.deallocate(pointer, size, stream=default_stream() if stream is None else new_stream(stream))
        return 0


cdef object _missing(object resource, str what):
    return TypeError(f"{what} must be implemented by subclasses: {type(resource).__name__} does not")
