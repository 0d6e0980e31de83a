# The types of elements, as numbers and in tables, and what is fixed for all kernels.

cdef enum:
    BLOCK = 256             # threads; as in _kernels.py
    MOST_BLOCKS = 2048      # of one launch; their threads then take several elements
    MANY_BLOCKS = 1 << 20   # the same on the CPU device, where threads that follow each other have neighbors in memory
    PARTS = 1056            # blocks that share a reduction: eight for each multiprocessor
    LEAST = 4096            # elements that are worth a block of their own
    LONG_ROW = 128          # elements of a row that are worth a block, half of whose threads have nothing to do then
    LEAVES = 12             # of one kernel; what is larger is computed in parts
    NODES = 48
    READ = 72               # arrays of one kernel, among them those of the indices of a gather
    VALUES = 256            # scalars of one kernel
    SEEN = 448
    WORDS = 2048            # of a key
    STRIDED = 8             # dimensions of a kernel, when those that lie in one piece are joined

MOST_LEAVES, MOST_NODES, STRIDED_AXES = LEAVES, NODES, STRIDED

# How a reduction is shared out, as in _kernels.py.
cdef enum Sharing:
    BY_THREAD
    BY_ROWS
    BY_COLUMNS

# Numbers for the types of elements, and for Python's numbers among operands.
cdef enum:
    TYPES = 16
    PY_BOOL = 16
    PY_INT = 17
    PY_FLOAT = 18
    PY_COMPLEX = 19
    OTHER = 31
    NO_NODE = -1

cdef str _CHARS = "".join(_MEMORY)
cdef list _DTYPES = [numpy.dtype(char) for char in _CHARS]
cdef list _CLASSES = [dtype.type for dtype in _DTYPES]
cdef dict _class_numbers = {found: number for number, found in reversed(list(enumerate(_CLASSES)))}
cdef object _UINT = numpy.dtype("uint32")
cdef int _HALF = _CHARS.index("e")
cdef int _INT64 = _CHARS.index("l")
cdef int _UINT64 = _CHARS.index("L")
cdef PyObject* _dtypes[TYPES]
cdef uint16_t _elements[TYPES]
cdef Py_ssize_t _sizes[TYPES]
cdef uint8_t _likely[64]        # the number of a dtype by some bits of its address, if no other has taken the place


cdef inline int place_of(PyObject* dtype) noexcept:
    return (<uintptr_t>dtype >> 4 ^ <uintptr_t>dtype >> 10) & 63


cdef int _fill_tables() except -1:
    cdef Array sample
    cdef int number
    for number in range(TYPES):
        sample = Array.__new__(Array)
        sample.set_type(_DTYPES[number])
        _dtypes[number], _elements[number], _sizes[number] = (
            <PyObject*>_DTYPES[number], sample.element, sample.itemsize
        )
        _likely[place_of(_dtypes[number])] = number
    return 0


assert len(_CHARS) == TYPES
_fill_tables()


cdef inline int type_number(object dtype) except -1:
    """The number of a dtype, which is one of those of MEMORY."""
    cdef int number = _likely[place_of(<PyObject*>dtype)]
    return number if _dtypes[number] == <PyObject*>dtype else search_type(dtype)


cdef int search_type(object dtype) except -1:
    cdef int number
    for number in range(TYPES):
        if _dtypes[number] == <PyObject*>dtype:
            return number
    return _CHARS.index(dtype.char)
