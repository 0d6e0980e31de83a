# Operations that are not computed yet.

# Names of operations and pieces of CUDA C++, as numbers in keys.
cdef dict _numbers = {}


cdef int number_of(object name) except -1:
    cdef object found = _numbers.get(name)
    if found is None:
        found = _numbers.setdefault(name, len(_numbers) + 1)
    if found > 0x7fff:
        raise OverflowError("there are more operations than a key has numbers for")
    return found


cdef int GATHER = number_of("gather")


@cython.freelist(32)
cdef class Operation:
    """What nodes of an operation have in common if their operands have the same types."""

    cdef object name
    cdef tuple loop             # what the operands are converted to: numpy.dtype of each
    cdef object dtype           # of the result
    cdef object form
    cdef int code
    cdef int kind               # the number of dtype
    cdef int numbers[3]         # those of the loop, as far as there are so many


cdef int describe(Operation made, object name, tuple loop, object dtype, object form) except -1:
    cdef int k
    made.name, made.loop, made.dtype, made.form = name, loop, dtype, form
    made.code, made.kind = number_of(form if form else name), type_number(dtype)
    for k in range(min(<int>len(loop), 3)):
        made.numbers[k] = type_number(loop[k])
    return 0


@cython.final
@cython.freelist(32)
cdef class Node:
    """An operation, its operands, and the type and shape of the result.

    Parameters
    ----------
    name : str
        Of the operation, a key of OPERATIONS; ``"convert"`` or ``"where"``; ``"gather"``, whose operands are an array
        and, for each index, its value, its extent, its stride and where an index out of bounds is reported.
    operands : tuple
        Nodes, arrays in memory, or NumPy scalars.
    loop : tuple of numpy.dtype
        What the operands are converted to.
    dtype : numpy.dtype
        Of the result.
    shape : tuple of int
        Of the result.
    form : str
        CUDA C++ for what is no operation of the table, with ``i`` for the number of the element in row-major order.
        Such a node is computed at once, in one piece.

    Attributes
    ----------
    name, operands, loop, dtype, shape, form
        As given.
    leaves, nodes : int
        How large the expression is, at most.
    """

    cdef Operation operation
    cdef tuple known_shape              # None: that of the operands
    cdef tuple many                     # the operands; None: they are these two, or the first of them
    cdef object first
    cdef object second
    cdef int count                      # of operands
    cdef readonly int leaves
    cdef readonly int nodes
    cdef int reads                      # how many Buffers it reads, -1 if that is not known
    cdef PyObject* read[LEAVES]         # which the operands keep

    def __init__(self, name, tuple operands, tuple loop, dtype, shape, form=""):
        if len(loop) != len(operands):
            raise ValueError(f"{name} has {len(operands)} operands and {len(loop)} types")
        self.operation = Operation.__new__(Operation)
        describe(self.operation, name, loop, dtype, form)
        self.many, self.count = operands, <int>len(operands)
        self.known_shape = tuple(shape)
        self.measure()

    @property
    def name(self):
        """str: of the operation."""
        return self.operation.name

    @property
    def loop(self):
        """tuple of numpy.dtype: what the operands are converted to."""
        return self.operation.loop

    @property
    def dtype(self):
        """numpy.dtype: of the result."""
        return self.operation.dtype

    @property
    def form(self):
        """str: CUDA C++ for what is no operation of the table."""
        return self.operation.form

    @property
    def operands(self):
        """tuple: nodes, arrays in memory, or NumPy scalars."""
        cdef list found = []
        cdef int k
        cdef object one
        for k in range(self.count):
            one = operand_of(self, k)
            # A number of Python, in the type that it is computed in.
            found.append(self.operation.loop[k].type(one) if type(one) is float else one)
        return tuple(found)

    @property
    def shape(self):
        """tuple of int: the shape of the result."""
        cdef int k
        if self.known_shape is None:
            for k in range(self.count):
                operand = operand_of(self, k)
                if type(operand) is Node:
                    self.known_shape = (<Node>operand).shape
                    break
                if isinstance(operand, Array):
                    self.known_shape = shape_of(<Array>operand)
                    break
        return self.known_shape

    cdef int measure(self) except -1:
        cdef int k
        self.leaves, self.nodes, self.reads = 0, 1, -1
        for k in range(self.count):
            operand = operand_of(self, k)
            if type(operand) is Node:
                self.leaves += (<Node>operand).leaves
                self.nodes += (<Node>operand).nodes
            elif isinstance(operand, Array):
                self.leaves += 1
        return 0

    cdef void note_read(self, PyObject* memory) noexcept:
        cdef int k
        if self.reads < 0:
            return
        for k in range(self.reads):
            if self.read[k] == memory:
                return
        if self.reads == LEAVES:
            self.reads = -1
        else:
            self.read[self.reads] = memory
            self.reads += 1

    cdef void note_reads(self, Node operand) noexcept:
        cdef int k
        if operand.reads < 0:
            self.reads = -1
            return
        for k in range(operand.reads):
            self.note_read(operand.read[k])


cdef inline PyObject* operand_at(Node node, int k) noexcept:
    """The operand with that number, which the node keeps. A number of Python is one of float32 or float64."""
    if node.many is not None:
        return PyTuple_GET_ITEM(node.many, k)
    return <PyObject*>node.first if k == 0 else <PyObject*>node.second


cdef inline object operand_of(Node node, int k):
    return <object>operand_at(node, k)


cdef int memories(Node node, PyObject** found, int count) except -1:
    """The Buffers that an expression reads, each once, behind the first `count` of `found`; returns how many there are."""
    cdef int k, at
    cdef Buffer memory
    if count == 0 and node.reads >= 0:
        memcpy(found, node.read, node.reads * sizeof(PyObject*))
        return node.reads
    for at in range(node.count):
        operand = operand_of(node, at)
        if type(operand) is Node:
            count = memories(<Node>operand, found, count)
        elif isinstance(operand, Array):
            memory = (<Array>operand).open_memory()
            for k in range(count):
                if found[k] == <PyObject*>memory:
                    break
            else:
                if count == READ:
                    raise NotImplementedError(f"an expression of more than {READ} arrays")
                found[count] = <PyObject*>memory    # which the operand keeps
                count += 1
    return count
