"""Array: memory with a type, a shape and strides.

An Array knows its elements as NumPy does: a dtype, a shape, strides in bytes, all read without asking the device. Its
memory is a Buffer, which all views of one array share and keep. Slices, reshapes and transposes are views and never
copies; what moves elements is in _transfer.py.

`cupola.numpy` derives its arrays from this class. They may exist before their elements are computed: then there is a
shape, but no memory, and `_compute` is called when the memory is first needed.
"""

import sys

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from libc.stdint cimport int64_t, uint8_t, uint16_t, uintptr_t
from libc.string cimport memcpy

from cupola.core.base._cuda cimport closed_error, factory_error
from cupola.core.base._dlpack cimport (
    DLDataType, DLDevice, DLTensor, classify, kDLBfloat, kDLBool, kDLComplex, kDLCUDA, kDLFloat, kDLInt, kDLUInt,
    make_capsule, parse_request,
)
from cupola.core.base._elements cimport (
    ANY_ELEMENT, BFLOAT16, COMPLEX64, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64,
)
from cupola.core.device._device cimport Device
from cupola.core.device._stream cimport Stream, current_stream, default_stream
from cupola.core.memory._buffer cimport Buffer

from cupola._above import above
from cupola.core.base._cuda import put_up_signs

cimport cython

cdef extern from "Python.h":
    bint PyIndex_Check(object) noexcept
    Py_ssize_t PyNumber_AsSsize_t(object, object) except? -1
    int PySlice_Unpack(object, Py_ssize_t*, Py_ssize_t*, Py_ssize_t*) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t, Py_ssize_t*, Py_ssize_t*, Py_ssize_t) noexcept

# What is asked of numpy.dtype once. The types and dtypes stay in these tables.
cdef dict _dtypes = {}                  # NumPy's scalar types and Python's number types -> dtype
cdef dict _elements = {}                # dtype -> bit of its elements
cdef object _numpy = None

cdef dict _BITS = {
    "i2": INT16, "u2": INT16, "i4": INT32, "u4": INT32, "i8": INT64, "u8": INT64, "f2": FLOAT16, "f4": FLOAT32,
    "f8": FLOAT64, "c8": COMPLEX64, "c16": COMPLEX128,
}
cdef dict _CODES = {"b": kDLBool, "i": kDLInt, "u": kDLUInt, "f": kDLFloat, "c": kDLComplex}

# How many of the first elements a repr shows.
cdef int SHOWN = 6


cdef object numpy():
    global _numpy
    if _numpy is None:
        try:
            import numpy as found
        except ImportError:
            raise ImportError("arrays need NumPy, whose dtypes they have: pip install numpy") from None
        _numpy = found
    return _numpy


cdef object as_dtype(object dtype):
    cdef object found = _dtypes.get(dtype) if isinstance(dtype, type) else None
    if found is None:
        found = numpy().dtype(dtype)
        if found.hasobject or found.kind in "OSUMm":
            raise TypeError(f"elements of type {found} cannot be on a device; numbers, bool and structures of them can")
        if isinstance(dtype, type):
            _dtypes[dtype] = found
    return found


cdef uint16_t _bit_of(object dtype) except 0:
    if dtype.name == "bfloat16":
        return BFLOAT16
    return _BITS.get(f"{dtype.kind}{dtype.itemsize}", ANY_ELEMENT) if dtype.isnative else ANY_ELEMENT


