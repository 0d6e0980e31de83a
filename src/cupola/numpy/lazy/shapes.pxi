# The stream in force, memory for arrays, and shapes.

cdef inline Stream in_force():
    """The stream that work is queued in: that of the innermost ``with`` block, else the default stream."""
    cdef Stream found = current_stream()
    if found is None:
        return default_stream()
    if _several:
        require_stream_here(found)
    return found


cdef int allocate(Array made, Stream queue) except -1:
    """Give an array that has a shape and a type memory of its own, in the order of a stream."""
    cdef Device device = get_current_device()
    cdef Buffer memory
    cdef Py_ssize_t size = made.count() * made.itemsize
    if device.current is None:
        device = _first_device()
    if _allocator is not None:
        memory = <Buffer?>_allocator(size, queue)
    elif device.memory is not None and (<MemoryResource>device.memory).direct:
        memory = (<MemoryResource>device.memory).obtain(size, queue)
    else:
        memory = device.allocate(size, stream=queue)
    made.memory, made.pointer = memory, memory.pointer
    return 0


cdef int take_type(Array made, int number) except -1:
    made.type, made.element, made.itemsize = <object>_dtypes[number], _elements[number], _sizes[number]
    return 0


cdef int take_shape(Array made, int rank, const Py_ssize_t* extents) except -1:
    """Extents, in row-major order; the type is known."""
    cdef int axis
    cdef Py_ssize_t stride = made.itemsize
    made.set_rank(rank)
    for axis in range(rank - 1, -1, -1):
        made.extents[axis], made.extents[rank + axis] = extents[axis], stride
        stride *= max(extents[axis], 1)
    made.dense = True
    return 0


cdef tuple shape_of(Array x):
    cdef int rank = x.rank
    if rank == 1:
        return (x.extents[0],)
    if rank == 2:
        return (x.extents[0], x.extents[1])
    return tuple([x.extents[axis] for axis in range(rank)])


cdef inline bint same_shape(Array one, Array other) noexcept:
    cdef int axis
    if one.rank != other.rank:
        return False
    for axis in range(one.rank):
        if one.extents[axis] != other.extents[axis]:
            return False
    return True


cdef inline bint has_shape(Array x, tuple shape):
    cdef int axis
    if x.rank != len(shape):
        return False
    for axis in range(x.rank):
        if x.extents[axis] != <Py_ssize_t>shape[axis]:
            return False
    return True
