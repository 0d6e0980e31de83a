# Products of small matrices by one kernel.

cdef enum:
    SMALL = 64              # rows and columns; what is larger is for cuBLAS

cdef list _products = [None] * TYPES


def product(one, other):
    """The product of two small matrices; None if there is a reason to ask cuBLAS."""
    cdef Lazy a, b, made
    cdef int number
    cdef int64_t sizes[3]
    cdef int64_t strides[4]
    cdef Py_ssize_t extents[2]
    cdef uint64_t places[3]
    cdef void* parameters[10]
    cdef int k
    cdef Stream queue
    cdef Kernel kernel
    if not isinstance(one, Lazy) or not isinstance(other, Lazy):
        return None
    a, b = <Lazy>one, <Lazy>other
    if a.rank != 2 or b.rank != 2 or a.extents[1] != b.extents[0]:
        return None
    number = type_number(a.type)
    sizes[0], sizes[1], sizes[2] = a.extents[0], b.extents[1], a.extents[1]
    if number != type_number(b.type) or _CHARS[number] not in "efdFD":
        return None
    for k in range(3):
        if not 0 < sizes[k] <= SMALL:
            return None
    a.open_memory()
    b.open_memory()
    strides[0], strides[1] = a.extents[2], a.extents[3]
    strides[2], strides[3] = b.extents[2], b.extents[3]
    for k in range(4):
        if strides[k] % a.itemsize:
            return None
        strides[k] //= a.itemsize
    queue = in_force()
    use_in(a, queue, False)
    use_in(b, queue, False)
    kernel = <Kernel>_products[number]
    if kernel is None:
        kernel = _products[number] = _product(_CHARS[number])
    made = new_array()
    take_type(made, number)
    extents[0], extents[1] = sizes[0], sizes[1]
    take_shape(made, 2, extents)
    made._stream = queue
    allocate(made, queue)
    require_open(a.memory)
    require_open(b.memory)
    places[0], places[1], places[2] = a.pointer, b.pointer, made.pointer
    for k in range(3):
        parameters[k] = &places[k]
        parameters[3 + k] = &sizes[k]
    for k in range(4):
        parameters[6 + k] = &strides[k]
    start(queue, kernel, blocks_for(sizes[0] * sizes[1]), parameters)
    return made
