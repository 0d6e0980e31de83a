"""Kernel arguments: from Python values to the array of pointers that ``cuLaunchKernelEx`` takes.

The driver copies the arguments during the call, from the addresses in an array of pointers. It does not get their
number or sizes. So the size of each parameter of the kernel is read once (``cuKernelGetParamInfo``), and every
argument is compared with it, because a wrong one would silently become garbage on the device. The common types are
tested by exact type in the loop of `pack`; everything else, and every error, goes through `_pack_other`. Plain Python
numbers have no C type: they are passed with the type of the parameter, which the PTX of the kernel declares
(_signatures.py). Where that is not known, the width decides: to a parameter of 4 bytes an int is passed as 32 bits and
a float as float32.
"""

import sys
import warnings

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memcpy

from cupola.core.array._array cimport Array
from cupola.core.base._elements cimport (
    ANY_ELEMENT, BFLOAT16, COMPLEX64, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64
)
from cupola.core.base._shared cimport see
from cupola.core.memory._buffer cimport Buffer, graph_operand
from cupola.core.device._context cimport resets
from cupola.core.program._kernel cimport (
    FLOATING, INTEGER, LAYOUT_UNKNOWN, LAYOUT_UNREAD, TAKES_DOUBLE, TAKES_FLOAT, TAKES_INT, TAKES_POINTER, UNKNOWN,
    Kernel, Parameter, least, most
)

from cupola.core.base._errors import CUDAWarning

cdef extern from "Python.h":
    PyTypeObject PyLong_Type, PyFloat_Type, PyBool_Type
    PyTypeObject* Py_TYPE(PyObject*) noexcept
    bint PyObject_TypeCheck(PyObject*, PyTypeObject*) noexcept
    int PyFloat_Pack2(double, char*, int) except -1
    double PyFloat_AS_DOUBLE(PyObject*) noexcept
    PyObject* Py_True

cdef extern from *:
    """
    /* An int of up to two digits, that is 60 bits: all sizes and addresses. PyLong_AsLongLong takes 12 ns for those. */
    static inline int cupola_small_int(PyObject *object, int64_t *value)
    {
    #if PY_VERSION_HEX >= 0x030C0000
        const struct _PyLongValue *number = &((PyLongObject *)object)->long_value;
        size_t count = number->lv_tag >> 3;
        int negative = (number->lv_tag & 3) == 2;
    #else
        const PyLongObject *number = (PyLongObject *)object;
        size_t count = (size_t)(Py_SIZE(object) < 0 ? -Py_SIZE(object) : Py_SIZE(object));
        int negative = Py_SIZE(object) < 0;
    #endif
        if (count > 2 || PyLong_SHIFT != 30)
            return 0;
        int64_t size = count > 0 ? (int64_t)number->ob_digit[0] : 0;
        if (count > 1)
            size |= (int64_t)number->ob_digit[1] << 30;
        *value = negative ? -size : size;
        return 1;
    }
    """
    bint cupola_small_int(PyObject*, int64_t*) noexcept

cdef extern from "_scalar_types.h":
    """
    /* The type's basic size is no part of Cython's PyTypeObject. */
    #define cupola_basic_size(object) (Py_TYPE(object)->tp_basicsize)
    """
    enum cupola_scalar_access:
        CUPOLA_SCALAR_INSIDE
        CUPOLA_SCALAR_POINTER
    ctypedef struct cupola_scalar_type:
        uint32_t size, kind
    const cupola_scalar_type* cupola_scalar_find(const PyTypeObject*) noexcept
    void cupola_scalar_add(PyTypeObject*, cupola_scalar_access, uint32_t, uint32_t, uint32_t) noexcept
    void* cupola_scalar_value(const cupola_scalar_type*, PyObject*) noexcept
    Py_ssize_t cupola_basic_size(PyObject*) noexcept


