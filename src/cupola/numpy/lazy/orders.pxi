# The order in which the dimensions of an array lie in memory: results lie as NumPy's, which follow the operands.

cdef Py_ssize_t step_of(Array array, int rank, int axis) noexcept:
    """How far an array goes along a dimension of a result of that rank, without its direction; 0 where it stays."""
    cdef int own = axis - (rank - array.rank)
    if own < 0 or array.extents[own] == 1:
        return 0
    return abs(array.extents[array.rank + own])


cdef bint lies_inside(PyObject** given, int count, int rank, int axis, int other, bint* known) except -1:
    """Whether arrays take shorter steps along a dimension than along another one; the order of rows wins among them.

    `known` is whether any of them tells.
    """
    cdef bint shorter = True
    cdef Py_ssize_t one, than
    cdef int k
    known[0] = False
    for k in range(count):
        if not isinstance(<object>given[k], Array):
            continue
        one, than = step_of(<Array>given[k], rank, axis), step_of(<Array>given[k], rank, other)
        if one and than:
            known[0] = True
            shorter = shorter and one < than
    return known[0] and shorter


cdef bint find_order(PyObject** given, int count, int rank, int* order) except -1:
    """The dimensions of a result, the farthest steps first; returns whether that differs from row-major order.

    This is the order K of NumPy: each dimension, from the last but one to the first, goes inside of those behind it as
    far as the arrays say so.
    """
    cdef int inner[MOST_AXES]       # the shortest steps first
    cdef int k, at, place, axis
    cdef bint known, moved = False
    for k in range(rank):
        axis, place = rank - 1 - k, k
        for at in range(k - 1, -1, -1):
            if lies_inside(given, count, rank, axis, inner[at], &known):
                place = at
            elif known:
                break
        for at in range(k, place, -1):
            inner[at] = inner[at - 1]
        inner[place] = axis
        moved |= place != k
    for k in range(rank):
        order[k] = inner[rank - 1 - k]
    return moved


cdef int take_order(Array made, const int* order) except -1:
    """Let a new array, which has a shape and a type, lie without gaps in an order of its dimensions."""
    cdef int k
    cdef Py_ssize_t stride = made.itemsize
    for k in range(made.rank - 1, -1, -1):
        made.extents[made.rank + order[k]] = stride
        stride *= max(made.extents[order[k]], 1)
    made.find_dense()
    return 0


cdef int follow(Array made, PyObject** given, int count) except -1:
    """Let a new array, which is in row-major order, lie as the operands do."""
    cdef int order[MOST_AXES]
    if made.rank > 1 and find_order(given, count, made.rank, order):
        take_order(made, order)
    return 0


cdef int turn(Array made) except -1:
    """Let a new array lie in column-major order."""
    cdef int order[MOST_AXES]
    cdef int k
    for k in range(made.rank):
        order[k] = made.rank - 1 - k
    return take_order(made, order)


cdef bint are_column_major(PyObject** given, int count) noexcept:
    """Whether there are arrays, and all are in column-major order without gaps."""
    cdef int order[MOST_AXES]
    cdef int k, axis
    cdef bint some = False
    for k in range(count):
        if isinstance(<object>given[k], Array):
            some = True
            for axis in range((<Array>given[k]).rank):
                order[axis] = (<Array>given[k]).rank - 1 - axis
            if not lies_in(<Array>given[k], order):
                return False
    return some


cdef void lie_as(Array made, Array other) noexcept:
    """Let a new array lie as another one of its shape and type, which has no gaps."""
    cdef int axis
    for axis in range(made.rank, 2 * made.rank):
        made.extents[axis] = other.extents[axis]
    made.dense = other.dense


cdef bint order_of(Array x, int* order) except -1:
    """The dimensions of an array, the farthest steps first; returns whether that differs from row-major order."""
    cdef PyObject* given[1]
    given[0] = <PyObject*>x
    return x.rank > 1 and not x.dense and find_order(given, 1, x.rank, order)


cdef bint lies_in(Array x, const int* order) noexcept:
    """Whether an array lies without gaps in an order of its dimensions."""
    cdef int k, axis
    cdef Py_ssize_t stride = x.itemsize
    for k in range(x.rank - 1, -1, -1):
        axis = order[k]
        if x.extents[axis] != 1 and x.extents[x.rank + axis] != stride:
            return False
        stride *= x.extents[axis]
    return True
