# The list of pending arrays, and what is computed before memory is written.

# Pending arrays are in a list, from which they go when they are computed or are gone. It holds no references.
cdef struct Pending:
    Pending* before
    Pending* behind
    PyObject* array                     # NULL: not in the list
    PyObject* reference                 # a weak one, on builds without the GIL

cdef Pending* _newest = NULL
cdef object _listing = object()         # the lock of the list


cdef int begin_pending(Lazy x) except -1:
    """Add an array to the list."""
    global _newest
    cdef Pending* cell = &x.pending
    cdef object reference = None
    if FREE_THREADED:
        reference = PyWeakref_NewRef(x, None)
    with cython.critical_section(_listing):
        if cell.array == NULL:
            if FREE_THREADED:
                Py_INCREF(reference)
                cell.reference = <PyObject*>reference
            cell.array, cell.before, cell.behind = <PyObject*>x, NULL, _newest
            if _newest != NULL:
                _newest.before = cell
            _newest = cell
    return 0


cdef int end_pending(Pending* cell) except -1:
    """Take an array from the list."""
    global _newest
    cdef PyObject* reference = NULL
    if cell.array == NULL:
        return 0
    with cython.critical_section(_listing):
        if cell.array != NULL:
            if cell.before != NULL:
                cell.before.behind = cell.behind
            else:
                _newest = cell.behind
            if cell.behind != NULL:
                cell.behind.before = cell.before
            cell.array, reference, cell.reference = NULL, cell.reference, NULL
    if reference != NULL:
        Py_DECREF(<object>reference)
    return 0


cdef list all_pending(Buffer memory):
    """The pending arrays, the oldest first; only those that may read a Buffer, if it is not None."""
    cdef list found = []
    cdef Pending* cell
    cdef Lazy one
    with cython.critical_section(_listing):
        cell = _newest
        while cell != NULL:
            # One that is being deallocated is in the list until that is done.
            if FREE_THREADED:
                one = (<object>cell.reference)()
            else:
                one = None if cupola_is_dying(cell.array) else <Lazy>cell.array
            if one is not None and one._node is not None and (memory is None or may_read(one._node, memory)):
                found.append(one)
            cell = cell.behind
    found.reverse()
    return found


cdef bint may_read(Node node, Buffer memory) noexcept:
    cdef int k
    for k in range(node.reads):
        if node.read[k] == <PyObject*>memory:
            return True
    return node.reads < 0


@cython.final
cdef class Readers:
    """What a Buffer has as `attached`: whether pending arrays may read it, and whether it was lent."""

    cdef bint some
    cdef bint lent


cdef inline Readers readers_of(Buffer memory):
    if memory.attached is None:
        with cython.critical_section(memory):
            if memory.attached is None:
                memory.attached = Readers.__new__(Readers)
    return <Readers>memory.attached


cdef inline bint is_only_user(Buffer memory, Stream queue) noexcept:
    # Without the GIL, who uses the memory is not read in passing.
    if FREE_THREADED and memory.allocation is not None and memory.allocation.users is not None:
        return False
    return is_used_by(memory, queue.native)


cdef inline int order(Array x, Stream queue, bint writes) except -1:
    """Order work that is queued in `queue` next, and reads or `writes` an array, behind the work of other streams on it.

    What is recorded waits for nothing. The array has memory.
    """
    if not is_only_user(x.memory, queue):
        if _recording and queue in _recording:
            order_recorded_use(x.memory, queue.hold())
        else:
            users_of(x.memory).before(queue.hold(), writes)
    return 0


cdef inline int use_in(Array x, Stream queue, bint writes) except -1:
    """The same for a kernel of the current device."""
    if _several:
        require_here(x)
    return order(x, queue, writes)


cdef int before_writing(Array x) except -1:
    """Compute what is pending and reads the memory of an array."""
    cdef Readers readers
    require_memory(x)
    if x.memory.attached is None:
        return 0
    readers = <Readers>x.memory.attached
    if not readers.some:
        return 0
    readers.some = False
    try:
        for one in all_pending(x.memory):
            (<Lazy>one).open_memory()
    except BaseException:
        readers.some = True     # those that are left
        raise
    return 0