cdef PyTypeObject* BUFFER = <PyTypeObject*>Buffer
cdef PyTypeObject* ARRAY = <PyTypeObject*>Array

# How to read the bytes of other classes of this package: class -> function that returns (address, size).
cdef dict _readers = {}

# Classes whose objects stand for a handle of 8 bytes -> (function that returns it, function that returns what a graph
# has to keep).
cdef dict _handles = {}

# ctypes codes of numbers and pointers; characters are not numbers, and nothing on the device is a long double.
cdef str CTYPES_CODES = "?bBhHiIlLqQfdP"

# Integers of the bindings that name something on the device.
cdef tuple HANDLES = ("CUdeviceptr", "CUtexObject", "CUsurfObject", "CUgraphConditionalHandle")


# For drivers before 12.4, which do not report parameters: everything is accepted, and a Python number has 8 bytes.
cdef Parameter ANYTHING = [
    0, 0, TAKES_POINTER | TAKES_INT | TAKES_DOUBLE, UNKNOWN, False, 63, 63, False, ANY_ELEMENT
]


cdef int pack(Kernel kernel, PyObject** arguments, Py_ssize_t count, void** pointers, Slot* slots) except -1:
    cdef const Parameter* parameters
    if see(kernel.parameter_count) != count:
        parameters = _check_count(kernel, arguments, count)
        if parameters == &ANYTHING:
            return pack_as(kernel, parameters, 0, arguments, count, pointers, slots)
    return pack_as(kernel, kernel.parameters, 1, arguments, count, pointers, slots)


cdef inline int pack_as(
    Kernel kernel, const Parameter* parameter, int step, PyObject** arguments, Py_ssize_t count, void** pointers,
    Slot* slots
) except -1:
    cdef PyTypeObject* buffer_type = BUFFER
    cdef PyTypeObject* array_type = ARRAY
    cdef PyObject** argument = arguments
    cdef PyObject** end = arguments + count
    cdef Slot* slot = slots
    cdef PyTypeObject* kind
    cdef const cupola_scalar_type* scalar
    cdef bint ran = False           # code written in Python, maybe
    cdef int found = 0              # 1: arrays of the host
    cdef bint wary = resets != 0    # buffers may be gone, which is not for the fast path to find out
    while argument != end:
        kind = Py_TYPE(argument[0])
        pointers[0] = slot
        if kind == buffer_type:
            slot.u = (<Buffer>argument[0]).pointer
            if slot.u == 0 or wary or not parameter.takes & TAKES_POINTER:
                _pack_other(kernel, argument - arguments, parameter, <object>argument[0], pointers, slot)
        elif kind == &PyLong_Type and parameter.takes & TAKES_INT:
            # Little-endian, as every host of CUDA: the low bytes come first.
            if not cupola_small_int(argument[0], &slot.i) or not least(parameter) <= slot.i <= most(parameter):
                _pack_other(kernel, argument - arguments, parameter, <object>argument[0], pointers, slot)
        elif kind == &PyFloat_Type and parameter.takes & TAKES_DOUBLE:
            slot.d = PyFloat_AS_DOUBLE(argument[0])
        elif kind == &PyFloat_Type and parameter.takes & TAKES_FLOAT:
            slot.f = <float>PyFloat_AS_DOUBLE(argument[0])
        elif kind == array_type:
            slot.u = (<Array>argument[0]).pointer
            if (
                slot.u == 0 or (<Array>argument[0]).memory.pointer == 0 or wary or not parameter.takes & TAKES_POINTER
                or not parameter.elements & (<Array>argument[0]).element
            ):
                _pack_other(kernel, argument - arguments, parameter, <object>argument[0], pointers, slot)
                ran = True
        else:
            scalar = cupola_scalar_find(kind)
            if (
                scalar != NULL and (scalar.size == parameter.size or parameter.size == 0)
                and scalar.kind ^ parameter.kind != INTEGER ^ FLOATING
            ):
                pointers[0] = cupola_scalar_value(scalar, argument[0])
            else:
                found |= _pack_other(kernel, argument - arguments, parameter, <object>argument[0], pointers, slot)
                ran = True
        argument += 1
        pointers += 1
        slot += 1
        parameter += step
    if ran:
        read_buffers(arguments, count, slots)
    return found


