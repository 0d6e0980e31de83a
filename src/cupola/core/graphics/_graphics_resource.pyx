"""Graphics resources: buffers and images of OpenGL, registered with CUDA and mapped for a while.

Who keeps what: a mapped Buffer keeps the mapping (its allocation), which keeps the registration. So whoever still has
the memory keeps it mapped, and the registration ends with the last of them.
"""

from operator import index

from libc.stdint cimport uint64_t, uintptr_t

from cupola.core.base._cuda cimport (
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, CUDA_ERROR_INVALID_VALUE,
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY, CUDA_ERROR_NOT_MAPPED_AS_POINTER, CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CUarray, CUcontext, CUdevice, CUdeviceptr, CUgraphicsResource, CUresult,
    CUstream, check, closed_error, cu, driver_usable, factory_error, fail_because, fail_with, gone_error, initialise,
    report,
)
from cupola.core.device._context cimport current_context, enter, is_gone, leave, resets
from cupola.core.device._later cimport in_host_function, let_go_later
from cupola.core.device._stream cimport Stream, StreamHandle, stream_argument
from cupola.core.memory._buffer cimport Allocation, Buffer
from cupola.core.texture._array cimport OpaqueArray, borrowed_array

from cupola.core.texture import _options

cimport cython

cdef extern from *:
    """
    #define CUPOLA_SURFACE_LDST CUDA_ARRAY3D_SURFACE_LDST
    """
    unsigned int CUPOLA_SURFACE_LDST

# Bits of CUgraphicsRegisterFlags.
cdef dict FLAGS = {"none": 0, "read_only": 1, "write_discard": 2, "surface_load_store": 4, "texture_gather": 8}


# --- what outlives the object that users see --------------------------------------------------------------


cdef class Registration:
    """A resource that the driver knows: unregistered when the last of its holders lets go."""
    cdef CUgraphicsResource handle      # NULL once unregistered
    cdef CUcontext context
    cdef unsigned long born
    cdef bint is_mapped
    cdef uint64_t mappings              # how many there have been

    def __dealloc__(self):
        cdef CUresult status
        cdef Registration remains
        if self.handle == NULL or not driver_usable() or is_gone(self.context, self.born):
            return
        status = CUDA_ERROR_NOT_PERMITTED if in_host_function() else _unregister(self)
        if status == CUDA_ERROR_NOT_PERMITTED:
            remains = Registration.__new__(Registration)
            remains.handle, remains.context, remains.born = self.handle, self.context, self.born
            let_go_later(remains)
        else:
            report(status, b"cuGraphicsUnregisterResource")


cdef CUresult _unregister(Registration registration) noexcept:
    cdef CUresult status
    with nogil:
        status = cu.cuGraphicsUnregisterResource(registration.handle)
    return status


@cython.no_gc_clear
cdef class Mapping(Allocation):
    """The memory of a mapped buffer: unmapped when the last of its holders lets go."""
    cdef Registration registration
    cdef uint64_t number                # which of its mappings this is

    def __dealloc__(self):
        cdef CUresult status
        cdef Mapping remains
        if not self.registration.is_mapped or self.registration.mappings != self.number or not driver_usable() or (
            self.is_gone()
        ):
            return
        status = CUDA_ERROR_NOT_PERMITTED if in_host_function() else _unmap(self.registration, self.stream)
        if status == CUDA_ERROR_NOT_PERMITTED:
            remains = Mapping.__new__(Mapping)
            remains.registration, remains.number, remains.stream = self.registration, self.number, self.stream
            remains.context, remains.born = self.context, self.born
            let_go_later(remains)
        else:
            report(status, b"cuGraphicsUnmapResources")


