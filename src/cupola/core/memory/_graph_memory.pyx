"""Memory that a graph allocates when it runs (CUDA C++ Programming Guide, "Graph Memory Nodes").

An allocation on a stream that is captured becomes a node of the graph, and its address is known at once. So does a free.
Memory that the graph does not free still exists after its launch, and the program may free it in the order of a stream.

A buffer remembers the capture that it was made in. If it is closed or collected during that capture, the graph frees
the memory at that point. Later, the memory is left to the program that launches the graph, because no stream is known
that no longer uses it. Closing the buffer on a stream frees the memory behind the work in that stream.
"""

from _thread import allocate_lock
from operator import index

from libc.stdint cimport uint64_t, uintptr_t

from cupola.core.memory._buffer cimport new_buffer
from cupola.core.device._context cimport enter, leave
from cupola.core.base._cuda cimport (
    CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
    CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_NONE, CUdeviceptr,
    CUgraphMem_attribute, CUmemoryPool, CUresult, CUstream, CUstreamCaptureStatus, check, cu, cuuint64_t,
    factory_error, initialise,
)
from cupola.core.device._device cimport Device
from cupola.core.device._memory_resource cimport MemoryResource, byte_count
from cupola.core.device._stream cimport StreamHandle, begin_recording, end_recording, new_stream, older_stream, stream_argument

cimport cython


cdef class CaptureStream(StreamHandle):
    """A stream during one capture."""
    cdef cuuint64_t capture