cdef int read_buffers(PyObject** arguments, Py_ssize_t count, Slot* slots) except -1:
    cdef Py_ssize_t i
    for i in range(count):
        if PyObject_TypeCheck(arguments[i], ARRAY):
            (<Array>arguments[i]).open_memory()
            slots[i].u = (<Array>arguments[i]).pointer
        if Py_TYPE(arguments[i]) == BUFFER or PyObject_TypeCheck(arguments[i], BUFFER):
            (<Buffer>arguments[i]).open_allocation()
            slots[i].u = (<Buffer>arguments[i]).pointer
    return 0


cdef const Parameter* _check_count(Kernel kernel, PyObject** arguments, Py_ssize_t count) except? NULL:
    """The kernel's parameters, read if they are not yet; ANYTHING when the driver cannot tell."""
    if kernel.parameter_count == LAYOUT_UNREAD:
        kernel.read_layout()
    if kernel.parameter_count == LAYOUT_UNKNOWN:
        return &ANYTHING
    if kernel.parameter_count != count:
        raise _wrong_count(kernel, arguments, count)
    return kernel.parameters if count else &ANYTHING    # of no parameters: NULL, which means an exception


cdef tuple operands(Kernel kernel, PyObject** arguments, Py_ssize_t count):
    cdef list kept = [kernel]
    cdef Py_ssize_t i
    for i in range(count):
        value = <object>arguments[i]
        if isinstance(value, Buffer):
            kept.append(graph_operand((<Buffer>value).known_allocation()))
        elif isinstance(value, Array):
            kept.append(graph_operand((<Array>value).open_memory().known_allocation()))
        elif not isinstance(value, (int, float, complex)) and cupola_scalar_find(Py_TYPE(arguments[i])) == NULL:
            kept.append(_handles[type(value)][1](value) if type(value) in _handles else value)
    return tuple(kept)


cpdef register_argument_type(cls, read):
    _readers[cls] = read


cpdef register_handle_type(cls, read, keep):
    _handles[cls] = read, keep


