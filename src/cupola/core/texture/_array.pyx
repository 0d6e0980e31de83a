"""CUDA arrays: memory whose layout only the device knows, read through textures and reached by copies."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from cupola.core.base._cuda cimport (
    CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_UNIFIED, CU_STREAM_CAPTURE_STATUS_NONE, CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_MEMCPY3D, CUarray, CUarray_format, CUcontext, CUmipmappedArray, CUresult, CUstreamCaptureStatus, check,
    closed_error, cu, factory_error, gone_error,
)
from cupola.core.device._context cimport enter, leave
from cupola.core.device._stream cimport Stream, begin_recording, end_recording, new_stream, stream_argument
from cupola.core.exchange._copies cimport Side, keep_until_done, side_of
from cupola.core.texture._native cimport ARRAY, LEVEL, MIPMAPPED, NativeObject, new_native

from cupola.core.base._options import as_options
from cupola.core.device._device import Device
from cupola.core.texture import _options
from cupola.core.texture._options import MipmappedArrayOptions, OpaqueArrayOptions

cimport cython

cdef extern from *:
    """
    #define CUPOLA_SURFACE_LDST CUDA_ARRAY3D_SURFACE_LDST
    """
    unsigned int CUPOLA_SURFACE_LDST


cdef class OpaqueArray:
    """An array of elements in one, two or three dimensions, laid out as is best for textures (``CUarray``).

    It has no address. Data gets there and back by copies, and kernels read it through a :class:`TextureObject` and
    write it through a :class:`SurfaceObject`. Make it with :meth:`.Device.create_opaque_array`, or take a level of a
    :class:`MipmappedArray`. It may be used by several threads; closing it is for the last of them.

    Attributes
    ----------
    shape : tuple of int
        Extents in elements, width first: the reverse of a NumPy shape.
    format : ArrayFormatType
        Type of each channel.
    num_channels : int
        Channels of an element.
    element_bytes : int
        Bytes of an element, all channels together.
    is_surface_load_store : bool
        Whether a surface may be made of it.

    Examples
    --------
    >>> picture = np.arange(12, dtype=np.float32).reshape(3, 4)     # 3 rows of 4
    >>> array = dev.create_opaque_array({"shape": (4, 3), "format": "float32", "num_channels": 1})
    >>> array.copy_from(picture, stream=stream)
    >>> copy = array.copy_to(np.empty_like(picture), stream=stream)
    >>> stream.sync()
    >>> bool((copy == picture).all())
    True
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("OpaqueArray", "Device.create_opaque_array()")

    cdef NativeObject open_native(self):
        cdef NativeObject native = self.known_native()
        if native is None:
            raise closed_error(self)
        if native.is_gone():
            raise gone_error(self)
        return native

    @property
    def handle(self):
        """int: the native handle (``CUarray``), 0 once closed."""
        cdef NativeObject native = self.known_native()
        return 0 if native is None else native.handle

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.native is None

    @property
    def size_bytes(self):
        """int: bytes of all elements, as copies have them."""
        cdef size_t size = self.element_bytes
        for extent in self.shape:
            size *= <size_t>extent
        return size

    @property
    def device(self):
        """Device: where the array is."""
        return Device(self.device_id)

    def close(self):
        """Destroy the array (``cuArrayDestroy``), unless a texture or surface still needs it: then with the last of those.

        Idempotent. A level of a mipmapped array goes with the whole.
        """
        cdef NativeObject native
        with cython.critical_section(self):
            native = self.native        # let go of behind this
            self.native = None

    def copy_from(self, src, *, stream):
        """Overwrite the whole array, asynchronously (``cuMemcpy3DAsync``).

        Parameters
        ----------
        src : Buffer or array
            Of :attr:`size_bytes` bytes, or more. The elements lie one behind the other, x fastest, as in a NumPy array of
            shape ``(depth, height, width, channels)`` in row-major order. An array in pageable memory has been read when
            the call returns; other arrays are kept alive until they have been read.
        stream : Stream or GraphBuilder
            Where the copy is queued, or recorded.

        Raises
        ------
        TypeError
            When `src` is neither.
        ValueError
            When it has fewer bytes.
        """
        _copy(self, src, stream, False)

    def copy_to(self, dst, *, stream):
        """Copy the whole array, asynchronously (``cuMemcpy3DAsync``).

        Parameters
        ----------
        dst : Buffer or array
            Of :attr:`size_bytes` bytes, or more; written as :meth:`copy_from` reads. An array in pageable memory has been
            written when the call returns; other arrays are kept alive until they have been written.
        stream : Stream or GraphBuilder
            Where the copy is queued, or recorded.

        Returns
        -------
        Buffer or array
            The destination.

        Raises
        ------
        TypeError
            When `dst` is neither.
        ValueError
            When it has fewer bytes, or is read-only.
        """
        _copy(self, dst, stream, True)
        return dst

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"OpaqueArray(shape={self.shape}, format={self.format.name}, num_channels={self.num_channels})"

    def __reduce__(self):
        raise TypeError("an OpaqueArray belongs to this process: it cannot be pickled or copied")