cdef CUresult _unmap(Registration registration, StreamHandle stream) noexcept:
    """Unmap, ordered behind the work in `stream`.

    Without its context of OpenGL that fails, and the resource is lost: the driver says that it is not mapped to those who
    unmap it, and that it is to those who map or unregister it, and crashes when it is told to unregister it twice.
    """
    cdef CUgraphicsResource handle = registration.handle
    cdef CUstream native = stream.pointer
    cdef CUcontext current = NULL
    cdef CUresult status = cu.cuCtxGetCurrent(&current)
    cdef bint pushed = status == CUDA_SUCCESS and current != registration.context
    if pushed:
        status = cu.cuCtxPushCurrent(registration.context)
        if status != CUDA_SUCCESS:
            return status
    with nogil:
        status = cu.cuGraphicsUnmapResources(1, &handle, native)
    if pushed:
        cu.cuCtxPopCurrent(&current)
    if status == CUDA_SUCCESS or status == CUDA_ERROR_INVALID_GRAPHICS_CONTEXT:
        registration.is_mapped = False
    if status == CUDA_ERROR_INVALID_GRAPHICS_CONTEXT:
        registration.handle = NULL
    return status


# --- resources --------------------------------------------------------------------------------------------


cdef class GraphicsResource:
    """A buffer or image of OpenGL that kernels can use while it is mapped (``CUgraphicsResource``).

    Register it once with :meth:`from_gl_buffer` or :meth:`from_gl_image`, and map it for each frame. While it is mapped,
    OpenGL must not use it. All methods need the context of OpenGL current on the calling thread, and the device the GPU that
    draws; the CPU device takes any OpenGL and copies. Threads must not use one resource at the same time.

    Examples
    --------
    >>> resource = GraphicsResource.from_gl_buffer(vertices, flags="write_discard")    # doctest: +SKIP
    >>> with resource.map(stream=stream) as buffer:                                    # doctest: +SKIP
    ...     launch(stream, config, kernel, buffer, np.float32(time))
    """

    cdef Registration registration      # None once closed
    cdef bint is_image
    cdef Stream stream                  # of `with`, or None
    cdef StreamHandle mapped_in         # the stream of the mapping
    cdef Buffer buffer                  # what map() gave
    cdef list arrays                    # what map_array() and get_mapped_array() gave

    def __init__(self, *args, **kwargs):
        raise factory_error("GraphicsResource", "GraphicsResource.from_gl_buffer() or GraphicsResource.from_gl_image()")

    @classmethod
    def from_gl_buffer(cls, gl_buffer, *, flags=None, stream=None):
        """Register a buffer of OpenGL (``cuGraphicsGLRegisterBuffer``).

        Parameters
        ----------
        gl_buffer : int
            Its name, which has storage (``glBufferData``).
        flags : str or sequence of str, optional
            ``"read_only"``: kernels only read it; ``"write_discard"``: they overwrite all of it. At most one of them.
        stream : Stream, optional
            For ``with resource as buffer:``, which maps it in this stream.

        Returns
        -------
        GraphicsResource

        Raises
        ------
        ValueError
            A flag is unknown.
        CUDAError
            No context of OpenGL is current, or it has no such buffer.
        """
        cdef GraphicsResource resource
        cdef CUgraphicsResource handle = NULL
        cdef CUresult status
        cdef unsigned int name = _name(gl_buffer, "gl_buffer"), bits = _flags(flags)
        if stream is not None:
            stream = stream_argument(stream)
        resource = _begin(cls)
        with nogil:
            status = cu.cuGraphicsGLRegisterBuffer(&handle, name, bits)
        _check_registered(status, b"cuGraphicsGLRegisterBuffer")
        resource.registration.handle = handle
        resource.stream = stream
        return resource

    @classmethod
    def from_gl_image(cls, image, target, *, flags=None):
        """Register a texture or renderbuffer of OpenGL (``cuGraphicsGLRegisterImage``).

        Parameters
        ----------
        image : int
            Its name, which has storage (``glTexStorage2D`` or the like).
        target : int
            ``GL_TEXTURE_2D``, ``GL_TEXTURE_RECTANGLE``, ``GL_TEXTURE_3D``, ``GL_TEXTURE_2D_ARRAY``,
            ``GL_TEXTURE_CUBE_MAP`` or ``GL_RENDERBUFFER``.
        flags : str or sequence of str, optional
            ``"read_only"``, ``"write_discard"``; ``"surface_load_store"`` for surfaces, ``"texture_gather"`` for gathers.

        Returns
        -------
        GraphicsResource
            Map it with :meth:`map_array`.

        Raises
        ------
        ValueError
            A flag is unknown.
        CUDAError
            No context of OpenGL is current, or it has no such image, or CUDA does not take its format.
        """
        cdef GraphicsResource resource
        cdef CUgraphicsResource handle = NULL
        cdef CUresult status
        cdef unsigned int name = _name(image, "image"), kind = _name(target, "target"), bits = _flags(flags)
        resource = _begin(cls)
        with nogil:
            status = cu.cuGraphicsGLRegisterImage(&handle, name, kind, bits)
        _check_registered(status, b"cuGraphicsGLRegisterImage")
        resource.registration.handle = handle
        resource.is_image = True
        return resource

    @property
    @cython.critical_section
    def handle(self):
        """int: the native handle (``CUgraphicsResource``), 0 once closed."""
        return 0 if self.registration is None else <uintptr_t>self.registration.handle

    @property
    def resource_handle(self):
        """int: the same as :attr:`handle`."""
        return self.handle

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.registration is None or self.registration.handle == NULL

    @property
    @cython.critical_section
    def is_mapped(self):
        """bool: whether CUDA has the resource, and OpenGL must not use it."""
        return self.registration is not None and self.registration.is_mapped

    @cython.critical_section
    def map(self, *, stream):
        """Map a buffer: what OpenGL was told before is done before the work that is queued in the stream from here on.

        Closing the Buffer unmaps it again, in the order of the stream, and so does the end of ``with resource.map(...)``.

        Parameters
        ----------
        stream : Stream
            Whose work uses the buffer (``cuGraphicsMapResources``).

        Returns
        -------
        Buffer
            The memory (``cuGraphicsResourceGetMappedPointer``).

        Raises
        ------
        RuntimeError
            The resource is closed, or mapped already.
        CUDAError
            It is an image, or its context of OpenGL is not current.
        """
        cdef CUdeviceptr pointer = 0
        cdef size_t size = 0
        cdef CUresult status
        cdef CUgraphicsResource handle
        cdef Mapping mapping
        cdef Buffer buffer
        cdef int pushed
        if self.is_image and self.registration is not None:
            fail_with(
                CUDA_ERROR_NOT_MAPPED_AS_POINTER, b"cuGraphicsResourceGetMappedPointer",
                "the resource is an image, which has no address: use map_array()",
            )
        _map(self, stream)
        handle = self.registration.handle
        pushed = enter(self.registration.context)
        status = cu.cuGraphicsResourceGetMappedPointer(&pointer, &size, handle)
        leave(pushed)
        if status != CUDA_SUCCESS:
            _unmap(self.registration, self.mapped_in)
            check(status, b"cuGraphicsResourceGetMappedPointer")
        mapping = Mapping.__new__(Mapping)
        mapping.registration, mapping.stream, mapping.context = self.registration, self.mapped_in, self.registration.context
        mapping.number = self.registration.mappings
        mapping.pointer, mapping.size, mapping.born = <uintptr_t>pointer, size, self.registration.born
        buffer = Buffer.__new__(Buffer)
        buffer.pointer, buffer.nbytes, buffer.allocation = <uintptr_t>pointer, size, mapping
        self.buffer = buffer
        return buffer

    @cython.critical_section
    def map_array(self, *, stream, index=0, level=0):
        """Map an image, for kernels to read through textures and to write through surfaces.

        ``cuda.core`` has no such call. It stays mapped until :meth:`unmap`.

        Parameters
        ----------
        stream : Stream
            Whose work uses the image (``cuGraphicsMapResources``).
        index : int
            Which layer of an array of textures, or which face of a cube map.
        level : int
            Which mipmap level.

        Returns
        -------
        texture.OpaqueArray
            The image, or that part of it (``cuGraphicsSubResourceGetMappedArray``). It is closed when the resource is unmapped.

        Raises
        ------
        RuntimeError
            The resource is closed, or mapped already.
        CUDAError
            It is a buffer, has no such part, or its context of OpenGL is not current.
        """
        if not self.is_image and self.registration is not None:
            fail_with(
                CUDA_ERROR_NOT_MAPPED_AS_ARRAY, b"cuGraphicsSubResourceGetMappedArray",
                "the resource is a buffer: use map()",
            )
        part, mip = _name(index, "index"), _name(level, "level")
        _map(self, stream)
        try:
            return _array(self, part, mip)
        except:
            _unmap(self.registration, self.mapped_in)
            raise

    @cython.critical_section
    def get_mapped_array(self, index=0, level=0):
        """Another part of an image that is mapped.

        Parameters
        ----------
        index : int
            Which layer of an array of textures, or which face of a cube map.
        level : int
            Which mipmap level.

        Returns
        -------
        texture.OpaqueArray
            As from :meth:`map_array`.

        Raises
        ------
        RuntimeError
            The resource is closed or not mapped.
        CUDAError
            There is no such part.
        """
        _open(self)
        if not self.registration.is_mapped:
            raise RuntimeError("GraphicsResource is not mapped: call map_array() first")
        return _array(self, _name(index, "index"), _name(level, "level"))

    @cython.critical_section
    def unmap(self, *, stream=None):
        """Give the resource back to OpenGL, behind the work in the stream (``cuGraphicsUnmapResources``).

        The Buffer or arrays of the mapping are closed. The CPU device waits for the stream, and copies.

        Parameters
        ----------
        stream : Stream, optional
            None: that of the mapping.

        Raises
        ------
        RuntimeError
            The resource is closed or not mapped.
        CUDAError
            Work in the stream has failed, and the resource stays mapped. Or the context of OpenGL is not current; then
            the resource is lost and closed: register the object of OpenGL again.
        """
        _end_mapping(self, stream)

    @cython.critical_section
    def close(self, stream=None):
        """Unmap the resource if it is mapped, and unregister it (``cuGraphicsUnregisterResource``); idempotent.

        Parameters
        ----------
        stream : Stream, optional
            Orders the unmapping. None: the stream of the mapping.

        Raises
        ------
        CUDAError
            The context of OpenGL is not current. The resource is closed nevertheless.
        """
        _close(self, stream)

    def __enter__(self):
        return self if self.stream is None else self.map(stream=self.stream)

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        state = " closed" if self.is_closed else " mapped" if self.is_mapped else ""
        return f"<GraphicsResource handle={self.handle:#x}{state}>"

    def __reduce__(self):
        raise TypeError("a GraphicsResource belongs to this process: it cannot be pickled or copied")