cdef int _pack_other(
    Kernel kernel, Py_ssize_t i, const Parameter* parameter, object value, void** pointer, Slot* slot
) except -1:
    """Convert any argument, or raise an error that says what is wrong with it. 1 for arrays of the host."""
    cdef const cupola_scalar_type* scalar
    cdef uint32_t size = parameter.size     # 0: not known
    cdef uint32_t given                     # bytes that the value has
    cdef double complex number
    if isinstance(value, Buffer):
        if (<Buffer>value).pointer == 0:
            _require_open(kernel, i, value, True)
        (<Buffer>value).open_allocation()
        slot.u = (<Buffer>value).pointer
        given = _pack_pointer(kernel, i, parameter, value)
    elif isinstance(value, Array):
        if type(value) is not Array:
            value._lend()
        if (<Array>value).memory is None or (<Array>value).memory.pointer == 0:
            _require_open(kernel, i, value, False)
        (<Array>value).open_memory()
        slot.u = (<Array>value).pointer
        given = _pack_pointer(kernel, i, parameter, value)
        if not parameter.elements & (<Array>value).element and size in (0, 8):
            _compare_elements(kernel, i, <Parameter*>parameter, <Array>value)
    elif isinstance(value, HostArray):
        return 1
    elif isinstance(value, int) and parameter.kind == FLOATING:
        given = _pack_float(size, float(value), slot)
    elif isinstance(value, bool):
        given = size if size in (2, 4, 8) else 1
        slot.u = value is True
    elif isinstance(value, int):
        given = size if size in (1, 2, 4) else 8
        if size in (0, 8) or given != 8:
            _pack_int(kernel, i, given, parameter, value, slot)
    elif cupola_scalar_find(Py_TYPE(<PyObject*>value)) != NULL:
        scalar = cupola_scalar_find(Py_TYPE(<PyObject*>value))
        pointer[0] = cupola_scalar_value(scalar, <PyObject*>value)
        given = scalar.size
        _compare_kinds(kernel, i, parameter, value, given, scalar.kind)
    elif _is_foreign_scalar(value, parameter):
        given = _pack_foreign(value, pointer, slot)
        _compare_kinds(kernel, i, parameter, value, given, _kind_of(value))
    elif isinstance(value, float):
        if parameter.kind == INTEGER:
            if size == 8:
                raise TypeError(
                    f"{_where(kernel, i)} is a pointer or an integer of 8 bytes, but {value!r} is a float: pass a "
                    f"Buffer, an "
                    "array on the device or an address, or else int(...)"
                )
            raise TypeError(f"{_where(kernel, i)} is an integer of {size} bytes, {value!r} is a float: pass int(...)")
        given = _pack_float(size if size != 2 or parameter.kind == FLOATING else 8, value, slot)
    elif isinstance(value, complex):
        number = value
        given = 8 if size == 8 else 16
        if size == 8:
            slot.c[0] = <float>number.real
            slot.c[1] = <float>number.imag
        else:
            slot.z[0] = number.real
            slot.z[1] = number.imag
    elif type(value).__name__ in HANDLES and type(value).__module__.startswith("cupola.bindings"):
        slot.u = <uint64_t>int(value)
        given = 8
    elif type(value) in _handles:
        slot.u = _handles[type(value)][0](value)
        given = 8
    elif _pack_array(value, slot):
        given = _pack_pointer(kernel, i, parameter, value)
    elif _is_host_number(value):
        given = _copy_bytes(value.numpy().tobytes(), value, slot)
    else:
        given = _pack_registered(kernel, i, value, pointer)
    if size != 0 and given != size:
        raise _wrong_size(kernel, i, size, value, given)
    return 0


cdef int _require_open(Kernel kernel, Py_ssize_t i, object value, bint is_buffer) except -1:
    """Say which argument it is that has been closed."""
    try:
        if is_buffer:
            (<Buffer>value).open_allocation()
        else:
            (<Array>value).open_memory()
    except RuntimeError as error:
        raise RuntimeError(f"{error}: it is given for {_where(kernel, i)}") from None
    return 0


cdef int _compare_kinds(
    Kernel kernel, Py_ssize_t i, const Parameter* parameter, object value, uint32_t given, uint32_t kind
) except -1:
    """Refuse an integer where the kernel has a floating-point number of the same size, and the other way round."""
    cdef str wanted, right
    if given != parameter.size or kind ^ parameter.kind != INTEGER ^ FLOATING:
        return 0
    if parameter.kind == FLOATING:
        wanted, right = {2: ("half", "float16"), 4: ("float", "float32")}.get(given, ("double", "float64"))
    else:
        wanted, right = f"integer of {given} bytes", f"int{8 * given}"
    raise TypeError(
        f"{_where(kernel, i)} is {'a' if parameter.kind == FLOATING else 'an'} {wanted}, but {_type_name(value)} is "
        f"{'an integer' if kind == INTEGER else 'a floating-point number'} of the same size, whose bits would be read as "
        f"another number: pass numpy.{right}(...) or a plain number"
    )


