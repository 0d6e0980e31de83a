"""StridedMemoryView: a tensor of any library, viewed without a copy."""

import warnings

from libc.stdint cimport uint8_t, uintptr_t

from cupola.core.memory._buffer cimport Buffer
from cupola.core.base._dlpack cimport DLDevice, classify
from cupola.core.exchange._protocols cimport (
    has_dlpack, import_any, import_array_interface, import_cuda_array_interface, import_dlpack, is_viewable,
)
from cupola.core.exchange._strided_memory cimport OTHER_TYPE, StridedMemory

from cupola._above import above
from cupola.core.exchange._exchange_api import capsule as _exchange_api_capsule
from cupola.core.exchange._layout import _StridedLayout


cdef class StridedMemoryView(StridedMemory):
    """StridedMemoryView(obj=None, stream_ptr=None)\n--\n\nAddress, shape, strides and type of a tensor that belongs to somebody else. Nothing is ever copied.

    Make one with :meth:`from_any_interface`, :meth:`from_dlpack`, :meth:`from_cuda_array_interface`,
    :meth:`from_array_interface` or :meth:`from_buffer`. The exporter lives as long as the view.

    `stream_ptr`, where there is one, is the address of the stream that will use the data, such as
    ``stream.handle``. Work queued there afterwards runs after the work that produced the data; ``-1`` means that no
    such order is needed. For host memory the value is not used.

    Parameters
    ----------
    obj, stream_ptr
        Deprecated: as for :meth:`from_any_interface`.

    Attributes
    ----------
    ptr : int
        Address of the first element.
    device_id : int
        Ordinal of the device, -1 for host memory.
    is_device_accessible : bool
        Whether kernels may use the memory.
    readonly : bool
        Whether the exporter forbids writing.
    exporting_obj : object
        The object that the view was made from.

    Notes
    -----
    Threads may share it: it does not change.

    Examples
    --------
    >>> view = StridedMemoryView.from_any_interface(array, stream_ptr=stream.handle)
    >>> view.shape, view.dtype, view.is_device_accessible
    ((1000,), dtype('float32'), True)
    """

    # DLPack's C exchange API, under its name and the name of its draft.
    __dlpack_c_exchange_api__ = _exchange_api_capsule
    __c_dlpack_exchange_api__ = _exchange_api_capsule

    def __init__(self, obj=None, stream_ptr=None):
        warnings.warn(
            "StridedMemoryView(obj, stream_ptr) is deprecated; use StridedMemoryView.from_any_interface(obj, stream_ptr)",
            DeprecationWarning,
            stacklevel=2,
        )
        self.dl_type.code = OTHER_TYPE
        if obj is not None:
            import_any(self, obj, stream_ptr)

    @classmethod
    def from_any_interface(cls, obj, stream_ptr=None):
        """View an object through DLPack, or else the CUDA array interface.

        Parameters
        ----------
        obj : object
            NumPy, CuPy, PyTorch, JAX array, Buffer...
        stream_ptr : int
            The consumer's stream, -1 for none.

        Returns
        -------
        StridedMemoryView

        Raises
        ------
        BufferError
            When `obj` has neither protocol, or `stream_ptr` is missing.
        """
        cdef StridedMemoryView view = _new(cls)
        import_any(view, obj, stream_ptr)
        return view

    @classmethod
    def from_dlpack(cls, obj, stream_ptr=None):
        """View an object through DLPack (``__dlpack__``).

        Parameters
        ----------
        obj : object
            Exports DLPack; on the host, or CUDA device, pinned or managed memory.
        stream_ptr : int
            The consumer's stream, -1 for none. Zero leaves the order to the exporter's default.

        Returns
        -------
        StridedMemoryView

        Raises
        ------
        BufferError
            For memory of other devices, or when `stream_ptr` is missing.
        """
        cdef StridedMemoryView view = _new(cls)
        import_dlpack(view, obj, stream_ptr)
        return view

    @classmethod
    def from_cuda_array_interface(cls, obj, stream_ptr=None):
        """View an object through the CUDA array interface (``__cuda_array_interface__``, version 3).

        Parameters
        ----------
        obj : object
            Exports device memory.
        stream_ptr : int
            The consumer's stream, -1 for none.

        Returns
        -------
        StridedMemoryView

        Raises
        ------
        BufferError
            For an older version, a mask, or when `stream_ptr` is missing.
        ValueError
            When the strides are not multiples of the item size.
        """
        cdef StridedMemoryView view = _new(cls)
        import_cuda_array_interface(view, obj, stream_ptr)
        return view

    @classmethod
    def from_array_interface(cls, obj):
        """View host memory through NumPy's array interface (``__array_interface__``, version 3).

        Parameters
        ----------
        obj : object
            Exports host memory.

        Returns
        -------
        StridedMemoryView

        Raises
        ------
        BufferError
            For an older version or a mask.
        ValueError
            When the strides are not multiples of the item size.
        """
        cdef StridedMemoryView view = _new(cls)
        import_array_interface(view, obj)
        return view

    @classmethod
    def from_buffer(cls, buffer, shape, strides=None, *, itemsize=None, dtype=None, is_readonly=False):
        """View a Buffer as a tensor.

        Parameters
        ----------
        buffer : Buffer
            The memory.
        shape : tuple of int
            Extents.
        strides : tuple of int, optional
            In elements; row-major order without them.
        itemsize : int, optional
            Bytes of an element. It or `dtype` must be given.
        dtype : numpy.dtype, optional
            Type of the elements.
        is_readonly : bool
            Mark the view as read-only.

        Returns
        -------
        StridedMemoryView

        Raises
        ------
        ValueError
            When the tensor does not fit into a buffer of a memory resource, or the arguments contradict each other.
        """
        cdef StridedMemoryView view = _new(cls)
        cdef Buffer memory
        cdef DLDevice device
        if not isinstance(buffer, Buffer):
            raise AttributeError(f"buffer must be a Buffer, got {type(buffer).__name__}")
        memory = <Buffer>buffer
        memory.open_allocation()
        if not isinstance(shape, tuple) or not (strides is None or isinstance(strides, tuple)):
            raise TypeError("shape and strides must be tuples")
        layout = _StridedLayout(shape, strides, _item_size(itemsize, dtype))
        _check_fit(layout, memory, 0)
        view.is_device_accessible = buffer.is_device_accessible
        host = buffer.is_host_accessible
        view.device_id = buffer.device_id if view.is_device_accessible and not host else -1
        device = classify(view.is_device_accessible, host, host and buffer.is_managed, view.device_id)
        view.device_type = device.device_type
        view.ptr = memory.pointer
        view.exporting_obj = buffer
        view.readonly = is_readonly
        view.apply(layout, dtype)
        return view

    def view(self, layout=None, dtype=None):
        """The same memory under another layout or type.

        Parameters
        ----------
        layout : optional
            A layout made from that of this view; its slice offset moves the address.
        dtype : optional
            Anything that numpy.dtype takes, of the item size of the layout.

        Returns
        -------
        StridedMemoryView
            This object when there is nothing to change.

        Raises
        ------
        TypeError
            When `layout` is not a layout.
        ValueError
            When the item sizes differ, or the layout reaches beyond a buffer of a memory resource.
        RuntimeError
            When the buffer that the view is of was closed.
        """
        cdef StridedMemoryView other
        cdef Buffer memory
        if layout is None and dtype is None:
            return self
        self.require_memory()
        if layout is None:
            layout = self._layout
        elif not isinstance(layout, _StridedLayout):
            raise TypeError(f"layout must be a layout such as view._layout, got {type(layout).__name__}")
        if dtype is not None:
            import numpy

            dtype = numpy.dtype(dtype)
            if dtype.itemsize != layout.itemsize:
                raise ValueError(
                    f"{dtype} has {dtype.itemsize} bytes, the elements of the layout {layout.itemsize}; "
                    "repack the layout first"
                )
        if isinstance(self.exporting_obj, Buffer):
            memory = <Buffer>self.exporting_obj
            _check_fit(layout, memory, <Py_ssize_t>(self.ptr - memory.pointer))
        other = type(self).__new__(type(self))
        other.ptr = self.ptr + <uintptr_t><Py_ssize_t>layout.slice_offset_in_bytes
        other.device_id, other.device_type = self.device_id, self.device_type
        other.is_device_accessible, other.readonly = self.is_device_accessible, self.readonly
        other.exporting_obj = self.exporting_obj
        other.keeper = self
        other.apply(layout, dtype)
        if dtype is None and layout.itemsize == self.itemsize:
            other.dl_type, other.type_text = self.dl_type, self.type_text
        return other

    def as_tensor_map(
        self, box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None, swizzle=None,
        l2_promotion=None, oob_fill=None
    ):
        """Describe tiles of the tensor to the copy engine of the GPU, TMA (``cuTensorMapEncodeTiled``).

        Sequences begin with the outermost dimension, as the shape does; the driver is given them the other way round.
        The enums are in ``cupola.core.exchange._tensor_map``; None means their ``NONE``.

        Parameters
        ----------
        box_dim : tuple of int, optional
            What one copy moves: elements in each dimension, 1 to 256. The last one times the size of an element must be
            a multiple of 16 bytes. It or `options` must be given.
        options : TensorMapDescriptorOptions or dict, optional
            All arguments at once, instead of the others.
        element_strides : tuple of int, optional
            Take every so manyth element in each dimension, 1 to 8.
        data_type : numpy.dtype or TensorMapDataType, optional
            Type of the elements, by default the view's: uint8 to uint64, int32, int64, float16 to float64, bfloat16.
        interleave : TensorMapInterleave, optional
            Layout of the channels of images.
        swizzle : TensorMapSwizzle, optional
            Order in shared memory, against bank conflicts.
        l2_promotion : TensorMapL2Promotion, optional
            What is fetched into the second cache at a time.
        oob_fill : TensorMapOOBFill, optional
            What elements outside of the tensor are read as: zero by default, or a NaN.

        Returns
        -------
        TensorMapDescriptor
            It keeps this view.

        Raises
        ------
        TypeError
            For other types than these, and both or neither of `box_dim` and `options`.
        ValueError
            When the tensor is not on the current device or not aligned to 16 bytes, has a type or a number of
            dimensions that tensor maps do not have, or breaks a rule of the driver; the text says which.
        RuntimeError
            When no context is current.
        CUDAError
            When the device has no tensor maps: before compute capability 9.0.
        """
        if make_tensor_map == NULL:
            above("TensorMapDescriptor")        # sets it
        return make_tensor_map(
            self, box_dim, options, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
        )

    def copy_from(self, other, stream, allocator=None, blocking=None):
        """Reserved; copy between Buffers and arrays with :meth:`.Buffer.copy_from`.

        Parameters
        ----------
        other, stream, allocator, blocking
            Reserved.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("views do not copy; use Buffer.copy_from(array, stream=stream)")

    def copy_to(self, other, stream=None, allocator=None, blocking=None):
        """Reserved; copy between Buffers and arrays with :meth:`.Buffer.copy_to`.

        Parameters
        ----------
        other, stream, allocator, blocking
            Reserved.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("views do not copy; use Buffer.copy_to(array, stream=stream)")

    cdef int apply(self, object layout, object dtype) except -1:
        """Take shape, strides and item size from a layout, and the type from a numpy.dtype or None."""
        cdef int axis
        shape, strides = layout.shape, layout.strides
        self.set_rank(<int>len(shape))
        for axis in range(self.ndim):
            self.extents[axis] = shape[axis]
        if strides is None:
            self.set_row_major()
        else:
            self.explicit_strides = True
            for axis in range(self.ndim):
                self.extents[self.ndim + axis] = strides[axis]
        self.itemsize = layout.itemsize
        self.dl_type.code = OTHER_TYPE
        self.type_text = dtype
        return 0


