# Indices that need no Python code.

cdef bint is_plain_key(object key) noexcept:
    """Whether an index has ints, slices, ... and None only, none of a class of its own."""
    cdef PyObject* one
    cdef Py_ssize_t k
    if type(key) is not tuple:
        return type(key) is int or type(key) is slice or key is None or key is Ellipsis
    for k in range(len(<tuple>key)):
        one = PyTuple_GET_ITEM(<tuple>key, k)
        if not (type(<object>one) is int or type(<object>one) is slice or <object>one is None or <object>one is Ellipsis):
            return False
    return True


cdef Lazy gathered(Lazy x, Lazy index):
    """The elements of an array of one dimension at places."""
    cdef Array layout = Array.__new__(Array)
    cdef Stream queue = in_force()
    cdef PyObject* operands[5]
    cdef object extent, stride, report
    cdef int axis
    x.open_memory()
    layout.itemsize, layout.element, layout.type = x.itemsize, x.element, x.type
    layout.memory, layout.pointer = x.memory, x.pointer
    layout.set_rank(index.rank)
    for axis in range(index.rank):
        layout.extents[axis], layout.extents[index.rank + axis] = index.extents[axis], 0
    layout.find_dense()
    integer, unsigned = <object>_dtypes[_INT64], <object>_dtypes[_UINT64]
    extent, stride, report = integer.type(x.extents[0]), integer.type(x.extents[1]), _report_address()
    operands[0], operands[1], operands[2] = <PyObject*>layout, <PyObject*>index, <PyObject*>extent
    operands[3], operands[4] = <PyObject*>stride, <PyObject*>report
    cdef Lazy made = new_array()
    take_type(made, type_number(x.type))
    take_shape(made, index.rank, index.extents)
    cdef Operation operation = Operation.__new__(Operation)
    describe(operation, "gather", (x.type, integer, integer, integer, unsigned), x.type, "")
    return made_pending(made, node_of(operation, operands, 5, shape_of(index)), queue)
