# New arrays: of whatever the memory holds, of one value, copies. Nobody else knows them yet, so nothing is waited for.

cdef enum:
    FEW_BYTES = 1 << 16         # bytes that one core of the CPU device fills or copies sooner than all run a kernel

# The numbers of types by what programs name them by; others go the long way.
cdef dict _named = {None: _CHARS.index("d"), float: _CHARS.index("d"), int: _INT64, complex: _CHARS.index("D")}
cdef int _small = -1        # bytes that are filled and copied without a kernel; -1: not known yet


cdef int _name_types() except -1:
    cdef int number
    _named[bool] = _CHARS.index("?")
    for number in range(TYPES - 1, -1, -1):     # the first of two alike, last
        for key in (_CLASSES[number], _DTYPES[number].name):
            _named[key] = number
    return 0


_name_types()


cdef int few_bytes() except -1:
    """How many bytes are filled and copied without a kernel. On a GPU, launches of a graph are as quick."""
    global _small
    _small = FEW_BYTES if _provider.current() == "cpu" else 0
    return _small


cdef Lazy new_here(object shape, object dtype, Stream queue):
    """An array of the package's class, with memory; None if the type is not one of those in `_named`."""
    cdef Lazy made
    cdef PyObject* kind = <PyObject*>dtype
    cdef object number
    if dtype is None or type(dtype) is str or isinstance(dtype, type):
        number = _named.get(dtype)
        if number is None:
            return None
        kind = _dtypes[<int>number]
    elif _dtypes[_likely[place_of(kind)]] != kind:
        return None
    made = new_array()
    made.set_shape(shape, <object>kind)
    allocate(made, queue)
    made._stream = queue
    return made


def made_empty(shape, dtype):
    """An array of whatever the memory holds; None if the type has to be looked up."""
    return new_here(shape, dtype, in_force())


cdef bint is_nothing(Value* value, int kind) noexcept:
    """Whether all bits of an element are zero."""
    cdef Form form = _forms[kind]
    if form == FLOAT:
        return (<uint32_t*>value)[0] == 0
    if form == COMPLEX_DOUBLE:
        return value.u == 0 and (<uint64_t*>value)[1] == 0
    return value.u == 0


def fill(Lazy made not None, value):
    """Overwrite all elements of an array that nobody else knows with a NumPy scalar."""
    cdef Stream queue = made._stream
    cdef StreamHandle held
    cdef Value found
    cdef CUresult status
    cdef uint64_t pointer
    cdef int64_t n = made.count()
    cdef size_t words
    cdef uint32_t pattern
    cdef int kind, width
    if n == 0:
        return
    if n * made.itemsize <= (_small if _small >= 0 else few_bytes()):
        kind = type_number(made.type)
        if type(value) is _CLASSES[kind]:
            found.z[0], found.z[1] = 0, 0
            store(value, kind, &found)
            pattern, width = found.u & 0xffffffff, 0
            if is_nothing(&found, kind):
                pattern, width = 0, 4 if made.itemsize >= 4 else <int>made.itemsize
            elif kind != _HALF and made.itemsize <= 4:
                width = <int>made.itemsize
            elif made.itemsize == 8 and found.u >> 32 == pattern:
                width = 4
            if width:
                use_in(made, queue, True)
                held = queue.hold()
                pointer, words = made.pointer, <size_t>(n * made.itemsize) // width
                with nogil:
                    status = fill_async(pointer, pattern, width, words, held.pointer)
                check(status, b"cuMemsetD8Async" if width == 1 else b"cuMemsetD16Async" if width == 2 else b"cuMemsetD32Async")
                return
    into(made, value, queue, None, None)


cdef object _zeros = [kind(0) for kind in _CLASSES]
cdef object _ones = [kind(1) for kind in _CLASSES]


def made_uniform(shape, dtype, bint one):
    """An array of zeros, or of ones; None if the type has to be looked up."""
    cdef Lazy made = new_here(shape, dtype, in_force())
    if made is not None:
        fill(made, (_ones if one else _zeros)[type_number(made.type)])
    return made


def made_copy(Lazy given not None):
    """A copy in row-major order."""
    cdef Stream queue = in_force()
    cdef object source = leaf(given)
    cdef Lazy made = new_array()
    cdef StreamHandle held
    cdef CUresult status
    cdef uint64_t to, frm
    cdef size_t size
    take_type(made, type_number(given.type))
    take_shape(made, given.rank, given.extents)
    made._stream = queue
    if _several:
        require_here(given)
    allocate(made, queue)
    size = made.count() * made.itemsize
    if source is given and given.dense and 0 < size <= <size_t>(_small if _small >= 0 else few_bytes()):
        require_open(given.memory)
        use_in(given, queue, False)
        use_in(made, queue, True)
        held = queue.hold()
        to, frm = made.pointer, given.pointer
        with nogil:
            status = copy_async(to, frm, size, held.pointer)
        check(status, b"cuMemcpyAsync")
    else:
        into(made, source, queue, None, None)
    return made


def made_of(host):
    """An array with the elements of one of NumPy, in row-major order and few bytes; None if it is another one.

    It must be in pageable memory: the driver takes the elements before the call returns.
    """
    cdef Stream queue
    cdef Lazy made
    cdef StreamHandle held
    cdef CUresult status
    cdef uint64_t to
    cdef Py_buffer view
    cdef Py_ssize_t size = host.nbytes
    if not 0 < size <= (_small if _small >= 0 else few_bytes()) or _allocator is not None:
        return None
    queue = in_force()
    held = queue.hold()
    if is_recorded(held):       # it would copy at each launch
        return None
    made = new_here(host.shape, host.dtype, queue)
    if made is None:
        return None
    use_in(made, queue, True)
    PyObject_GetBuffer(host, &view, PyBUF_SIMPLE)
    to = made.pointer
    with nogil:
        status = copy_async(to, <uintptr_t>view.buf, size, held.pointer)
    PyBuffer_Release(&view)
    check(status, b"cuMemcpyAsync")
    return made