cdef uint32_t _kind_of(object value):
    """INTEGER, FLOATING or UNKNOWN for a NumPy scalar or a ctypes value."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype.itemsize == 2:
        return UNKNOWN      # the bits of a half are often passed as an unsigned short
    if dtype is not None:
        return INTEGER if dtype.kind in "biu" else FLOATING if dtype.kind == "f" else UNKNOWN
    code = getattr(type(value), "_type_", None)
    if not isinstance(code, str) or hasattr(value, "_length_"):
        return UNKNOWN
    return FLOATING if code in "fd" else INTEGER if code in "?bBhHiIlLqQ" else UNKNOWN


# What a pointer that takes such arrays points to.
cdef dict _POINTEES = {
    INT16: "short", INT32: "int", INT64: "long long", FLOAT16: "half", BFLOAT16: "bfloat16",
    FLOAT32 | COMPLEX64: "float", FLOAT64 | COMPLEX128: "double",
}


cdef int _compare_elements(Kernel kernel, Py_ssize_t i, Parameter* parameter, Array array) except -1:
    """Refuse an array of other elements than the kernel's pointer points to; warn where that is only likely."""
    cdef str text = (
        f"{_where(kernel, i)} is a {_POINTEES[parameter.elements]}*, but the array is of {array.type}: pass an array of "
        "that type, or array.view(...) if its bytes are meant"
    )
    if parameter.declared:
        raise TypeError(text)
    parameter.elements |= array.element     # said once for each kernel and type
    warnings.warn(f"as the source has it, {text}", CUDAWarning, stacklevel=1)
    return 0


cdef class HostArray:
    """A NumPy array for a kernel; made as :class:`In`, :class:`Out` or :class:`InOut`."""

    def __init__(self, array):
        if type(self) is HostArray:
            raise TypeError("say how the kernel uses the array: In(array), Out(array) or InOut(array)")
        if isinstance(array, (Array, Buffer)):
            raise TypeError(f"{type(self).__name__}() is for arrays of the host; pass the {type(array).__name__} as it is")
        self.array = array

    def __repr__(self):
        return f"{type(self).__name__}({self.array!r})"


cdef class In(HostArray):
    """In(array)\n--\n\nA NumPy array that a kernel reads: ``launch`` copies it to the device for the launch.

    Parameters
    ----------
    array : numpy.ndarray
        Or what ``numpy.asarray`` takes. Memory that is pageable, as usual, has been read when the launch returns. Pinned
        memory is read in the order of the stream, and kept until then.
    """


cdef class Out(HostArray):
    """Out(array)\n--\n\nA NumPy array that a kernel writes: ``launch`` copies its elements back behind the kernel.

    What the kernel does not write is not defined afterwards.

    Parameters
    ----------
    array : numpy.ndarray
        Writable. If its memory is pageable, as usual, the launch returns when the elements are there. In pinned memory
        they are there when the stream has come so far.
    """


cdef class InOut(HostArray):
    """InOut(array)\n--\n\nA NumPy array that a kernel reads and writes: :class:`In` and :class:`Out` in one.

    Parameters
    ----------
    array : numpy.ndarray
        Writable.
    """


cdef uint32_t _pack_pointer(Kernel kernel, Py_ssize_t i, const Parameter* parameter, object value) except 0:
    if parameter.kind == FLOATING and parameter.size == 8:
        raise TypeError(f"{_where(kernel, i)} is a double, {_type_name(value)} is a pointer")
    return 8


cdef uint32_t _pack_float(uint32_t size, double value, Slot* slot) except 0:
    """Pass a Python number as the floating-point type of that size: a double where there is none."""
    if size == 2:
        PyFloat_Pack2(value, <char*>slot, 1)
        return 2
    if size == 4:
        slot.f = <float>value
        return 4
    slot.d = value
    return 8


cdef int _pack_int(
    Kernel kernel, Py_ssize_t i, uint32_t given, const Parameter* parameter, object value, Slot* slot
) except -1:
    cdef object smallest = least(parameter)
    cdef object greatest = most(parameter) if given < 8 or parameter.signed else 0xFFFFFFFFFFFFFFFF
    number = int(value)
    if not smallest <= number <= greatest:
        raise OverflowError(
            f"{_where(kernel, i)} is {8 * given} bits wide: {number} does not fit; it must be within [{smallest}, "
            f"{greatest}]"
        )
    slot.u = <uint64_t>(number & 0xFFFFFFFFFFFFFFFF)
    return 0