cdef int _open(GraphicsResource resource) except -1:
    if resource.registration is None or resource.registration.handle == NULL:
        raise closed_error(resource)
    if is_gone(resource.registration.context, resource.registration.born):
        raise gone_error(resource)
    return 0


cdef GraphicsResource _begin(object cls):
    cdef GraphicsResource resource
    cdef CUcontext context
    initialise()
    context = current_context()
    if context == NULL:
        raise RuntimeError(
            "a graphics resource needs a current context: call Device.set_current() on this thread first"
        )
    resource = <GraphicsResource?>GraphicsResource.__new__(cls)
    resource.registration = Registration.__new__(Registration)
    resource.registration.context, resource.registration.born = context, resets
    return resource


cdef int _check_registered(CUresult status, const char* call) except -1:
    cdef char explanation[1]
    # A GPU's driver says no more than that.
    if status == CUDA_ERROR_INVALID_VALUE and cu.head.explain(status, explanation, sizeof(explanation)) == 0:
        return fail_because(
            status, call,
            "Is a context of OpenGL current on this thread, and does it draw on this device? The name must have storage, and "
            "images a target and a format that CUDA takes.",
        )
    return check(status, call)


cdef int _map(GraphicsResource resource, object stream) except -1:
    cdef StreamHandle held
    cdef CUstream native
    cdef CUgraphicsResource handle
    cdef CUresult status
    cdef int pushed
    _open(resource)
    held = stream_argument(stream).hold()
    if resource.registration.is_mapped:
        raise RuntimeError("GraphicsResource is already mapped: unmap it first, or close the Buffer of the mapping")
    handle, native = resource.registration.handle, held.pointer
    pushed = enter(resource.registration.context)
    with nogil:
        status = cu.cuGraphicsMapResources(1, &handle, native)
    leave(pushed)
    check(status, b"cuGraphicsMapResources")
    resource.registration.is_mapped = True
    resource.registration.mappings += 1
    resource.mapped_in = held
    resource.buffer = None
    return 0