@cython.freelist(16)
cdef class Array:
    """Memory on a device or on the host, with a type, a shape and strides.

    :meth:`Device.array`, :meth:`Device.empty`, :meth:`Device.zeros` and :meth:`Device.full` make arrays;
    :meth:`from_buffer` gives a :class:`Buffer` a type and a shape. An array is passed to kernels as the address of its
    first element. Slices and reshapes are views: they share the memory and keep it.

    There is no arithmetic: kernels do that, or ``cupola.numpy``.

    Attributes
    ----------
    itemsize : int
        Bytes of an element.

    Notes
    -----
    Threads may share it: it does not change. Calls without a stream use that of the innermost ``with`` block of a stream
    (:meth:`Device.stream`). Outside of such a block they wait: what makes an array, until it is ready for any stream,
    and what reads one, until all work on its device is done.

    Examples
    --------
    >>> x = dev.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> x.shape, x.strides, x[1].to_numpy()
    ((2, 3), (12, 4), array([3., 4., 5.], dtype=float32))
    """

    def __cinit__(self):
        self.extents = self.few_extents
        self.rank = 0

    def __init__(self, *args, **kwargs):
        raise factory_error("Array", "Device.array, empty, zeros or full, or Array.from_buffer")

    def __dealloc__(self):
        if self.extents != self.few_extents:
            PyMem_Free(self.extents)

    @classmethod
    def from_buffer(cls, buffer, shape, dtype="float64", *, strides=None, offset=0):
        """Give a Buffer a type and a shape. Nothing is copied.

        Parameters
        ----------
        buffer : Buffer
            The memory. The array keeps it.
        shape : int or tuple of int
            Extents.
        dtype : optional
            What ``numpy.dtype`` takes; float64 by default.
        strides : tuple of int, optional
            In bytes; row-major order without them.
        offset : int
            Bytes from the start of the buffer to the first element.

        Returns
        -------
        Array

        Raises
        ------
        ValueError
            The elements do not all lie in the buffer.
        """
        cdef Array made
        if not isinstance(buffer, Buffer):
            raise TypeError(f"buffer must be a Buffer, got {type(buffer).__name__}")
        made = cls.__new__(cls)
        made.set_shape(shape, as_dtype(dtype))
        if strides is not None:
            made.take_strides(strides)
        made._settle(buffer, offset)
        return made

    # --- inside ---------------------------------------------------------------------------------------

    cdef int set_rank(self, Py_ssize_t rank) except -1:
        if rank > MOST_AXES:
            raise ValueError(f"an array has at most {MOST_AXES} dimensions, got {rank}")
        if rank > INLINE_AXES and self.extents == self.few_extents:
            self.extents = <Py_ssize_t*>PyMem_Malloc(2 * MOST_AXES * sizeof(Py_ssize_t))
            if self.extents == NULL:
                self.extents = self.few_extents
                raise MemoryError()
        self.rank = <int>rank
        return 0

    cdef int set_type(self, object dtype) except -1:
        found = _elements.get(dtype)
        if found is None:
            found = _elements[dtype] = (_bit_of(dtype), <Py_ssize_t>dtype.itemsize)
        self.type = dtype
        self.element = <uint16_t>(<tuple>found)[0]
        self.itemsize = (<tuple>found)[1]
        return 0

    cdef int set_shape(self, object shape, object dtype) except -1:
        cdef Py_ssize_t extent, axis, stride, count = 1
        self.set_type(dtype)
        if PyIndex_Check(shape) and not isinstance(shape, bool):
            shape = (shape,)
        elif not isinstance(shape, (tuple, list)):
            raise TypeError(f"a shape is an int or a tuple of them, got {type(shape).__name__}")
        self.set_rank(len(shape))
        for axis in range(self.rank):
            if not PyIndex_Check(shape[axis]) or isinstance(shape[axis], bool):
                raise TypeError(f"a shape is an int or a tuple of them, got {shape!r}")
            extent = PyNumber_AsSsize_t(shape[axis], OverflowError)
            if extent < 0:
                raise ValueError(f"extents must not be negative, got shape {shape}")
            self.extents[axis] = extent
        stride = self.itemsize
        for axis in range(self.rank - 1, -1, -1):
            self.extents[self.rank + axis] = stride
            extent = max(self.extents[axis], 1)
            if stride and extent > sys.maxsize // stride:
                raise ValueError(f"an array of shape {tuple(shape)} and type {dtype} has too many bytes")
            stride *= extent
        self.dense = True
        return 0

    cdef int find_dense(self) except -1:
        cdef int axis
        cdef Py_ssize_t stride = self.itemsize
        self.dense = True
        for axis in range(self.rank - 1, -1, -1):
            if self.extents[axis] == 0:
                self.dense = True
                return 0
            if self.extents[axis] != 1 and self.extents[self.rank + axis] != stride:
                self.dense = False
            stride *= self.extents[axis]
        return 0

    cdef Buffer open_memory(self):
        if self.memory is None:
            self._compute()
        if self.memory.known_allocation() is None:
            raise closed_error(self)
        self.memory.open_allocation()
        return self.memory

    cdef Array beside(self, Py_ssize_t rank):
        cdef Array other
        self.open_memory()
        other = (<object>type(self)).__new__(type(self))
        other.pointer, other.memory, other.element, other.readonly = (
            self.pointer, self.memory, self.element, self.readonly
        )
        other.itemsize, other.type = self.itemsize, self.type
        other.set_rank(rank)
        return other

    cdef int take_strides(self, object strides) except -1:
        cdef int axis
        if len(strides) != self.rank:
            raise ValueError(f"{self.rank} extents and {len(strides)} strides are given")
        for axis in range(self.rank):
            self.extents[self.rank + axis] = strides[axis]
        self.find_dense()
        return 0

    def _bounds(self):
        """The first byte of the elements and the byte behind the last, from the first element."""
        cdef Py_ssize_t low = 0, high = self.itemsize
        cdef int axis
        for axis in range(self.rank):
            if self.extents[axis] == 0:
                return 0, 0
            if self.extents[self.rank + axis] < 0:
                low += (self.extents[axis] - 1) * self.extents[self.rank + axis]
            else:
                high += (self.extents[axis] - 1) * self.extents[self.rank + axis]
        return low, high

    def _settle(self, Buffer buffer not None, Py_ssize_t offset=0):
        """Take the memory, `offset` bytes into which the first element lies."""
        cdef Py_ssize_t size
        buffer.open_allocation()
        size = <Py_ssize_t>buffer.nbytes
        if offset < 0 or offset > size:
            raise ValueError(f"offset {offset} is outside of the buffer of {size} bytes")
        low, high = self._bounds()
        if offset + low < 0 or offset + high > size:
            raise ValueError(
                f"an array of shape {self.shape}, type {self.type} and strides {self.strides} needs bytes "
                f"{offset + low} to {offset + high}, the buffer has {size}"
            )
        self.pointer = buffer.pointer + <uintptr_t>offset
        self.memory = buffer

    def _compute(self):
        raise closed_error(self)

    def _describe(self, shape, dtype):
        """Take a shape, in row-major order, and a dtype, before there is memory: for subclasses."""
        self.set_shape(shape, dtype)

    def _plain(self):
        """The same array as one of the base class."""
        cdef Array other
        cdef Py_ssize_t i
        self.open_memory()
        other = Array.__new__(Array)
        other.pointer, other.memory, other.element, other.readonly = (
            self.pointer, self.memory, self.element, self.readonly
        )
        other.itemsize, other.type, other.dense = self.itemsize, self.type, self.dense
        other.set_rank(self.rank)
        for i in range(2 * self.rank):
            other.extents[i] = self.extents[i]
        return other

    def _lend(self):
        """Called before a kernel gets the array of a subclass, and may read or write it in any stream."""

    def _offset(self):
        """Bytes from the start of the buffer to the first element."""
        return self.pointer - self.open_memory().pointer

    def _view_of(self, shape, strides, Py_ssize_t offset=0, dtype=None):
        """Other extents in the same memory, `offset` bytes on: what all views come down to. Not checked."""
        cdef Array other = self.beside(len(shape))
        cdef int axis
        if dtype is not None:
            other.set_type(dtype)
        for axis in range(other.rank):
            other.extents[axis] = shape[axis]
            other.extents[other.rank + axis] = strides[axis]
        other.pointer += <uintptr_t>offset
        other.find_dense()
        return other

    # --- properties -----------------------------------------------------------------------------------

    @property
    def dtype(self):
        """numpy.dtype: the type of the elements."""
        return self.type

    @property
    def shape(self):
        """tuple of int: the extents."""
        return tuple([self.extents[axis] for axis in range(self.rank)])

    @property
    def strides(self):
        """tuple of int: bytes from one element to the next, for each dimension."""
        return tuple([self.extents[self.rank + axis] for axis in range(self.rank)])

    @property
    def ndim(self):
        """int: the number of dimensions."""
        return self.rank

    @property
    def size(self):
        """int: the number of elements."""
        return self.count()

    @property
    def nbytes(self):
        """int: bytes of all elements."""
        return self.count() * self.itemsize

    @property
    def handle(self):
        """int: the address of the first element."""
        self.open_memory()
        return self.pointer

    @property
    def buffer(self):
        """Buffer: the memory, shared with all views of it."""
        return self.open_memory()

    @property
    def is_contiguous(self):
        """bool: whether the elements lie in row-major order without gaps."""
        return self.dense

    @property
    def is_closed(self):
        """bool: whether the memory was freed by :meth:`close`."""
        return self.memory is not None and self.memory.known_allocation() is None

    @property
    def device_id(self):
        """int: ordinal of the device, -1 for memory that the host can read."""
        cdef Buffer memory = self.open_memory()
        return -1 if memory.is_host_accessible else memory.device_id

    @property
    def T(self):
        """Array: the view with all dimensions reversed."""
        return self.transpose()

    # --- views ----------------------------------------------------------------------------------------

    def __len__(self):
        if self.rank == 0:
            raise TypeError("an array of no dimensions has no length")
        return self.extents[0]

    def __iter__(self):
        if self.rank == 0:
            raise TypeError("an array of no dimensions cannot be iterated over")
        return (self[i] for i in range(self.extents[0]))

    def __bool__(self):
        raise TypeError("the truth value of an array is in its memory; look at array.to_numpy()")

    def __getitem__(self, key):
        """A view of a part: ints, slices, ``...`` and None, as in NumPy."""
        return self.part(key)

    cdef Array part(self, object key):
        cdef tuple keys = <tuple>key if isinstance(key, tuple) else (key,)
        cdef Py_ssize_t used = 0, rank = self.rank, axis = 0, to = 0, start, stop, step, extent, stride
        cdef bint filled = False
        cdef Array other
        for item in keys:
            if item is None:
                rank += 1
            elif item is Ellipsis:
                if filled:
                    raise IndexError("an index can only have a single ellipsis ('...')")
                filled = True
            else:
                used += 1
                if not PySlice_Check(item):
                    rank -= 1
        if used > self.rank:
            raise IndexError(f"too many indices for an array of {self.rank} dimensions: {used} were given")
        for item in keys:
            # Before there is anything to free.
            if not (item is None or item is Ellipsis or PySlice_Check(item)) and (
                isinstance(item, bool) or not PyIndex_Check(item) or isinstance(item, Array)
            ):
                raise TypeError(self._why_no_index(item))
        other = self.beside(max(rank, 0))
        for item in keys if filled else (*keys, Ellipsis):
            if item is None:
                other.extents[to], other.extents[rank + to] = 1, 0
                to += 1
            elif item is Ellipsis:
                for _ in range(self.rank - used):
                    other.extents[to] = self.extents[axis]
                    other.extents[rank + to] = self.extents[self.rank + axis]
                    to += 1
                    axis += 1
            elif PySlice_Check(item):
                stride = self.extents[self.rank + axis]
                PySlice_Unpack(item, &start, &stop, &step)
                extent = PySlice_AdjustIndices(self.extents[axis], &start, &stop, step)
                if extent:
                    other.pointer += <uintptr_t>(start * stride)
                other.extents[to], other.extents[rank + to] = extent, stride * step
                to += 1
                axis += 1
            else:
                start = PyNumber_AsSsize_t(item, IndexError)
                extent = self.extents[axis]
                if start < -extent or start >= extent:
                    raise IndexError(f"index {start} is out of bounds for axis {axis} with size {extent}")
                other.pointer += <uintptr_t>((start + extent if start < 0 else start) * self.extents[self.rank + axis])
                axis += 1
        other.find_dense()
        return other

    def _why_no_index(self, item):
        return (
            f"an array is indexed by ints, slices, ... and None, not by {type(item).__name__}: other indices copy, "
            "which cupola.numpy or a kernel does"
        )

    def reshape(self, *shape):
        """The same elements, in row-major order, with other extents.

        Parameters
        ----------
        *shape : int or tuple of int
            One of them may be -1, which means what is left.

        Returns
        -------
        Array
            A view.

        Raises
        ------
        ValueError
            The number of elements differs, or only a copy could have them in this order.
        """
        cdef Array other
        cdef Py_ssize_t count = self.count()
        wanted = _wanted_shape(shape, count)
        strides = self._strides_for(wanted)
        if strides is None:
            raise ValueError(
                f"an array of shape {self.shape} and strides {self.strides} has no view of shape {wanted}: make a copy "
                "first, dev.array(x)"
            )
        return self._view_of(wanted, strides)

    def _strides_for(self, tuple wanted):
        """The strides of a view of that shape, or None where only a copy can have it."""
        cdef Py_ssize_t stride, block
        cdef int axis
        # What is left of the old dimensions once those of one element are gone and neighbors in one piece are joined.
        cdef list runs = []
        cdef list strides = [0] * len(wanted)
        cdef int i
        if self.dense or self.count() == 0:
            stride = self.itemsize
            for i in range(len(wanted) - 1, -1, -1):
                strides[i] = stride
                stride *= max(<Py_ssize_t>wanted[i], 1)
            return tuple(strides)
        for axis in range(self.rank):
            if self.extents[axis] == 1:
                continue
            stride = self.extents[self.rank + axis]
            if runs and runs[-1][1] == stride * self.extents[axis]:
                runs[-1] = (runs[-1][0] * self.extents[axis], stride)
            else:
                runs.append((self.extents[axis], stride))
        # From the last dimension on, each new one must divide what is left of the last run.
        left, stride = runs.pop() if runs else (1, self.itemsize)
        for i in range(len(wanted) - 1, -1, -1):
            if wanted[i] == 1:
                strides[i] = stride
                continue
            if left == 1 and runs:
                left, stride = runs.pop()
            if left % wanted[i]:
                return None
            strides[i] = stride
            stride *= <Py_ssize_t>wanted[i]
            left //= wanted[i]
        return tuple(strides)

    def transpose(self, *axes):
        """The view with the dimensions in another order.

        Parameters
        ----------
        *axes : int or tuple of int
            The old dimension for each new one; reversed without any.

        Returns
        -------
        Array

        Raises
        ------
        ValueError
            The axes are no order of all dimensions.
        """
        cdef Array other
        cdef int to
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0]) if axes[0] is not None else ()
        if not axes:
            axes = tuple(range(self.rank - 1, -1, -1))
        order = [axis + self.rank if axis < 0 else axis for axis in axes]
        if sorted(order) != list(range(self.rank)):
            raise ValueError(f"axes {axes} are not the {self.rank} dimensions of the array, each once")
        other = self.beside(self.rank)
        for to in range(self.rank):
            other.extents[to] = self.extents[<int>order[to]]
            other.extents[self.rank + to] = self.extents[self.rank + <int>order[to]]
        other.find_dense()
        return other

    def view(self, dtype):
        """The same memory as elements of another type.

        Parameters
        ----------
        dtype
            What ``numpy.dtype`` takes. If its size differs, the last dimension must lie in one piece, and gets as many
            elements as its bytes hold.

        Returns
        -------
        Array

        Raises
        ------
        ValueError
            The last dimension has gaps, or its bytes are no multiple of the new size.
        """
        cdef Py_ssize_t size, inner
        wanted = as_dtype(dtype)
        size = wanted.itemsize
        shape, strides = list(self.shape), list(self.strides)
        if size != self.itemsize:
            if self.rank == 0 or strides[-1] != self.itemsize:
                raise ValueError(f"elements of {self.itemsize} bytes that lie apart cannot be viewed as {wanted}")
            inner = shape[-1] * self.itemsize
            if size == 0 or inner % size:
                raise ValueError(f"the last dimension has {inner} bytes, no multiple of the {size} bytes of {wanted}")
            shape[-1], strides[-1] = inner // size, size
        return self._view_of(shape, strides, 0, wanted)

    # --- the end --------------------------------------------------------------------------------------

    def close(self, stream=None):
        """Free the memory, also under all views of it. Closing twice is fine.

        Without it, the memory is freed with the last view.

        Parameters
        ----------
        stream : Stream or GraphBuilder, optional
            Orders the release; by default the stream that the memory was allocated in.
        """
        if self.memory is not None:
            self.memory.close(stream)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # --- copies ---------------------------------------------------------------------------------------

    def to_numpy(self, *, stream=None):
        """Copy the elements to the host, and wait for them.

        Parameters
        ----------
        stream : Stream, optional
            The elements are read behind the work in it. Without a stream: behind all work of the device.

        Returns
        -------
        numpy.ndarray
            A new array of the same shape and type, in row-major order.

        Raises
        ------
        CUDAError
            Work before the copy failed.
        """
        return above("array_to_numpy")(self, stream)

    def copy_from(self, src, *, stream=None):
        """Overwrite the elements, whatever the layouts are (``cuMemcpyAsync``, or a kernel for elements that lie apart).

        Parameters
        ----------
        src : Array, numpy.ndarray, or an array of another library with DLPack or the CUDA array interface
            Of the same type, and of a shape that can be broadcast to that of this array. Arrays of pageable memory have
            been read when the call returns; others are read in the order of the stream.
        stream : Stream or GraphBuilder, optional
            Where the copy is queued, or recorded. Without a stream the copy is done when the call returns.

        Raises
        ------
        TypeError
            The types of the elements differ.
        ValueError
            The shape cannot be broadcast, or this array is read-only.
        """
        above("copy_to_array")(self, src, stream)

    def copy_to(self, dst, *, stream=None):
        """Copy the elements to another array: ``dst.copy_from(self)``, also for arrays of the host.

        Parameters
        ----------
        dst : Array or numpy.ndarray
            Of the same type and shape. An array of pageable memory has been written when the call returns.
        stream : Stream or GraphBuilder, optional
            As for :meth:`copy_from`.

        Returns
        -------
        Array or numpy.ndarray
            `dst`.
        """
        return above("copy_array_to")(self, dst, stream)

    # --- exchange -------------------------------------------------------------------------------------

    def __array__(self, dtype=None, copy=None):
        return above("array_as_ndarray")(self, dtype, copy)

    @property
    def __cuda_array_interface__(self):
        """dict: the CUDA array interface, version 3. It names no stream, so nobody waits."""
        cdef Buffer memory = self.open_memory()
        if not memory.is_device_accessible:
            raise AttributeError("this memory is of the host only: it has no CUDA array interface")
        return {
            "version": 3,
            "shape": self.shape,
            "strides": None if self.dense else self.strides,
            "typestr": self.type.str,
            "descr": self.type.descr,
            "data": (self.pointer if self.count() else 0, bool(self.readonly)),
            "stream": None,
        }

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The array as a DLPack capsule that keeps its memory. This neither waits nor copies.

        Parameters
        ----------
        stream : int, optional
            Ignored: work that is queued in other streams is for the caller to wait for.
        max_version : tuple of (int, int), optional
            From (1, 0) on the capsule is a versioned one.
        dl_device, copy
            Must be None (`copy` may be False).

        Raises
        ------
        BufferError
            For a request to move or copy, and for types and strides that DLPack does not have.
        """
        cdef bint versioned = parse_request(stream, max_version, dl_device, copy)
        cdef DLTensor tensor
        cdef int64_t extents[2 * MOST_AXES]
        cdef int axis
        cdef Buffer memory = self.open_memory()
        tensor.data = <void*>self.pointer if self.count() else NULL
        tensor.device = _dl_device(memory)
        tensor.ndim = self.rank
        tensor.dtype = _dl_type(self.type)
        for axis in range(self.rank):
            if self.extents[self.rank + axis] % self.itemsize:
                raise BufferError(f"DLPack has no strides {self.strides} of elements of {self.itemsize} bytes")
            extents[axis] = self.extents[axis]
            extents[self.rank + axis] = self.extents[self.rank + axis] // self.itemsize
        tensor.shape, tensor.strides, tensor.byte_offset = extents, extents + self.rank, 0
        return make_capsule(&tensor, memory, versioned, self.readonly)

    def __dlpack_device__(self):
        """tuple of (int, int): the DLPack device type and id of the memory."""
        cdef DLDevice device = _dl_device(self.open_memory())
        return device.device_type, device.device_id if device.device_type == kDLCUDA else 0

    def __repr__(self):
        cdef str name = type(self).__name__
        cdef str kind = f"shape={self.shape} dtype={self.type}"
        if self.is_closed:
            return f"<{name} {kind} closed>"
        elements = above("first_elements")(self, SHOWN)
        return f"<{name} {kind}: {elements}>"

    def __reduce__(self):
        return above("reduce_array")(self)


cdef tuple _wanted_shape(tuple shape, Py_ssize_t count):
    """The shape that is meant by the arguments of reshape."""
    cdef Py_ssize_t product = 1
    cdef Py_ssize_t unknown = -1
    cdef Py_ssize_t i
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    wanted = [PyNumber_AsSsize_t(extent, OverflowError) for extent in shape]
    for i in range(len(wanted)):
        if wanted[i] == -1:
            if unknown >= 0:
                raise ValueError("only one extent may be -1")
            unknown = i
        elif wanted[i] < 0:
            raise ValueError(f"extents must not be negative, got {tuple(wanted)}")
        else:
            product *= wanted[i]
    if unknown >= 0 and product and count % product == 0:
        wanted[unknown] = count // product
        product = count
    if unknown >= 0 and wanted[unknown] < 0 or product != count:
        raise ValueError(f"{count} elements cannot have the shape {tuple(wanted)}")
    return tuple(wanted)


cdef DLDevice _dl_device(Buffer memory) except *:
    cdef bint device = memory.is_device_accessible, host = memory.is_host_accessible
    return classify(device, host, device and host and memory.is_managed, memory.device_id if device and not host else 0)


cdef DLDataType _dl_type(object dtype) except *:
    """The DLPack type of a dtype; BufferError for structures and the like."""
    cdef DLDataType result
    code = kDLBfloat if dtype.name == "bfloat16" else _CODES.get(dtype.kind)
    if code is None or not dtype.isnative:
        raise BufferError(f"DLPack has no type for {dtype!r}")
    result.code, result.bits, result.lanes = <uint8_t>code, <uint8_t>(8 * dtype.itemsize), 1
    return result


def new_array(cls, buffer, shape, dtype):
    """An array of class `cls` in row-major order at the start of a buffer."""
    cdef Array made = cls.__new__(cls)
    made.set_shape(shape, as_dtype(dtype))
    made._settle(buffer)
    return made


cdef Array allocated(Device device, object shape, object dtype, object stream):
    """A new array in row-major order, allocated from the device's memory resource in the order of `stream`."""
    cdef Array made = Array.__new__(Array)
    made.set_shape(shape, as_dtype(dtype))
    made.memory = device.allocate(made.count() * made.itemsize, stream=stream)
    made.pointer = made.memory.pointer
    return made


def empty_on(Device device not None, shape, dtype, stream):
    """See :meth:`cupola.Device.empty`."""
    cdef Array made
    cdef Stream queue
    if stream is None:
        stream = current_stream()
        if stream is None:
            queue = default_stream()
            made = allocated(device, shape, dtype, queue)
            queue.sync()
            return made
    return allocated(device, shape, dtype, stream)


def element_type(dtype):
    """The dtype for what ``numpy.dtype`` takes; TypeError if elements of it cannot be on a device."""
    return as_dtype(dtype)


put_up_signs(Array)
