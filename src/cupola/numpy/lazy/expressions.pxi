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


cdef Node node_of(Operation operation, PyObject** operands, int count, tuple shape):
    """A node of these operands, of which the largest are computed before it becomes too large."""
    cdef Node made = Node.__new__(Node)
    cdef PyObject* inner
    cdef PyObject* operand
    cdef int k
    cdef tuple many = None
    if count > 2:
        many = made.many = PyTuple_New(count)
    made.operation, made.count = operation, count
    if shape is not None:
        made.known_shape = shape
    made.leaves, made.nodes, made.reads = 0, 1, 0
    for k in range(count):
        operand, inner = operands[k], NULL
        if is_lazy(operand):
            if _several:
                require_here(<Lazy>operand)
            inner = <PyObject*>(<Lazy>operand)._node
            if inner != <PyObject*>None and (<Node>inner).leaves <= LEAVES and (<Node>inner).nodes <= NODES:
                operand = inner
            else:
                inner = NULL
                require_memory(<Lazy>operand)
                made.note_read(<PyObject*>(<Lazy>operand).memory)
                made.leaves += 1
        elif type(<object>operand) is Node:
            inner = operand
        elif isinstance(<object>operand, Array):
            require_memory(<Array>operand)
            if _several:
                require_here(<Array>operand)
            made.note_read(<PyObject*>(<Array>operand).memory)
            made.leaves += 1
        if inner != NULL:
            made.leaves += (<Node>inner).leaves
            made.nodes += (<Node>inner).nodes
            made.note_reads(<Node>inner)
        if many is not None:
            Py_INCREF(<object>operand)
            PyTuple_SET_ITEM(many, k, <object>operand)
        elif k == 0:
            made.first = <object>operand
        else:
            made.second = <object>operand
    if made.leaves > LEAVES or made.nodes > NODES:
        for k in range(count):
            if is_lazy(operands[k]):
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
    cdef Operation operation = Operation.__new__(Operation)
    if count > READ:
        raise NotImplementedError(f"an expression of more than {READ} operands")
    for k in range(count):
        given[k] = <PyObject*>operands[k]
    describe(operation, name, loop, dtype, "")
    return node_of(operation, given, count, tuple(shape))


def pending(Node node not None, tuple like=(), str order="K"):
    """An array with the elements of an expression, which is computed later if nobody may change what it reads.

    Parameters
    ----------
    node : Node
        The expression.
    like : tuple
        Its operands. What is no array, or is not to decide how the result lies, may be left out.
    order : str
        How it lies: K as they do, row-major if there are none; C row-major; F column-major; A column-major if all of
        them are, else row-major.
    """
    cdef Lazy made = new_array()
    cdef PyObject* given[READ]
    cdef int k, count = min(<int>len(like), READ)
    made.set_shape(node.shape, node.operation.dtype)
    for k in range(count):
        given[k] = <PyObject*>like[k]
    if order == "K":
        follow(made, given, count)
    elif order == "F" or (order == "A" and are_column_major(given, count)):
        turn(made)
    return made_pending(made, node, in_force())


cdef Lazy made_pending(Lazy made, Node node, Stream queue):
    cdef PyObject* found[READ]
    cdef PyObject** read = node.read
    cdef int count = node.reads
    cdef int k
    cdef bint lent = False
    cdef Readers readers
    if count < 0:
        read, count = found, memories(node, found, 0)
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
