# Expressions computed into memory: the kernel is found by its key.

# The kernels of expressions of a structure, by their key. A kernel is found by its text, too, but writing that takes longer.
cdef dict _known = {}


cdef int operands_into(Walk* walk, Value* slots, void** parameters, int count, int arrays) except -1:
    """Add arrays and scalars to the parameters of a launch; returns how many there are."""
    cdef int k
    cdef Array array
    for k in range(arrays):
        array = <Array>walk.array[k]
        slots[k].u = array.pointer
        parameters[count] = &slots[k]
        count += 1
    for k in range(walk.values):
        store(<object>walk.value[k], walk.kind[k], &slots[arrays + k])
        parameters[count] = &slots[arrays + k]
        count += 1
    return count


cdef inline bint numbers_elements(object value) noexcept:
    """Whether an expression depends on the numbers of the elements in row-major order."""
    return type(value) is Node and bool((<Node>value).operation.form)


cdef Kernel into(Array target, object value, Stream queue, tuple at, str combine):
    """What `compute_into` does; returns the kernel, or None if there was nothing to do."""
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Value slots[READ + VALUES]
    cdef void* parameters[READ + VALUES + 5]
    cdef int64_t n = target.count()
    cdef int64_t length, rows, shares, share, blocks
    cdef uint64_t to
    cdef int k, count, arrays
    cdef int order[MOST_AXES]
    cdef bint wide, moved
    cdef bytes key
    cdef Kernel kernel
    if n == 0:
        return None
    walk.words = walk.arrays = walk.values = walk.seen = 0
    visit(&walk, value)
    if at:
        push(&walk, 0x4000 | <int>len(at))
        for one in at:
            visit(&walk, one)
    arrays = walk.arrays
    for k in range(arrays):
        require_memory(<Array>walk.array[k])
        use_in(<Array>walk.array[k], queue, False)
    require_memory(target)
    use_in(target, queue, True)
    push_array(&walk, target)
    if combine:
        push(&walk, 0x5000 | number_of(combine))
    # Elements are taken in the order in which they lie, where nothing depends on it.
    moved = not target.dense and not at and not numbers_elements(value) and order_of(target, order)
    plan(&walk, target.rank, target.extents, order if moved else NULL, 0, &found, modes)
    if modes[arrays] == c"1":
        modes[arrays] = c"c" if found.axes < 0 else c"g"
    length = take_rows(&walk, &found, modes) if combine is None else 0
    for k in range(walk.arrays):
        push(&walk, modes[k])
    wide = (found.axes > 1 or length) and n >= <int64_t>1 << 31
    push(&walk, (found.axes & 0xff) | wide << 8)
    key = PyBytes_FromStringAndSize(<char*>walk.key, walk.words * sizeof(uint16_t))
    kernel = <Kernel>_known.get(key)
    if kernel is None:
        kernel = _elementwise(
            value, target.type, at, combine or "", bytes([modes[k] for k in range(walk.arrays)]).decode(), found.axes,
            wide
        )
        _known[key] = kernel
    to = target.pointer
    parameters[0], parameters[1] = &to, &n
    count = 2
    blocks = blocks_for(n)
    if length:
        rows = n // length
        # Few rows are shared out, in pieces that blocks have something to do for.
        shares = min(max(PARTS // rows, 1), (length + BLOCK - 1) // BLOCK)
        share = ((length + shares - 1) // shares + BLOCK - 1) // BLOCK * BLOCK
        parameters[1], parameters[2], parameters[3] = &rows, &length, &share
        count = 4
        blocks = min(rows * ((length + share - 1) // share), most_blocks())
    if found.axes > 0:
        parameters[count] = found.numbers
        count += 1
    operands_into(&walk, slots, parameters, count, arrays)
    start(queue, kernel, blocks, parameters)
    return kernel


def compute_into(Array target not None, value, Stream queue not None, tuple at=None, str combine=None):
    """Compute an expression, converted to the type of an array, into that array.

    The expression broadcasts to its shape. It must not read the array's memory in another layout than it is written.

    Parameters
    ----------
    target : Array
        What is written; a dimension that indices go through has a stride of 0.
    value : Node, Array or numpy scalar
        The elements.
    queue : Stream
        Where the work is queued.
    at : tuple
        Index, extent, stride and address of the report for each index, as in `Text.place`.
    combine : str
        How elements are combined with those that are there, ``a`` and ``b`` in CUDA C++; they are overwritten without.
    """
    into(target, value, queue, at, combine)


def compute(Node value not None, Stream queue not None):
    """Compute an expression into new memory."""
    return computed(value, queue)


cdef Array computed(Node value, Stream queue):
    cdef Array made = Array.__new__(Array)
    made.set_shape(value.shape, value.operation.dtype)
    allocate(made, queue)
    into(made, value, queue, None, None)
    return made


def new_memory(shape, dtype, Stream queue not None):
    """Memory for an array in row-major order, allocated in the order of a stream."""
    cdef Array made = Array.__new__(Array)
    made.set_shape(shape, dtype)
    allocate(made, queue)
    return made
