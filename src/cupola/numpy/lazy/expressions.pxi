# Nodes made of operands, and pending arrays made of nodes.

def adopt(Array plain not None, Stream queue not None):
    """An array of `ndarray` of all memory of one of the base class in row-major order."""
    return adopted(plain, queue)


cdef Lazy adopted(Array plain, Stream queue):
    cdef Lazy made = new_array()
    made.itemsize, made.element, made.type = plain.itemsize, plain.element, plain.type
    take_shape(made, plain.rank, plain.extents)
    made.memory, made.pointer = plain.open_memory(), plain.pointer
    made._stream = queue
    return made


cdef object leaf(object value):
    """An operand as a node, an array in memory or a scalar."""
    cdef Lazy array
    if not isinstance(value, Lazy):
        return value
    array = <Lazy>value
    if array._node is not None and array._node.leaves <= LEAVES and array._node.nodes <= NODES:
        return array._node
    array.open_memory()
    return array


def leaf_of(value):
    """An operand as a node, an array in memory or a scalar."""
    return leaf(value)


cdef Node node_of(
    object name, int code, PyObject** operands, int count, tuple loop, object dtype, int kind, tuple shape, Stream queue
):
    """A node of these operands, of which the largest are computed before it becomes too large."""
    cdef Node made = Node.__new__(Node)
    cdef Node inner
    cdef Lazy array
    cdef int k
    cdef object operand
    cdef tuple many = None if count <= 2 else PyTuple_New(count)
    made.name, made.loop, made.dtype, made.known_shape, made.form = name, loop, dtype, shape, ""
    made.many, made.count = many, count
    made.code, made.kind, made.gathers = code, kind, code == GATHER
    made.leaves, made.nodes, made.reads = 0, 1, 0
    for k in range(count):
        operand = <object>operands[k]
        inner = None
        if isinstance(operand, Lazy):
            array = <Lazy>operand
            if _several:
                require_here(array)
            inner = array._node
            if inner is not None and inner.leaves <= LEAVES and inner.nodes <= NODES:
                operand = inner
            else:
                inner = None
                require_memory(array)
                made.note_read(<PyObject*>array.memory)
                made.leaves += 1
        elif type(operand) is Node:
            inner = <Node>operand
        elif isinstance(operand, Array):
            require_memory(<Array>operand)
            if _several:
                require_here(<Array>operand)
            made.note_read(<PyObject*>(<Array>operand).memory)
            made.leaves += 1
        if inner is not None:
            made.leaves += inner.leaves
            made.nodes += inner.nodes
            made.note_reads(inner)
        if many is not None:
            Py_INCREF(operand)
            PyTuple_SET_ITEM(many, k, operand)
        elif k == 0:
            made.first = operand
        else:
            made.second = operand
    if made.leaves > LEAVES or made.nodes > NODES:
        for k in range(count):
            if isinstance(<object>operands[k], Lazy):
                (<Lazy>operands[k]).open_memory()
        made.many = tuple([<object>operands[k] for k in range(count)])
        made.measure()
    return made


def make_node(name, tuple operands, tuple loop, dtype, shape):
    """A node of these operands, of which the largest are computed before it becomes too large."""
    if len(loop) != len(operands):
        raise ValueError(f"{name} has {len(operands)} operands and {len(loop)} types")
    cdef PyObject* given[READ]
    cdef int k, count = <int>len(operands)
    if count > READ:
        raise NotImplementedError(f"an expression of more than {READ} operands")
    for k in range(count):
        given[k] = <PyObject*>operands[k]
    return node_of(
        name, number_of(name), given, count, loop, dtype, type_number(dtype), tuple(shape), in_force()
    )


def pending(Node node not None):
    """An array with the elements of an expression, which is computed later if nobody may change what it reads."""
    cdef Lazy made = new_array()
    made.set_shape(node.shape, node.dtype)
    return made_pending(made, node, in_force())


cdef Lazy made_pending(Lazy made, Node node, Stream queue):
    cdef PyObject* read[READ]
    cdef int count = memories(node, read, 0)
    cdef int k
    cdef bint lent = False
    cdef Readers readers
    made._node, made._stream = node, queue
    if _several:
        made.home = here() + 1
    begin_pending(made)
    for k in range(count):
        readers = readers_of(<Buffer>read[k])
        lent |= readers.lent
        readers.some = True
    if lent:
        made.open_memory()
    return made
