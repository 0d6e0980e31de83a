# The array that may be pending.

cdef enum:
    SPARES = 64

# Arrays of exactly the package's class that are gone: as new ones, and with memory for the next.
cdef PyObject* _spares[SPARES]
cdef int _spare_count = 0
cdef destructor _ordinary_end = NULL        # what ends an array of another class


cdef inline bint is_lazy(PyObject* given) noexcept:
    return Py_TYPE(given) == _exact_class or isinstance(<object>given, Lazy)


cdef inline Lazy new_array():
    """An array of the package's class, without anything."""
    global _spare_count
    if _spare_count > 0:
        _spare_count -= 1
        return <Lazy>cupola_anew(_spares[_spare_count], _exact_class)
    if not _complete:
        above("complete_arrays")()      # some module was imported by itself, as in unpickling
    return <Lazy>cupola_new(_array_class, ())


cdef void _end(PyObject* given) noexcept:
    """What deallocates an array of the package's class, or one below it: all fields of Lazy and Array are as in a new one."""
    global _spare_count
    cdef PyTypeObject* kind = Py_TYPE(given)
    if kind != _exact_class or _spare_count == SPARES or cupola_has_finalizer(given):
        _ordinary_end(given)
        cupola_let_go(kind)
        return
    PyObject_GC_UnTrack(given)
    cupola_clear_references(given)
    end_pending(&(<Lazy>given).pending)
    if (<Lazy>given).extents != (<Lazy>given).few_extents:
        PyMem_Free((<Lazy>given).extents)
        (<Lazy>given).extents = (<Lazy>given).few_extents
    (<Lazy>given)._node = None
    (<Lazy>given)._stream = None
    (<Lazy>given).base = None
    (<Lazy>given).memory = None
    (<Lazy>given).type = None
    (<Lazy>given).pointer, (<Lazy>given).rank, (<Lazy>given).readonly, (<Lazy>given).dense = 0, 0, False, False
    (<Lazy>given).element, (<Lazy>given).itemsize, (<Lazy>given).home = 0, 0, 0
    if _spare_count < SPARES:       # others may be gone with what it had
        _spares[_spare_count] = given
        _spare_count += 1
    else:
        PyObject_GC_Del(given)
    cupola_let_go(kind)


def quick_end(type cls not None):
    """Keep the memory of arrays of a class below Lazy that are gone, for the next ones."""
    global _ordinary_end
    if not FREE_THREADED and cupola_is_plain(<PyTypeObject*>cls, <PyTypeObject*>Lazy):
        _ordinary_end = cupola_replace_end(<PyTypeObject*>cls, <PyTypeObject*>Lazy, _end)


cdef inline int require_memory(Array x) except -1:
    """What open_memory() does, without a call in the usual case."""
    if x.memory is None or x.memory.allocation is None or resets != 0:
        x.open_memory()
    return 0