cdef int _end_mapping(GraphicsResource resource, object stream) except -1:
    cdef Registration registration
    cdef OpaqueArray array
    cdef CUresult status
    _open(resource)
    if not resource.registration.is_mapped:
        raise RuntimeError("GraphicsResource is not mapped")
    if stream is not None:
        resource.mapped_in = stream_argument(stream).hold()
    registration = resource.registration
    status = _unmap(registration, resource.mapped_in)
    if not registration.is_mapped:
        if resource.buffer is not None:
            resource.buffer.close()
            resource.buffer = None
        for array in resource.arrays or ():
            array.close()
        resource.arrays = None
    if registration.handle == NULL:
        resource.registration = None
        return fail_because(
            status, b"cuGraphicsUnmapResources",
            "Without its context of OpenGL the driver has lost the resource, with what kernels wrote. Make the context "
            "current, and register the object of OpenGL again.",
        )
    return check(status, b"cuGraphicsUnmapResources")


cdef int _close(GraphicsResource resource, object stream) except -1:
    cdef Registration registration = resource.registration
    cdef Buffer buffer
    cdef CUresult status
    if registration is None or registration.handle == NULL:
        return 0
    if registration.is_mapped:
        _end_mapping(resource, stream)
    status = _unregister(registration)
    if status != CUDA_ERROR_NOT_PERMITTED:
        # Also where it fails: a GPU's driver has freed the resource nevertheless, and crashes when it is told again.
        registration.handle = NULL
        buffer = resource.buffer        # let go of behind this
        resource.registration, resource.buffer = None, None
    return check(status, b"cuGraphicsUnregisterResource")


