# Calls of elementwise functions, from the interpreter to the node or the launch.

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


@cython.final
cdef class Loop(Operation):
    """An elementwise function with the types that it computes operands of certain types in."""

    cdef tuple classes          # the scalars of the operands
    cdef int which              # the kinds of the operands, as one number


cdef class Elementwise:
    """What the call of an elementwise function needs: the base class of `ufunc`.

    Attributes
    ----------
    name : str
        The name.
    nin : int
        How many operands it has.
    """

    cdef void* vectorcall
    cdef readonly object name
    cdef readonly int nin
    cdef int code
    cdef bint careful           # integers to negative powers are refused
    cdef bint compares          # also with integers of Python that the type of an array does not have
    cdef dict loops             # kinds of the operands, as one number -> Loop
    cdef Loop last              # the one of the last call, which stays in `loops`
    cdef dict direct            # and of the result, and how they lie -> Kernel

    def __cinit__(self):
        self.vectorcall = <void*>_call
        self.loops, self.direct = {}, {}

    def _prepare(self, name, int nin):
        """Take the name, and how many operands there are."""
        if nin > 2:
            raise ValueError("an elementwise function has one operand or two")
        self.name, self.nin, self.code, self.careful = name, nin, number_of(name), name == "power"
        self.compares = name in COMPARISONS

    def __call__(
        self, *operands, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True, signature=None
    ):
        """Apply the function.

        Parameters
        ----------
        *operands : array_like
            Arrays of the device, NumPy scalars, Python numbers and lists of them; no arrays of NumPy.
        out : ndarray, optional
            Gets the result, converted. It is computed at once.
        where : ndarray of bool
            Where results are stored in `out`; without `out`, the function is applied everywhere.
        dtype : optional
            The type to compute in.
        casting : str
            Which conversions of the operands and of the result are fine, as in NumPy.
        order : str
            How a new array for the result lies: K as the operands, C row-major, F column-major, A column-major if all
            operands are.
        subok : bool
            Means nothing here.
        signature : tuple or str, optional
            The types of operands and result to compute in.

        Returns
        -------
        ndarray
        """
        raise NotImplementedError("the slot of this method is replaced by _call")


cdef PyObject* _call(PyObject* callee, PyObject** arguments, size_t flags, PyObject* names) except NULL:
    cdef Elementwise function = <Elementwise>callee
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags)
    cdef object out = None
    cdef object made
    cdef Py_ssize_t k
    cdef dict named
    if names == NULL:
        if count == function.nin + 1:
            out = <object>arguments[function.nin]
            count -= 1
    elif len(<tuple>names) == 1 and (<tuple>names)[0] == "out" and count == function.nin:
        out = <object>arguments[count]
        if type(out) is tuple and len(<tuple>out) == 1:
            out = (<tuple>out)[0]
    else:
        count = -1
    if count == function.nin:
        made = apply(function, arguments, out)
    else:
        count = PyVectorcall_NARGS(flags)
        named = {}
        if names != NULL:
            for k in range(len(<tuple>names)):
                named[(<tuple>names)[k]] = <object>arguments[count + k]
        made = (<object>function)._call(*[<object>arguments[k] for k in range(count)], **named)
    Py_INCREF(made)
    return <PyObject*>made


cdef Elementwise _nobody = Elementwise.__new__(Elementwise)


def quick_calls(type cls):
    """Let the calls of a class, Elementwise or one below it, have no detour."""
    cupola_enable_vectorcall(
        <PyTypeObject*>cls, <char*>&_nobody.vectorcall - <char*><PyObject*>_nobody, Elementwise.__dict__["__call__"]
    )


quick_calls(Elementwise)


cdef Loop _find_loop(Elementwise function, int* kinds, int which):
    cdef Loop made = Loop.__new__(Loop)
    cdef list given = []
    cdef int k
    for k in range(function.nin):
        given.append(
            numpy.dtype(bool) if kinds[k] == PY_BOOL else int if kinds[k] == PY_INT else float if kinds[k] == PY_FLOAT
            else complex if kinds[k] == PY_COMPLEX else _DTYPES[kinds[k]]
        )
    found = function.loop(tuple(given), None, "same_kind")
    describe(made, function.name, found[:-1], found[-1], "")
    made.classes = tuple([dtype.type for dtype in made.loop])
    made.which = which
    return <Loop>function.loops.setdefault(which, made)


cdef inline object scalar_of(Loop loop, int k, object given):
    """A scalar of the type that a number is converted to; a number of Python where kernels take it as it is."""
    cdef Form form = _forms[loop.numbers[k]]
    if (form == DOUBLE or form == FLOAT) and loop.numbers[k] != _HALF:
        if type(given) is float:
            return given
        if type(given) is int:
            return <double>given
    return loop.classes[k](given)


cdef object _generally(Elementwise function, PyObject** given, object out):
    return _general(function, tuple([<object>given[k] for k in range(function.nin)]), out)


# The least and the greatest number of each type of integers; 0 for other types.
cdef int64_t _least[TYPES]
cdef uint64_t _greatest[TYPES]


cdef int _fill_limits() except -1:
    cdef int number
    cdef object dtype
    for number in range(TYPES):
        dtype = _DTYPES[number]
        _least[number] = -(1 << 8 * dtype.itemsize - 1) if dtype.kind == "i" else 0
        _greatest[number] = (1 << 8 * dtype.itemsize - (dtype.kind == "i")) - 1 if dtype.kind in "iu" else 0
    return 0


_fill_limits()