cdef class Lazy(Array):
    """An array that may exist before its elements are computed: the base class of `cupola.numpy.ndarray`.

    Attributes
    ----------
    _node : Node or None
        The expression, as long as it is pending.
    _stream : Stream
        In which it was computed, or was made pending.
    base : ndarray or None
        What has the memory, if this is a view.
    """

    # Whoever adds a field here or in Array lets _end() clear it.
    cdef public Node _node
    cdef public Stream _stream
    cdef readonly Lazy base
    cdef Pending pending
    cdef int home               # the ordinal of its device plus one; 0: not asked yet

    def __init__(self, *args, **kwargs):
        pass

    def __dealloc__(self):
        end_pending(&self.pending)

    cdef Array beside(self, Py_ssize_t rank):
        cdef Array made = Array.beside(self, rank)
        if isinstance(made, Lazy):
            (<Lazy>made)._stream, (<Lazy>made).home = self._stream, self.home
            (<Lazy>made).base = self if self.base is None else self.base
        return made

    def _compute(self):
        if self._node is None:
            Array._compute(self)
        if not _several:
            self.compute_in(in_force())
            return
        current = own_device(self)
        elsewhere = current.__enter__()
        try:
            self.compute_in(self._own_stream() if elsewhere else in_force())
        finally:
            current.__exit__()

    cdef int compute_in(self, Stream queue) except -1:
        cdef Array target
        target = Array.__new__(Array)
        target.itemsize, target.element, target.type = self.itemsize, self.element, self.type
        take_shape(target, self.rank, self.extents)
        if not self.dense:
            lie_as(target, self)
        allocate(target, queue)
        into(target, self._node, queue, None, None)
        self._node, self._stream = None, queue
        self.memory, self.pointer = target.memory, target.pointer
        end_pending(&self.pending)
        return 0

    def _own_stream(self):
        """The stream that has made the array, or the default stream; where its device is current, and was not."""
        return default_stream() if self._stream.is_closed else self._stream

    def _compute_now(self):
        """Give the array memory, if it has none."""
        self.open_memory()

    def _memory(self):
        """The Buffer, which nobody else is given."""
        return self.open_memory()

    def _address(self):
        """int: the address of the first element, for work that is queued now, may write it, and keeps nothing."""
        require_open(self.open_memory())
        use_in(self, in_force(), True)
        return self.pointer

    def _before_writing(self):
        """Compute what is pending and reads the memory."""
        before_writing(self)

    def _join(self, Stream queue=None, bint writes=False):
        """Let a stream, the current one by default, see the elements, or overwrite them."""
        self.open_memory()
        use_in(self, in_force() if queue is None else queue, writes)

    def _order(self, Stream queue=None, bint writes=False):
        """The same for a copy, also of an array of another device."""
        self.open_memory()
        order(self, in_force() if queue is None else queue, writes)

    def _place(self):
        """int: the ordinal of the device that has the memory, or will have it; -1 for memory that all may use."""
        return home_of(self)

    def _lend(self):
        """A kernel of the program gets the array: what reads it is computed first, and so is it."""
        cdef Users users
        before_writing(self)
        readers_of(self.memory).lent = True
        users = users_of(self.memory)
        if users.is_busy():
            waiting = noted("wait")
            waiting.__enter__()
            try:
                users.sync()            # the kernel may run in any stream
            finally:
                waiting.__exit__()

    # --- indices ----------------------------------------------------------------------------------------

    def _part(self, key):
        """The view that an index of ints, slices, ... and None chooses."""
        return self.part(key)

    def __getitem__(self, key):
        """The view or the elements that an index chooses, as in NumPy."""
        if is_plain_key(key):
            return self.part(key)
        if self.rank == 1 and isinstance(key, Lazy) and (<Lazy>key).type is <object>_dtypes[_INT64] and self.extents[0]:
            return gathered(self, <Lazy>key)
        return _getitem(self, key)

    def __setitem__(self, key, value):
        """Overwrite what an index chooses; the value is broadcast and converted."""
        if not is_plain_key(key) or not (isinstance(value, Lazy) or (type(value) is float and self.type.kind == "f")):
            _setitem(self, key, value)
            return
        if type(value) is float:
            value = self.type.type(value)
        write(self if key is Ellipsis else self.part(key), value)

    # --- operators --------------------------------------------------------------------------------------

    def __add__(self, other):
        return operate(ADD, self, other)

    def __radd__(self, other):
        return operate(ADD, other, self)

    def __iadd__(self, other):
        return operate_in_place(ADD, self, other)

    def __sub__(self, other):
        return operate(SUBTRACT, self, other)

    def __rsub__(self, other):
        return operate(SUBTRACT, other, self)

    def __isub__(self, other):
        return operate_in_place(SUBTRACT, self, other)

    def __mul__(self, other):
        return operate(MULTIPLY, self, other)

    def __rmul__(self, other):
        return operate(MULTIPLY, other, self)

    def __imul__(self, other):
        return operate_in_place(MULTIPLY, self, other)

    def __truediv__(self, other):
        return operate(DIVIDE, self, other)

    def __rtruediv__(self, other):
        return operate(DIVIDE, other, self)

    def __itruediv__(self, other):
        return operate_in_place(DIVIDE, self, other)

    def __floordiv__(self, other):
        return operate(FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other):
        return operate(FLOOR_DIVIDE, other, self)

    def __ifloordiv__(self, other):
        return operate_in_place(FLOOR_DIVIDE, self, other)

    def __mod__(self, other):
        return operate(REMAINDER, self, other)

    def __rmod__(self, other):
        return operate(REMAINDER, other, self)

    def __imod__(self, other):
        return operate_in_place(REMAINDER, self, other)

    def __and__(self, other):
        return operate(BITWISE_AND, self, other)

    def __rand__(self, other):
        return operate(BITWISE_AND, other, self)

    def __iand__(self, other):
        return operate_in_place(BITWISE_AND, self, other)

    def __or__(self, other):
        return operate(BITWISE_OR, self, other)

    def __ror__(self, other):
        return operate(BITWISE_OR, other, self)

    def __ior__(self, other):
        return operate_in_place(BITWISE_OR, self, other)

    def __xor__(self, other):
        return operate(BITWISE_XOR, self, other)

    def __rxor__(self, other):
        return operate(BITWISE_XOR, other, self)

    def __ixor__(self, other):
        return operate_in_place(BITWISE_XOR, self, other)

    def __lshift__(self, other):
        return operate(LEFT_SHIFT, self, other)

    def __rlshift__(self, other):
        return operate(LEFT_SHIFT, other, self)

    def __ilshift__(self, other):
        return operate_in_place(LEFT_SHIFT, self, other)

    def __rshift__(self, other):
        return operate(RIGHT_SHIFT, self, other)

    def __rrshift__(self, other):
        return operate(RIGHT_SHIFT, other, self)

    def __irshift__(self, other):
        return operate_in_place(RIGHT_SHIFT, self, other)

    def __lt__(self, other):
        return operate(LESS, self, other)

    def __le__(self, other):
        return operate(LESS_EQUAL, self, other)

    def __gt__(self, other):
        return operate(GREATER, self, other)

    def __ge__(self, other):
        return operate(GREATER_EQUAL, self, other)

    def __eq__(self, other):
        return operate(EQUAL, self, other)

    def __ne__(self, other):
        return operate(NOT_EQUAL, self, other)

    def __neg__(self):
        return operate_alone(NEGATIVE, self)

    def __pos__(self):
        return operate_alone(POSITIVE, self)

    def __abs__(self):
        return operate_alone(ABSOLUTE, self)

    # --- reductions -------------------------------------------------------------------------------------

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
        """As ``cupola.numpy.sum`` of this array."""
        return reduce("sum", self, axis, dtype, out, keepdims, initial, where)

    def prod(self, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True):
        """As ``cupola.numpy.prod`` of this array."""
        return reduce("prod", self, axis, dtype, out, keepdims, initial, where)

    def max(self, axis=None, out=None, keepdims=False, initial=None, where=True):
        """As ``cupola.numpy.max`` of this array."""
        return reduce("max", self, axis, None, out, keepdims, initial, where)

    def min(self, axis=None, out=None, keepdims=False, initial=None, where=True):
        """As ``cupola.numpy.min`` of this array."""
        return reduce("min", self, axis, None, out, keepdims, initial, where)

    def any(self, axis=None, out=None, keepdims=False, *, where=True):
        """As ``cupola.numpy.any`` of this array."""
        return reduce("any", self, axis, None, out, keepdims, None, where)

    def all(self, axis=None, out=None, keepdims=False, *, where=True):
        """As ``cupola.numpy.all`` of this array."""
        return reduce("all", self, axis, None, out, keepdims, None, where)

    def __invert__(self):
        return operate_alone(INVERT, self)
