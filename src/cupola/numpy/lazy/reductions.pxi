# Reductions: how they are shared out among blocks, and calls of the usual form.

def reduce_along(how, Lazy x not None, tuple axes, dtype, Stream queue not None):
    """Reduce an array over some of its dimensions.

    Parameters
    ----------
    how : str
        A key of COMBINE, or what to begin with and how ``a`` and ``b`` are combined.
    x : ndarray
        What is reduced.
    axes : tuple of int
        The dimensions that go.
    dtype : numpy.dtype
        What the elements are converted to, and of the result.
    queue : Stream
        Where the work is queued.

    Returns
    -------
    ndarray
    """
    cdef bint gone[MOST_AXES]
    cdef int axis
    for axis in range(x.rank):
        gone[axis] = axis in axes
    return reduced(how, x, type_number(dtype), gone, queue)


cdef Lazy reduced(object how, Lazy x, int to, const bint* gone, Stream queue):
    """A new array for a reduction of `x`, of the type with the number `to`; it lies as `x` does."""
    cdef Py_ssize_t extents[MOST_AXES]
    cdef int order[MOST_AXES]
    cdef int places[MOST_AXES]
    cdef int left[MOST_AXES]
    cdef int k, rank = 0
    cdef bint moved = not x.dense and order_of(x, order)
    cdef Lazy made = new_array()
    for k in range(x.rank):
        if not gone[k]:
            extents[rank], places[k] = x.extents[k], rank
            rank += 1
    take_type(made, to)
    take_shape(made, rank, extents)
    if moved:
        rank = 0
        for k in range(x.rank):
            if not gone[order[k]]:
                left[rank] = places[order[k]]
                rank += 1
        take_order(made, left)
    made._stream = queue
    allocate(made, queue)
    reduce_into(made, how, leaf(x), x.rank, x.extents, gone, order if moved else NULL, queue)
    return made


# Zeros in which blocks of a reduction count who of them is done; each leaves them as they were. Work of one stream comes one
# after the other, so it needs them once: by the stream, the context and how often contexts were reset.
cdef dict _counters = {}


cdef Array counters_for(Stream queue):
    cdef StreamHandle held = queue.hold()
    cdef CUcontext context = NULL
    cdef object key
    cdef Array found
    # The stream of each thread is another one, and what is recorded runs anywhere, and more than once.
    if <uintptr_t>held.pointer == 2 or (_recording and queue in _recording):
        return _new_counters(queue)
    check(cu.cuCtxGetCurrent(&context), b"cuCtxGetCurrent")
    key = (<uintptr_t><PyObject*>queue, <uintptr_t>context, resets)
    found = <Array>_counters.get(key)
    if found is None:
        found = _counters[key] = _new_counters(queue)
        if <uintptr_t>held.pointer > 2:
            weakref.finalize(queue, _counters.pop, key, None).atexit = False
    return found


cdef Array _new_counters(Stream queue):
    cdef Array made = new_memory((PARTS,), _UINT, queue)
    made.memory.fill(0, stream=queue)
    return made


