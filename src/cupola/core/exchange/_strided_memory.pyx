"""A tensor in memory: address, shape, strides, type and owner."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from cupola.core.memory._buffer cimport Buffer
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.base._dlpack cimport (
    DLDataType, DLTensor, kDLBfloat, kDLBool, kDLComplex, kDLCPU, kDLCUDA, kDLFloat, kDLInt, kDLUInt, make_capsule,
    parse_request,
)

from cupola.core.exchange._layout import _StridedLayout

cimport cython

# DLPack's (code, bits) of NumPy's kinds of type, and back.
cdef dict _CODES = {"b": kDLBool, "i": kDLInt, "u": kDLUInt, "f": kDLFloat, "c": kDLComplex}
cdef dict _NAMES = {kDLInt: "int", kDLUInt: "uint", kDLFloat: "float", kDLComplex: "complex"}
cdef dict _known_dtypes = {}


@cython.freelist(16)
@cython.no_gc_clear     # the deleter of an exporter runs at the end, and may need what the fields refer to
cdef class StridedMemory:

    def __cinit__(self):
        self.ndim = -1
        self.device_id = -1
        self.device_type = kDLCPU
        self.extents = self.few_extents

    def __dealloc__(self):
        if self.extents != self.few_extents:
            PyMem_Free(self.extents)
        if self.managed != NULL and self.managed.deleter != NULL:
            self.managed.deleter(self.managed)
        if self.managed_versioned != NULL and self.managed_versioned.deleter != NULL:
            self.managed_versioned.deleter(self.managed_versioned)

    cdef int set_rank(self, int ndim) except -1:
        """Make room for a shape and strides of `ndim` entries each."""
        if ndim < 0 or ndim > 64:
            raise ValueError(f"a view has at most 64 dimensions, got {ndim}")
        if ndim > INLINE_DIMENSIONS:
            self.extents = <int64_t*>PyMem_Malloc(2 * ndim * sizeof(int64_t))
            if self.extents == NULL:
                self.extents = self.few_extents
                raise MemoryError()
        self.ndim = ndim
        return 0

    cdef int64_t count(self) except -1:
        cdef int64_t result = 1
        cdef int axis
        self.require_content()
        for axis in range(self.ndim):
            result *= self.extents[axis]
        return result

    cdef int require_content(self) except -1:
        if self.ndim < 0:
            raise ValueError("Cannot infer layout: the view is empty; make one with from_any_interface(obj)")
        return 0

    cdef int require_memory(self) except -1:
        self.require_content()
        if isinstance(self.exporting_obj, Buffer):
            (<Buffer>self.exporting_obj).open_allocation()
        return 0

    # --- properties -----------------------------------------------------------------------------------

    @property
    def shape(self):
        """tuple of int: the extents."""
        self.require_content()
        return tuple([self.extents[axis] for axis in range(self.ndim)])

    @property
    def strides(self):
        """tuple of int or None: the strides in elements; None for a row-major layout that gave none."""
        self.require_content()
        if not self.explicit_strides or self.ndim == 0:
            return None
        return tuple([self.extents[self.ndim + axis] for axis in range(self.ndim)])

    @property
    def size(self):
        """int: the number of elements."""
        return self.count()

    @property
    def dtype(self):
        """numpy.dtype or None: the type of the elements; None when only their size is known.

        Raises
        ------
        NotImplementedError
            For vector types, and for bfloat16 without the package ml_dtypes.
        TypeError
            For types that NumPy does not have.
        """
        cdef Alone alone
        begin_alone(&alone, <PyObject*>self)
        found = self.cached_dtype
        end_alone(&alone)
        if found is None and self.ndim >= 0:
            found = self.find_dtype()
            with cython.critical_section(self):
                self.cached_dtype = found
        return found

    @property
    def _layout(self):
        return _StridedLayout(self.shape, self.strides, self.itemsize)

    cdef object find_dtype(self):
        cdef object key
        if self.dl_type.code == OTHER_TYPE:
            if self.type_text is None:
                return None
            import numpy

            return numpy.dtype(self.type_text)
        key = self.dl_type.code << 24 | self.dl_type.bits << 16 | self.dl_type.lanes
        found = _known_dtypes.get(key)
        if found is None:
            found = _known_dtypes[key] = _numpy_dtype(self.dl_type)
        return found

    # --- export ---------------------------------------------------------------------------------------

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The tensor as a DLPack capsule that keeps this view alive. This neither waits nor copies.

        Parameters
        ----------
        stream : int, optional
            Ignored.
        max_version : tuple of (int, int), optional
            From (1, 0) on the capsule is a versioned one, which alone can say that the memory is read-only.
        dl_device, copy
            Must be None (`copy` may be False).

        Raises
        ------
        BufferError
            For a request to move or copy, and for types that DLPack does not have.
        RuntimeError
            When the buffer that the view is of was closed.
        """
        cdef bint versioned = parse_request(stream, max_version, dl_device, copy)
        cdef DLTensor tensor
        self.describe(&tensor)
        return make_capsule(&tensor, self, versioned, self.readonly)

    def __dlpack_device__(self):
        """tuple of (int, int): the DLPack device type and id of the memory."""
        self.require_memory()
        return self.device_type, self.device_id if self.device_type == kDLCUDA else 0

    cdef void set_row_major(self) noexcept:
        """Write the strides of a row-major layout without gaps behind the shape."""
        cdef int axis
        cdef int64_t stride = 1
        for axis in range(self.ndim - 1, -1, -1):
            self.extents[self.ndim + axis] = stride
            stride *= max(self.extents[axis], 1)
        self.explicit_strides = False

    cdef int describe(self, DLTensor* tensor) except -1:
        """Describe the memory as a DLTensor, whose shape and strides are borrowed from this object."""
        self.require_memory()
        tensor.data = <void*>self.ptr if self.count() else NULL
        tensor.device.device_type = self.device_type
        tensor.device.device_id = self.device_id if self.device_type == kDLCUDA else 0
        tensor.ndim = self.ndim
        tensor.shape, tensor.strides = self.extents, self.extents + self.ndim
        tensor.byte_offset = 0
        tensor.dtype = self.dl_type if self.dl_type.code != OTHER_TYPE else _dl_type(self.dtype)
        return 0

    def __repr__(self):
        cdef object owner = type(self.exporting_obj)
        self.require_content()
        return (
            f"StridedMemoryView(ptr={self.ptr:#x},\n"
            f"                  shape={self.shape},\n"
            f"                  strides={self.strides},\n"
            f"                  itemsize={self.itemsize},\n"
            f"                  dtype={self.dtype},\n"
            f"                  device_id={self.device_id},\n"
            f"                  is_device_accessible={self.is_device_accessible},\n"
            f"                  readonly={self.readonly},\n"
            f"                  exporting_obj={owner.__module__}.{owner.__qualname__})"
        )

    def __reduce__(self):
        raise TypeError("a view cannot be pickled: its memory belongs to another object")