cdef class MipmappedArray:
    """Arrays of falling size, the levels, each half as large as the one before in every dimension (``CUmipmappedArray``).

    A texture of it mixes between levels. Make it with :meth:`.Device.create_mipmapped_array`.

    Attributes
    ----------
    shape : tuple of int
        Extents of level 0 in elements, width first.
    format : ArrayFormatType
        Type of each channel.
    num_channels : int
        Channels of an element.
    num_levels : int
        How many levels.
    is_surface_load_store : bool
        Whether surfaces may be made of the levels.

    Notes
    -----
    Threads may share it, and any of them may close it.
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("MipmappedArray", "Device.create_mipmapped_array()")

    cdef NativeObject open_native(self):
        cdef NativeObject native = self.known_native()
        if native is None:
            raise closed_error(self)
        if native.is_gone():
            raise gone_error(self)
        return native

    @property
    def handle(self):
        """int: the native handle (``CUmipmappedArray``), 0 once closed."""
        cdef NativeObject native = self.known_native()
        return 0 if native is None else native.handle

    @property
    def is_closed(self):
        """bool: whether :meth:`close` was called."""
        return self.native is None

    @property
    def device(self):
        """Device: where the array is."""
        return Device(self.device_id)

    def close(self):
        """Destroy the array (``cuMipmappedArrayDestroy``), unless a level or texture still needs it: then with the last.

        Idempotent.
        """
        cdef NativeObject native
        with cython.critical_section(self):
            native = self.native        # let go of behind this
            self.native = None

    def get_level(self, level):
        """One of the levels, which keeps the memory of all (``cuMipmappedArrayGetLevel``).

        Parameters
        ----------
        level : int
            0 is the largest.

        Returns
        -------
        OpaqueArray

        Raises
        ------
        ValueError
            There is no such level.
        """
        cdef NativeObject native = self.open_native()
        cdef CUarray array = NULL
        cdef CUresult status
        cdef int pushed
        if not hasattr(type(level), "__index__"):
            raise TypeError(f"level must be an int, not {type(level).__name__}")
        number = level.__index__()
        if not 0 <= number < self.num_levels:
            raise ValueError(f"there is no level {number}: the array has levels 0 to {self.num_levels - 1}")
        pushed = enter(native.context)
        status = cu.cuMipmappedArrayGetLevel(&array, <CUmipmappedArray>native.handle, <unsigned int>number)
        leave(pushed)
        check(status, b"cuMipmappedArrayGetLevel")
        return borrowed_array(
            <uint64_t>array, native.context, self.device_id, native,
            tuple([max(extent >> number, 1) for extent in self.shape]), self.format, self.num_channels,
            self.is_surface_load_store,
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return (
            f"MipmappedArray(shape={self.shape}, format={self.format.name}, num_channels={self.num_channels}, "
            f"num_levels={self.num_levels})"
        )

    def __reduce__(self):
        raise TypeError("a MipmappedArray belongs to this process: it cannot be pickled or copied")


cdef OpaqueArray borrowed_array(
    uint64_t handle, CUcontext context, int device_id, object needs, tuple shape, object format, int num_channels,
    bint is_surface_load_store
):
    cdef OpaqueArray array = OpaqueArray.__new__(OpaqueArray)
    array.native = new_native(LEVEL, handle, context, device_id, needs)
    array.shape, array.format, array.num_channels = shape, format, num_channels
    array.element_bytes = num_channels * <int>_options.FORMATS[format].bytes
    array.is_surface_load_store, array.device_id = is_surface_load_store, device_id
    return array


# --- making them ------------------------------------------------------------------------------------------


cdef int _fill_descriptor(object options, CUDA_ARRAY3D_DESCRIPTOR* descriptor) except -1:
    memset(descriptor, 0, sizeof(CUDA_ARRAY3D_DESCRIPTOR))
    extents = [*options.shape, 0, 0]
    descriptor.Width, descriptor.Height, descriptor.Depth = extents[0], extents[1], extents[2]
    descriptor.Format = <CUarray_format><int>_options.FORMATS[options.format].number
    descriptor.NumChannels = options.num_channels
    descriptor.Flags = CUPOLA_SURFACE_LDST if options.is_surface_load_store else 0
    return 0


def create_opaque_array(device, context, options):
    """Device.create_opaque_array, in the context with that address."""
    cdef OpaqueArray array
    cdef CUDA_ARRAY3D_DESCRIPTOR descriptor
    cdef CUarray pointer = NULL
    cdef CUcontext native = <CUcontext><uint64_t>context
    cdef CUresult status
    cdef int pushed
    chosen = _chosen(OpaqueArrayOptions, options)
    _fill_descriptor(chosen, &descriptor)
    pushed = enter(native)
    with nogil:
        status = cu.cuArray3DCreate(&pointer, &descriptor)
    leave(pushed)
    check(status, b"cuArray3DCreate")
    array = OpaqueArray.__new__(OpaqueArray)
    array.native = new_native(ARRAY, <uint64_t>pointer, native, device, None)
    array.shape, array.format, array.num_channels = chosen.shape, chosen.format, chosen.num_channels
    array.element_bytes = array.num_channels * <int>_options.FORMATS[chosen.format].bytes
    array.is_surface_load_store, array.device_id = bool(chosen.is_surface_load_store), device
    return array


def create_mipmapped_array(device, context, options):
    """Device.create_mipmapped_array, in the context with that address."""
    cdef MipmappedArray array
    cdef CUDA_ARRAY3D_DESCRIPTOR descriptor
    cdef CUmipmappedArray pointer = NULL
    cdef CUcontext native = <CUcontext><uint64_t>context
    cdef CUresult status
    cdef unsigned int levels
    cdef int pushed
    chosen = _chosen(MipmappedArrayOptions, options)
    most = max(chosen.shape).bit_length()
    if chosen.num_levels > most:
        raise ValueError(
            f"num_levels is {chosen.num_levels}; an array of {' x '.join(map(str, chosen.shape))} elements has at most "
            f"{most} levels"
        )
    _fill_descriptor(chosen, &descriptor)
    levels = chosen.num_levels
    pushed = enter(native)
    with nogil:
        status = cu.cuMipmappedArrayCreate(&pointer, &descriptor, levels)
    leave(pushed)
    check(status, b"cuMipmappedArrayCreate")
    array = MipmappedArray.__new__(MipmappedArray)
    array.native = new_native(MIPMAPPED, <uint64_t>pointer, native, device, None)
    array.shape, array.format, array.num_channels = chosen.shape, chosen.format, chosen.num_channels
    array.num_levels = levels
    array.is_surface_load_store, array.device_id = bool(chosen.is_surface_load_store), device
    return array


cdef object _chosen(object cls, object options):
    """The options, checked again since they may have been changed."""
    if options is None:
        raise TypeError(f"options must be {cls.__name__} or a dict of its fields, not None")
    chosen = as_options(cls, options)
    chosen.__post_init__()
    return chosen


# --- copies -----------------------------------------------------------------------------------------------


cdef int _copy(OpaqueArray array, object memory, object stream, bint out) except -1:
    cdef Stream queue
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef CUDA_MEMCPY3D form
    cdef NativeObject native
    cdef CUresult status
    cdef int pushed
    cdef Side side
    cdef size_t size = array.size_bytes
    array.open_native()
    queue = new_stream(stream_argument(stream).hold())      # which no code written in Python can close
    if isinstance(memory, (OpaqueArray, MipmappedArray)):
        raise TypeError(f"arrays are copied from and to a Buffer or an array on the host, not {type(memory).__name__}")
    check(cu.cuStreamIsCapturing(queue.pointer, &capture), b"cuStreamIsCapturing")
    side = side_of(memory, "dst" if out else "src", out, queue, capture != CU_STREAM_CAPTURE_STATUS_NONE)
    if side.size < size:
        raise ValueError(f"the array has {size} bytes, {'dst' if out else 'src'} only {side.size}")
    if side.extents != NULL and side.size != size:
        raise ValueError(f"the array has {size} bytes, {'dst' if out else 'src'} has {side.size}, which are not contiguous")
    native = array.open_native()        # behind all code written in Python
    turn = None
    if type(stream) is not Stream:
        turn = begin_recording(stream, (native, side.keeper()))
    try:
        _fill_form(&form, array, native, side, out)
        if not out:
            side.gather()
        pushed = enter(native.context)
        with nogil:
            status = cu.cuMemcpy3DAsync(&form, queue.pointer)
        leave(pushed)
        check(status, b"cuMemcpy3DAsync")
    finally:
        end_recording(turn)
    if out and side.extents != NULL:
        with nogil:
            status = cu.cuStreamSynchronize(queue.pointer)
        check(status, b"cuStreamSynchronize")
        side.scatter()
    if capture == CU_STREAM_CAPTURE_STATUS_NONE:
        keep_until_done(side, queue.pointer)
    return 0


cdef int _fill_form(CUDA_MEMCPY3D* form, OpaqueArray array, NativeObject native, Side side, bint out) except -1:
    """The box of all elements, of which the other side has one row behind the other."""
    cdef size_t height = array.shape[1] if len(array.shape) > 1 else 1
    # Memory that CUDA does not know has to be called memory of the host.
    cdef bint unified = side.is_buffer or not side.is_pageable()
    memset(form, 0, sizeof(CUDA_MEMCPY3D))
    form.WidthInBytes = array.element_bytes * <size_t>array.shape[0]
    form.Height = height
    form.Depth = array.shape[2] if len(array.shape) > 2 else 1
    if out:
        form.srcMemoryType, form.srcArray = CU_MEMORYTYPE_ARRAY, <CUarray>native.handle
        form.dstPitch, form.dstHeight = form.WidthInBytes, height
        form.dstMemoryType = CU_MEMORYTYPE_UNIFIED if unified else CU_MEMORYTYPE_HOST
        form.dstDevice, form.dstHost = side.place(), <void*>side.place()
    else:
        form.dstMemoryType, form.dstArray = CU_MEMORYTYPE_ARRAY, <CUarray>native.handle
        form.srcPitch, form.srcHeight = form.WidthInBytes, height
        form.srcMemoryType = CU_MEMORYTYPE_UNIFIED if unified else CU_MEMORYTYPE_HOST
        form.srcDevice, form.srcHost = side.place(), <void*>side.place()
    return 0