cdef class GraphMemory(MemoryResource):
    """A memory resource for graphs. See its subclass."""
    cdef int ordinal

    def __cinit__(self, device_id):
        self.ordinal = device_id
        self.in_graph = True

    @cython.embedsignature(False)      # which would show `older`
    def allocate(self, size, older=None, *, stream=None):
        """allocate($self, size, *, stream=None)\n--\n\nHave the graph that is being captured allocate memory (``cuMemAllocFromPoolAsync``).

        Parameters
        ----------
        size : int
            Bytes; 0 gives a buffer at address 0.
        stream : Stream or GraphBuilder
            Is being captured. The graph frees the memory where the buffer is closed, or collected, during the capture.

        Returns
        -------
        Buffer
            Its address is the same in every launch of the graph.

        Raises
        ------
        RuntimeError
            When the stream is not being captured.
        """
        cdef size_t count = byte_count(size)
        cdef StreamHandle held
        cdef CUstream native
        cdef CUmemoryPool pool
        cdef CUdeviceptr pointer = 0
        cdef CaptureStream place = CaptureStream.__new__(CaptureStream)
        cdef CUresult status
        if older is not None:
            stream = older_stream(older, stream, "allocate(size")
        held = stream_argument(stream).hold()
        native = held.pointer
        place.pointer, place.owner = native, held
        turn = begin_recording(stream, ())
        try:
            place.capture = _capture_of(native)
            if place.capture == 0:
                raise _not_capturing("allocate")
            if count != 0:
                check(cu.cuDeviceGetDefaultMemPool(&pool, self.ordinal), b"cuDeviceGetDefaultMemPool")
                with nogil:
                    status = cu.cuMemAllocFromPoolAsync(&pointer, count, pool, native)
                check(status, b"cuMemAllocFromPoolAsync")
        finally:
            end_recording(turn)
        return new_buffer(pointer, count, self, place)

    @cython.embedsignature(False)      # which would show `older`
    def deallocate(self, ptr, size_t size, older=None, *, stream=None):
        """deallocate($self, ptr, size, *, stream=None)\n--\n\nHave the graph that is being captured free memory that it allocated (``cuMemFreeAsync``).

        Parameters
        ----------
        ptr : int
            Address.
        size : int
            Bytes.
        stream : Stream or GraphBuilder
            Is being captured.

        Raises
        ------
        RuntimeError
            When the stream is not being captured.
        """
        cdef uintptr_t pointer = int(ptr)
        cdef StreamHandle held
        if older is not None:
            stream = older_stream(older, stream, "deallocate(ptr, size")
        held = stream_argument(stream).hold()
        turn = begin_recording(stream, ())
        try:
            if _capture_of(held.pointer) == 0:
                raise _not_capturing("deallocate")
            _free(pointer, held)
        finally:
            end_recording(turn)

    cdef int release(self, uintptr_t pointer, size_t size, StreamHandle stream) except -1:
        if pointer == 0 or stream is None or stream.is_gone():
            return 0
        if type(stream) is CaptureStream and _capture_of(stream.pointer) != (<CaptureStream>stream).capture:
            return 0    # the graph's, from now on
        return _free(pointer, stream)

    def trim(self):
        """Give memory that graphs on the device do not use back to the system (``cuDeviceGraphMemTrim``)."""
        cdef CUresult status
        initialise()
        with nogil:
            status = cu.cuDeviceGraphMemTrim(self.ordinal)
        check(status, b"cuDeviceGraphMemTrim")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Do nothing: the memory belongs to graphs."""

    @property
    def attributes(self):
        """GraphMemoryAttributes: how much memory graphs have on the device, read when asked for."""
        cdef GraphMemoryAttributes attributes = GraphMemoryAttributes.__new__(GraphMemoryAttributes)
        attributes.ordinal = self.ordinal
        return attributes

    @property
    def device_id(self):
        """int: ordinal of the device."""
        return self.ordinal

    @property
    def is_device_accessible(self):
        """bool: True."""
        return True

    @property
    def is_host_accessible(self):
        """bool: False."""
        return False

    def __repr__(self):
        return f"<GraphMemoryResource device={self.ordinal}>"

    def __reduce__(self):
        return GraphMemoryResource, (self.ordinal,)


_instances = {}
_making = allocate_lock()


class GraphMemoryResource(GraphMemory):
    """Memory of a device that a graph allocates, and frees, when it runs. There is one object for each device.

    Allocate during the capture of a graph. While no launch of the graph is running, other graphs may use the same
    physical memory.

    Parameters
    ----------
    device_id : Device or int
        The device. The first use checks that it exists.

    Notes
    -----
    Threads may share it.

    Examples
    --------
    >>> builder = stream.create_graph_builder().begin_building()
    >>> with GraphMemoryResource(0).allocate(4096, stream=builder) as scratch:
    ...     launch(builder, config, kernel, scratch)
    >>> graph = builder.end_building().complete()
    """

    def __new__(cls, device_id):
        number = (<Device>device_id).device_id if isinstance(device_id, Device) else index(device_id)
        _making.acquire()
        try:
            found = _instances.get((cls, number))
            if found is None:
                found = _instances[cls, number] = super().__new__(cls, number)
        finally:
            _making.release()
        return found


cdef class GraphMemoryAttributes:
    """How much memory graphs have on a device, read at each access (``cuDeviceGetGraphMemAttribute``)."""
    cdef int ordinal

    def __init__(self):
        raise factory_error("GraphMemoryAttributes", "GraphMemoryResource.attributes")

    cdef object read(self, CUgraphMem_attribute attribute):
        cdef uint64_t value = 0
        initialise()
        check(cu.cuDeviceGetGraphMemAttribute(self.ordinal, attribute, &value), b"cuDeviceGetGraphMemAttribute")
        return value

    cdef int reset(self, CUgraphMem_attribute attribute, object value) except -1:
        cdef uint64_t zero = 0
        if not isinstance(value, int):
            raise TypeError(f"a high watermark can only be set to 0, not to a {type(value).__name__}")
        if value != 0:
            raise AttributeError(f"a high watermark can only be set to 0, not to {value}")
        initialise()
        return check(cu.cuDeviceSetGraphMemAttribute(self.ordinal, attribute, &zero), b"cuDeviceSetGraphMemAttribute")

    @property
    def reserved_mem_current(self):
        """int: bytes of memory that graphs have from the system now."""
        return self.read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)

    @property
    def reserved_mem_high(self):
        """int: the most bytes that they had since this was last set to 0."""
        return self.read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)

    @reserved_mem_high.setter
    def reserved_mem_high(self, value):
        self.reset(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, value)

    @property
    def used_mem_current(self):
        """int: bytes that graphs have allocated now."""
        return self.read(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)

    @property
    def used_mem_high(self):
        """int: the most bytes that they had allocated since this was last set to 0."""
        return self.read(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)

    @used_mem_high.setter
    def used_mem_high(self, value):
        self.reset(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, value)

    def __repr__(self):
        names = sorted(name for name in dir(type(self)) if not name.startswith("_"))
        return f"GraphMemoryAttributes({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


cdef cuuint64_t _capture_of(CUstream stream) except? 0:
    """The id of the capture that a stream takes part in; 0 for none, or one that an error has ended."""
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef cuuint64_t number = 0
    check(
        cu.cuStreamGetCaptureInfo(stream, &capture, &number, NULL, NULL, NULL, NULL), b"cuStreamGetCaptureInfo"
    )
    return number if capture == CU_STREAM_CAPTURE_STATUS_ACTIVE else 0


cdef int _free(uintptr_t pointer, StreamHandle stream) except -1:
    cdef CUstream native = stream.pointer
    cdef CUresult status
    cdef int pushed = enter(new_stream(stream).find_context())      # the collector runs on any thread
    try:
        with nogil:
            status = cu.cuMemFreeAsync(<CUdeviceptr>pointer, native)
    finally:
        leave(pushed)
    return check(status, b"cuMemFreeAsync")


cdef object _not_capturing(str call):
    return RuntimeError(
        f"GraphMemoryResource cannot {call} memory on a non-capturing stream: pass a GraphBuilder between "
        "begin_building() and end_building(), or use DeviceMemoryResource"
    )