cdef OpaqueArray _array(GraphicsResource resource, unsigned int part, unsigned int level):
    cdef Registration registration = resource.registration
    cdef CUarray handle = NULL
    cdef CUDA_ARRAY3D_DESCRIPTOR descriptor
    cdef CUdevice device = 0
    cdef OpaqueArray array
    cdef int pushed = enter(registration.context)
    try:
        check(
            cu.cuGraphicsSubResourceGetMappedArray(&handle, registration.handle, part, level),
            b"cuGraphicsSubResourceGetMappedArray",
        )
        check(cu.cuArray3DGetDescriptor(&descriptor, handle), b"cuArray3DGetDescriptor")
        check(cu.cuCtxGetDevice(&device), b"cuCtxGetDevice")
    finally:
        leave(pushed)
    format = {form.number: name for name, form in _options.FORMATS.items()}[<int>descriptor.Format]
    extents = (descriptor.Width, descriptor.Height, descriptor.Depth)
    array = borrowed_array(
        <uint64_t>handle, registration.context, device, registration, tuple([extent for extent in extents if extent]),
        format, descriptor.NumChannels, descriptor.Flags & CUPOLA_SURFACE_LDST != 0,
    )
    if resource.arrays is None:
        resource.arrays = []
    resource.arrays.append(array)
    return array


cdef unsigned int _name(object value, str what) except? 0xFFFFFFFF:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if not 0 <= number < 2**32:
        raise OverflowError(f"{what} must be from 0 to 2**32 - 1, got {number}")
    return <unsigned int>number


cdef unsigned int _flags(object flags) except? 0xFFFFFFFF:
    cdef unsigned int bits = 0
    if flags is None:
        return 0
    for flag in (flags,) if isinstance(flags, str) else flags:
        if not isinstance(flag, str) or flag not in FLAGS:
            raise ValueError(f"there is no flag {flag!r}; the flags are: {', '.join(sorted(FLAGS))}")
        bits |= <unsigned int>FLAGS[flag]
    return bits