cdef int all_fit(Loop loop, PyObject** given, const int* kinds) except -1:
    """Whether integers of Python are numbers of the types that operands are converted to."""
    cdef int overflow = 0
    cdef int k, number
    cdef long long value
    for k in range(2):
        number = loop.numbers[k]
        if kinds[k] != PY_INT or _greatest[number] == 0:
            continue
        value = PyLong_AsLongLongAndOverflow(<object>given[k], &overflow)
        if overflow:
            return overflow > 0 and <object>given[k] <= _greatest[number]
        if value < _least[number] or (value > 0 and <uint64_t>value > _greatest[number]):
            return False
    return True


cdef object apply(Elementwise function, PyObject** given, object out):
    """Call a function, whose operands are as many as it has."""
    cdef int kinds[2]
    cdef int k, which = 0
    cdef PyObject* operand
    cdef Lazy first = None, made
    cdef Loop loop
    cdef Stream queue
    cdef object scalar = None
    cdef PyObject* operands[2]
    for k in range(function.nin):
        operand = given[k]
        if is_lazy(operand):
            kinds[k] = type_number((<Lazy>operand).type)
            if first is None:
                first = <Lazy>operand
            elif not same_shape(first, <Lazy>operand):
                return _generally(function, given, out)
        elif type(<object>operand) is float:
            kinds[k] = PY_FLOAT
        elif type(<object>operand) is int:
            kinds[k] = PY_INT
        elif type(<object>operand) is bool:
            kinds[k] = PY_BOOL
        elif type(<object>operand) is complex:
            kinds[k] = PY_COMPLEX
        else:
            number = _class_numbers.get(type(<object>operand))
            if number is None:
                return _generally(function, given, out)
            kinds[k] = number
        which = which << 5 | kinds[k]
    if first is None or (function.careful and kinds[1] == PY_INT and <object>given[1] < 0):
        return _generally(function, given, out)
    loop = function.last
    if loop is None or loop.which != which:
        loop = <Loop>function.loops.get(which)
        if loop is None:
            loop = _find_loop(function, kinds, which)
        function.last = loop
    if function.compares and not all_fit(loop, given, kinds):
        return _generally(function, given, out)
    queue = in_force()
    if out is not None:
        if isinstance(out, Lazy) and loop.kind == type_number((<Lazy>out).type) and same_shape(first, <Lazy>out):
            return _at_once(function, loop, kinds, given, <Lazy>out, queue, which)
        return _generally(function, given, out)
    for k in range(function.nin):
        operands[k] = given[k]
        if kinds[k] >= PY_BOOL:         # of one operand at most, as the other is an array
            scalar = scalar_of(loop, k, <object>given[k])
            operands[k] = <PyObject*>scalar
    made = new_array()
    take_type(made, loop.kind)
    take_shape(made, first.rank, first.extents)
    if not first.dense or (function.nin == 2 and is_lazy(given[1]) and not (<Lazy>given[1]).dense):
        follow(made, given, function.nin)
    return made_pending(made, node_of(loop, operands, function.nin, None), queue)


cdef object _at_once(
    Elementwise function, Loop loop, int* kinds, PyObject** given, Lazy out, Stream queue, int which
):
    """Call a function with an array for the result, of its type and shape: without a node, if all lies in one piece."""
    cdef void* parameters[4]
    cdef Value slots[2]
    cdef int64_t n = out.count()
    cdef uint64_t to
    cdef int k, count = 2
    cdef Lazy operand
    cdef Kernel kernel
    cdef object one, other = None
    cdef PyObject* values[2]
    cdef Node node
    cdef bint plain
    before_writing(out)     # first, as it may compute operands
    if _several:
        require_here(out)
        for k in range(function.nin):
            if isinstance(<object>given[k], Lazy):
                require_here(<Array><object>given[k])
    plain = out.dense and n > 1
    cdef bint twice = function.nin == 2 and given[0] == given[1]
    for k in range(function.nin):
        if kinds[k] < TYPES and plain and isinstance(<object>given[k], Lazy):
            operand = <Lazy>given[k]
            plain = operand._node is None and operand.dense and operand.memory is not None
            plain = plain and is_only_user(operand.memory, queue)
            if plain and operand.memory is out.memory and operand.pointer != out.pointer:
                plain = False
            which = which << 1 | 1
        else:
            which <<= 1
    which = which << 1 | twice
    one = <object>given[0] if isinstance(<object>given[0], Lazy) else scalar_of(loop, 0, <object>given[0])
    if function.nin == 2:
        other = <object>given[1] if isinstance(<object>given[1], Lazy) else scalar_of(loop, 1, <object>given[1])
    values[0], values[1] = <PyObject*>one, <PyObject*>other
    if plain:
        kernel = <Kernel>function.direct.get(which)
        if kernel is not None:
            require_open(out.memory)
            order(out, queue, True)
            to = out.pointer
            parameters[0], parameters[1] = &to, &n
            # Arrays come before scalars.
            for k in range(function.nin - twice):
                if isinstance(<object>values[k], Lazy):
                    operand = <Lazy>values[k]
                    require_open(operand.memory)
                    slots[k].u = operand.pointer
                    parameters[count] = &slots[k]
                    count += 1
            for k in range(function.nin - twice):
                if not isinstance(<object>values[k], Lazy):
                    store(<object>values[k], loop.numbers[k], &slots[k])
                    parameters[count] = &slots[k]
                    count += 1
            start(queue, kernel, blocks_for(n), parameters)
            out._stream = queue
            return out
    node = node_of(loop, values, function.nin, None)
    if conflicts(out, node):
        into(out, computed(node, queue), queue, None, None)
    else:
        kernel = into(out, node, queue, None, None)
        if plain and kernel is not None:
            function.direct[which] = kernel
    out._stream = queue
    return out