cdef object _numpy_dtype(DLDataType dl_type):
    """The numpy.dtype of a DLPack type."""
    import numpy

    if dl_type.lanes != 1:
        raise NotImplementedError(f"elements that are vectors of {dl_type.lanes} lanes have no numpy.dtype")
    if dl_type.code == kDLBool and dl_type.bits == 8:
        return numpy.dtype(numpy.bool_)
    if dl_type.code == kDLBfloat and dl_type.bits == 16:
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            raise NotImplementedError("bfloat16 is a numpy.dtype only with ml_dtypes: pip install ml_dtypes") from None
        return numpy.dtype(bfloat16)
    try:
        return numpy.dtype(f"{_NAMES[dl_type.code]}{dl_type.bits}")
    except (KeyError, TypeError):
        raise TypeError(f"NumPy has no type for DLPack code {dl_type.code} with {dl_type.bits} bits") from None


cdef DLDataType _dl_type(object dtype) except *:
    """The DLPack type of a numpy.dtype, which must be a plain number in the byte order of the machine."""
    cdef DLDataType result
    if dtype is None:
        raise BufferError("a view without a dtype cannot be exported; give one with view(dtype=...)")
    code = _CODES.get(dtype.kind)
    if code is None or not dtype.isnative or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise BufferError(f"DLPack has no type for {dtype!r}")
    result.code, result.bits, result.lanes = <uint8_t>code, <uint8_t>(8 * dtype.itemsize), 1
    return result