cdef int _check_fit(object layout, Buffer memory, Py_ssize_t start) except -1:
    """Refuse a layout that, `start` bytes into a buffer, reaches beyond its memory."""
    if memory.open_allocation().resource is None:
        return 0        # the buffer may be a part of the memory
    lowest, highest = layout.offset_bounds
    if highest < lowest:
        return 0        # no elements
    if start + lowest * layout.itemsize < 0:
        raise ValueError(
            f"the layout reaches {-start - lowest * layout.itemsize} bytes below the start of the buffer"
        )
    if start + (highest + 1) * layout.itemsize > memory.nbytes:
        raise ValueError(
            f"the tensor needs {start + (highest + 1) * layout.itemsize} bytes, the buffer has {memory.nbytes}"
        )
    return 0


cdef StridedMemoryView _new(object cls):
    if cls is StridedMemoryView:
        return StridedMemoryView.__new__(StridedMemoryView)
    return cls.__new__(cls)


cdef object _item_size(object itemsize, object dtype):
    if dtype is None:
        if itemsize is None:
            raise ValueError("itemsize or dtype must be given")
        return itemsize
    import numpy

    if not isinstance(dtype, numpy.dtype):
        raise TypeError(f"dtype must be a numpy.dtype, got {dtype!r}; write numpy.dtype(...)")
    if itemsize is not None and itemsize != dtype.itemsize:
        raise ValueError(f"itemsize {itemsize} contradicts {dtype!r}, which has {dtype.itemsize} bytes")
    return dtype.itemsize


def _has_dlpack(obj):
    """Whether an object exports DLPack."""
    return has_dlpack(obj)


def _require_viewable(obj):
    """BufferError unless an object exports DLPack or the CUDA array interface."""
    if not is_viewable(obj):
        raise BufferError(
            f"{type(obj).__name__} does not support any data exchange protocol (DLPack, CUDA array interface)"
        )
