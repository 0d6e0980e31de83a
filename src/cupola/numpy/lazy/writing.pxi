# Elements overwritten by expressions, which may read them.

def write(Lazy target not None, value, tuple at=None, str combine=None):
    """Overwrite the elements of an array with those of an array, a node or a scalar, converted.

    `at` and `combine` are those of `compute_into`.
    """
    cdef object source = leaf(value)
    cdef Stream queue
    cdef tuple shape
    if type(source) is Node:
        shape = (<Node>source).shape
    elif isinstance(source, Array):
        shape = shape_of(<Array>source)
    else:
        shape = ()
    if not at and isinstance(source, Array) and target.memory is not None and is_same(target, <Array>source):
        return      # x[k] += y ends with x[k] = x[k]
    if shape and not has_shape(target, shape):      # one element fits any shape
        own = shape_of(target)
        if numpy.broadcast_shapes(shape, own) != own:
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {own}")
    before_writing(target)
    queue = in_force()
    if at:
        for one in at:
            if isinstance(one, Lazy):
                (<Lazy>one).open_memory()
    if conflicts(target, source) or (at and reads(target, source)):
        if type(source) is not Node:
            source = Node("convert", (source,), (source.dtype,), source.dtype, shape)
        source = computed(<Node>source, queue)
    into(target, source, queue, at, combine)
    target._stream = queue


cdef bint reads(Array place, object source) except -1:
    """Whether an expression reads the memory of `place`."""
    cdef int k
    if type(source) is Node:
        for k in range((<Node>source).count):
            if reads(place, operand_of(<Node>source, k)):
                return True
        return False
    return isinstance(source, Array) and (<Array>source).open_memory() is place.open_memory()


cdef bint is_same(Array one, Array other) noexcept:
    """Whether both have the same elements in memory."""
    cdef int axis
    if one.memory is not other.memory or one.pointer != other.pointer or one.type is not other.type:
        return False
    if not same_shape(one, other):
        return False
    for axis in range(one.rank, 2 * one.rank):
        if one.extents[axis] != other.extents[axis]:
            return False
    return True


cdef bint conflicts(Array place, object source) except -1:
    """Whether an expression reads the memory of `place` in another layout than it is written."""
    cdef int k
    if type(source) is Node:
        for k in range((<Node>source).reads):
            if (<Node>source).read[k] == <PyObject*>place.memory:
                break
        else:
            if (<Node>source).reads >= 0:
                return False
        for k in range((<Node>source).count):
            if conflicts(place, operand_of(<Node>source, k)):
                return True
        return False
    if not isinstance(source, Array) or (<Array>source).open_memory() is not place.open_memory():
        return False
    return not is_same(place, <Array>source)