cdef bint _pack_array(object value, Slot* slot) except -1:
    """The address of an array on a device: of PyTorch, or with the CUDA array interface (CuPy, Numba, JAX)."""
    if getattr(value, "is_cuda", False) is True and hasattr(value, "data_ptr"):
        slot.u = value.data_ptr()
        return True
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return False
    slot.u = interface["data"][0]
    return True


cdef bint _is_host_number(object value):
    """Whether it is a PyTorch tensor of one number on the host."""
    return (
        getattr(value, "is_cuda", None) is False and hasattr(value, "data_ptr") and getattr(value, "ndim", None) == 0
        and hasattr(value, "numpy")
    )


cdef uint32_t _copy_bytes(bytes data, object value, Slot* slot) except 0:
    if len(data) > <Py_ssize_t>sizeof(Slot):
        raise TypeError(f"unsupported type {_type_name(value)} of {len(data)} bytes")
    memcpy(slot, <char*>data, len(data))
    return <uint32_t>len(data)


cdef bint _is_foreign_scalar(object value, const Parameter* parameter):
    """Whether it is a NumPy scalar or a ctypes value that has a meaning on the device."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        # Kind V: structures, and the small floats of ml_dtypes.
        dtype = value.dtype
        return dtype.kind == "V" or (dtype.kind in "biuf" and dtype.itemsize <= 8) or (
            dtype.kind == "c" and dtype.itemsize <= 16)
    ctypes = sys.modules.get("ctypes")
    if ctypes is None:
        return False
    if isinstance(value, ctypes._SimpleCData):
        return type(value)._type_ in CTYPES_CODES
    # An array is passed to a structure. If the parameter is a pointer, the caller means the array's address, which is
    # a host address.
    return isinstance(value, (ctypes.Structure, ctypes.Union)) or (
        isinstance(value, ctypes.Array) and parameter.kind == UNKNOWN)


cdef uint32_t _pack_foreign(object value, void** pointer, Slot* slot) except? 0:
    """Find the bytes of such a value, and remember for its type where they are if that is the same for all."""
    cdef Py_buffer view
    cdef char* start = <char*><PyObject*>value
    cdef Py_ssize_t offset
    cdef bint plain = True
    try:
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    except (BufferError, TypeError, ValueError):
        plain = False
    if not plain:
        return _copy_bytes(value.tobytes(), value, slot)
    # The memory is the object's own, and the caller keeps the object: it stays after the release of the view.
    pointer[0] = view.buf
    size = <uint32_t>view.len
    offset = <char*>view.buf - start
    if 0 < offset and offset + view.len <= cupola_basic_size(<PyObject*>value) and hasattr(value, "dtype"):
        cupola_scalar_add(Py_TYPE(<PyObject*>value), CUPOLA_SCALAR_INSIDE, <uint32_t>offset, size, _kind_of(value))
    elif (<void**>(start + sizeof(PyObject)))[0] == view.buf and not hasattr(value, "_length_"):
        # Not arrays: whether those fit depends on the parameter.
        cupola_scalar_add(
            Py_TYPE(<PyObject*>value), CUPOLA_SCALAR_POINTER, sizeof(PyObject), size, _kind_of(value)
        )
    PyBuffer_Release(&view)
    return size


cdef uint32_t _pack_registered(Kernel kernel, Py_ssize_t i, object value, void** pointer) except? 0:
    for cls in type(value).__mro__:
        read = _readers.get(cls)
        if read is not None:
            address, size = read(value)
            pointer[0] = <void*><uintptr_t>address
            return <uint32_t>size
    raise TypeError(f"unsupported type {_type_name(value)} for {_where(kernel, i)}{_advice(value)}")


cdef str _type_name(object value):
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


cdef str _where(Kernel kernel, Py_ssize_t i):
    return f"parameter {i} of kernel {kernel.find_name()}"


cdef bint _is_on_the_host(object value):
    """Whether it is a tensor of PyTorch, or with DLPack, that says so; NumPy's have advice of their own."""
    if getattr(value, "is_cuda", None) is False:
        return True
    if hasattr(value, "__array_interface__") or not hasattr(value, "__dlpack_device__"):
        return False
    try:
        return value.__dlpack_device__()[0] == 1  # kDLCPU
    except Exception:  # whatever a foreign object may raise: the advice is one for arrays on the device then
        pass
    return False