cdef int reduce_into(
    Array target, object how, object value, int rank, const Py_ssize_t* extents, const bint* gone, const int* by,
    Stream queue
) except -1:
    """Reduce an expression into an array without gaps, whose dimensions lie in the order of `by`.

    That is an order of the dimensions of the expression, the farthest steps first; NULL: row-major. Elements are taken in
    that order.
    """
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Value slots[READ + VALUES]
    cdef void* parameters[READ + VALUES + 8]
    cdef int order[MOST_AXES]
    cdef int at, axis, k = 0
    cdef int kept
    cdef int nearest = -1               # the dimension along which elements are neighbors
    cdef int64_t count = 1, results = target.count(), share, shares = 1, blocks, wanted
    cdef uint64_t to, partial_to = 0, counters_at = 0
    cdef bint moved = False, wide
    cdef Sharing sharing
    cdef bytes key
    cdef Kernel kernel
    cdef Array partial = None, counters = None
    if results == 0:
        return 0
    for at in range(rank):
        nearest = axis = by[at] if by != NULL else at
        if not gone[axis]:
            order[k] = axis
            k += 1
    kept = k
    for at in range(rank):
        axis = by[at] if by != NULL else at
        if gone[axis]:
            order[k] = axis
            k += 1
            count *= extents[axis]
    for axis in range(rank):
        moved |= order[axis] != axis
    walk.words = walk.arrays = walk.values = walk.seen = 0
    visit(&walk, value)
    for k in range(walk.arrays):
        require_memory(<Array>walk.array[k])
        use_in(<Array>walk.array[k], queue, False)
    use_in(target, queue, True)
    plan(&walk, rank, extents, order if moved else NULL, kept, &found, modes)
    share = count
    wide = results * max(count, 1) >= <int64_t>1 << 31
    if count <= 32 or (kept and order[kept - 1] == nearest and results >= 1 << 17):
        sharing = BY_THREAD
        blocks = blocks_for(results)
    else:
        # Where that dimension stays, results that are neighbors have elements that are.
        sharing = BY_COLUMNS if kept and order[kept - 1] == nearest and extents[nearest] >= 8 else BY_ROWS
        blocks = (results + 31) // 32 if sharing == BY_COLUMNS else results
        wanted = min(PARTS // blocks, (count * (32 if sharing == BY_COLUMNS else 1) + LEAST - 1) // LEAST)
        if wanted > 1:
            share = (count + wanted - 1) // wanted
            shares = (count + share - 1) // share
        if shares > 1:
            partial = new_memory((results, shares), target.type, queue)
            counters = counters_for(queue)
            partial_to, counters_at = partial.pointer, counters.pointer
        blocks = min(blocks * shares, 1 << 16)
    for k in range(walk.arrays):
        push(&walk, modes[k])
    push(&walk, found.axes & 0xffff)
    push(&walk, found.kept)
    push(&walk, 0x6000 | number_of(how))
    push(&walk, type_number(target.type) | sharing << 5 | wide << 7)
    key = PyBytes_FromStringAndSize(<char*>walk.key, walk.words * sizeof(uint16_t))
    kernel = <Kernel>_known.get(key)
    if kernel is None:
        kernel = _reduction(
            how, value, target.type, bytes([modes[k] for k in range(walk.arrays)]).decode(), found.kept, found.axes,
            <int>sharing, wide
        )
        _known[key] = kernel
    to = target.pointer
    parameters[0], parameters[1], parameters[2] = &to, &partial_to, &counters_at
    parameters[3], parameters[4], parameters[5] = &results, &count, &share
    k = 6
    if found.axes > 0:
        parameters[6] = found.numbers
        k = 7
    operands_into(&walk, slots, parameters, k, walk.arrays)
    start(queue, kernel, blocks, parameters)
    return 0


# The type that a reduction computes in, by the type of the elements: for sums and products, and for any and all.
cdef int _totals[TYPES]


cdef int _fill_totals() except -1:
    cdef int number
    cdef object dtype
    for number in range(TYPES):
        dtype = _DTYPES[number]
        _totals[number] = number
        if dtype.kind in "biu" and dtype.itemsize < 8:
            _totals[number] = _CHARS.index("L" if dtype.kind == "u" else "l")
    return 0


_fill_totals()


cpdef reduce(
    how, obj, axis=None, dtype=None, out=None, bint keepdims=False, initial=None, where=True
):
    """Combine elements along axes; `how` is a key of COMBINE.

    What is not of the usual form is for `_ndarray.reduce`.
    """
    cdef Lazy x
    cdef int number, to, k, at = -1
    cdef bint gone[MOST_AXES]
    cdef Py_ssize_t count = 1
    if not (
        dtype is None and out is None and initial is None and where is True and not keepdims and isinstance(obj, Lazy)
        and type(how) is str and (axis is None or type(axis) is int)
    ):
        return _reduce(how, obj, axis, dtype, out, keepdims, initial, where)
    x = <Lazy>obj
    number = type_number(x.type)
    if axis is not None:
        if not -x.rank <= axis < x.rank:
            return _reduce(how, obj, axis, dtype, out, keepdims, initial, where)
        at = axis if axis >= 0 else axis + x.rank
    for k in range(x.rank):
        gone[k] = at < 0 or k == at
        if gone[k]:
            count *= x.extents[k]
    if how == "sum" or how == "prod":
        to = _totals[number]
    elif how == "any" or how == "all":
        to = _CHARS.index("?")
    else:
        to = number
    # Sums of halves are computed as float32, as in NumPy; extremes of nothing are an error.
    if (to != number and number == _HALF) or (how in ("sum", "prod") and number == _HALF) or count == 0:
        return _reduce(how, obj, axis, dtype, out, keepdims, initial, where)
    return reduced(how, x, to, gone, in_force())


def mean(obj, axis=None):
    """The mean of floating-point or complex elements; None if it is not of the usual form."""
    cdef Lazy x, total
    cdef object many
    cdef PyObject* given[2]
    if not isinstance(obj, Lazy) or not (axis is None or type(axis) is int):
        return None
    x = <Lazy>obj
    if _CHARS[type_number(x.type)] not in "fdFD" or (x.rank == 0 and axis is not None):
        return None
    total = reduce("sum", x, axis, None, None, False, None, True)
    many = float(x.count() // total.count()) if total.count() else 1.0
    given[0], given[1] = <PyObject*>total, <PyObject*>many
    return apply(function_of(DIVIDE), given, None)