cdef str _advice(object value):
    if value is None:
        return "; pass 0 for a null pointer"
    if _is_on_the_host(value):
        return ": it is memory of the host; copy it to a Buffer and pass that"
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "data_ptr"):
        return "; pass its address as an int, such as array.data.ptr (CuPy) or tensor.data_ptr() (PyTorch)"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return ": nothing on the device is of this type"
    if hasattr(value, "__array_interface__"):
        return (
            ": it is an array on the host; pass In(array), Out(array) or InOut(array), or copy it, dev.array(array). A "
            "number is passed as a NumPy scalar, such as array.dtype.type(1)"
        )
    if type(value).__module__.startswith(("ctypes", "torch")) or hasattr(value, "_length_"):
        return ": it is memory of the host; copy it to a Buffer and pass that"
    if isinstance(value, (tuple, list)):
        return "; pass each of its items, as *values, or for an array a Buffer"
    if hasattr(value, "exporting_obj"):
        return "; pass its address, view.ptr"
    if hasattr(value, "__dlpack__"):
        return (
            "; pass its address, StridedMemoryView.from_dlpack(array, stream_ptr=stream.handle).ptr, while the view lives"
        )
    if type(value).__name__ in ("Graph", "CUgraphExec"):
        return "; a kernel that launches a graph takes the number of its handle, int(graph.handle)"
    if hasattr(value, "handle") and not type(value).__module__.startswith("cupola."):
        return "; handles of textures and surfaces are passed as ints"
    return "; pass a Buffer, a number, or a NumPy or ctypes scalar"


# What to pass for a parameter of so many bytes.
cdef dict SUITABLE = {
    1: "bool, numpy.int8, numpy.uint8",
    2: "numpy.float16, numpy.int16, numpy.uint16",
    4: "int, float, numpy.float32, numpy.int32, numpy.uint32",
    8: "Buffer or address, int, float, numpy.float64, numpy.int64, numpy.uint64, numpy.complex64",
    16: "complex, numpy.complex128, or a ctypes.Structure or NumPy structure of that size",
}


cdef object _wrong_size(Kernel kernel, Py_ssize_t i, uint32_t size, object value, uint32_t given):
    suitable = SUITABLE.get(size, "a ctypes.Structure or NumPy structure of that size")
    return TypeError(
        f"{_where(kernel, i)} is {size} bytes (at offset {kernel.parameters[i].offset}), "
        f"but {_type_name(value)} is {given} bytes; it takes: {suitable}"
    )


cdef object _wrong_count(Kernel kernel, PyObject** arguments, Py_ssize_t count):
    cdef int i
    sizes = ", ".join([str(kernel.parameters[i].size) for i in range(kernel.parameter_count)])
    listed = f" of {sizes} bytes" if sizes else ""
    plural = "" if kernel.parameter_count == 1 else "s"
    advice = ""
    if count == 1 and isinstance(<object>arguments[0], (tuple, list)):
        advice = f": a {type(<object>arguments[0]).__name__}, pass its items, as *values"
    return TypeError(
        f"kernel {kernel.find_name()} takes {kernel.parameter_count} argument{plural}{listed}; {count} given{advice}"
    )
