"""The way of a call from Python to the launch: expressions, pending arrays, and the kernels that compute them.

An expression is a graph of `Node`s. An array that is *pending* (`Lazy`) has a shape, a type and a node, and no memory.
When its elements are needed, the graph is walked once. That gives its arrays and scalars, and a key of a few bytes:
operations, types, and how each array lies. The kernel is found by that key. A new key is for the code generator,
_evaluate.py; it is written in Python, as the key is then known for good.

A call of an operation whose operands are in memory, with an array for the result, needs no node at all: `_at_once`.

Fusing must not show. So a Buffer knows the pending arrays that read it (`Readers`), and before it is written they are
computed. A kernel of the program, or another library, may write later what it was given once. Memory that is *lent* to
them is therefore never read later: an expression of it is computed at once.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

cimport cython

from cupola.core.array._array cimport MOST_AXES, Array
from cupola.core.base._cuda cimport (
    CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUcontext, CUfunction, CUlaunchConfig, CUresult, check, cu
)
from cupola.core.device._context cimport resets
from cupola.core.device._device cimport Device, get_current_device
from cupola.core.device._memory_resource cimport MemoryResource
from cupola.core.device._stream cimport Stream, StreamHandle, current_stream, default_stream
from cupola.core.launch._launch cimport retry
from cupola.core.launch._launch_config cimport LaunchConfig
from cupola.core.memory._buffer cimport Buffer, require_open
from cupola.core.program._kernel cimport LAYOUT_UNKNOWN, LAYOUT_UNREAD, Kernel
from cupola.numpy._replay cimport replayed

import weakref

import numpy

from cupola._above import above
from cupola.bindings import _provider
from cupola.numpy._operations import MEMORY as _MEMORY
from cupola.numpy._report import noted

cdef extern from *:
    """
    /* `call` is what the class has as __call__: subclasses take their slot from there. */
    static void cupola_enable_vectorcall(PyTypeObject *type, Py_ssize_t offset, PyObject *call)
    {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        if (Py_IS_TYPE(call, &PyWrapperDescr_Type))
            ((PyWrapperDescrObject *)call)->d_wrapped = (void *)PyVectorcall_Call;
        PyType_Modified(type);
    }

    /* A class made by a statement calls the operators that it inherits by their names. These are those of `base`. */
    static void cupola_take_operators(PyTypeObject *type, PyTypeObject *base)
    {
        PyNumberMethods *to = type->tp_as_number, *from = base->tp_as_number;
        to->nb_add = from->nb_add;
        to->nb_subtract = from->nb_subtract;
        to->nb_multiply = from->nb_multiply;
        to->nb_true_divide = from->nb_true_divide;
        to->nb_floor_divide = from->nb_floor_divide;
        to->nb_remainder = from->nb_remainder;
        to->nb_and = from->nb_and;
        to->nb_or = from->nb_or;
        to->nb_xor = from->nb_xor;
        to->nb_lshift = from->nb_lshift;
        to->nb_rshift = from->nb_rshift;
    }

    #ifdef Py_GIL_DISABLED
    #define FREE_THREADED 1
    #else
    #define FREE_THREADED 0
    #endif

    static int cupola_is_dying(PyObject *object) { return Py_REFCNT(object) == 0; }

    /* What `cls.__new__(cls)` does for a class that has no __new__ of its own. */
    #define cupola_new(cls, nothing) (((PyTypeObject *)(cls))->tp_new((PyTypeObject *)(cls), (nothing), NULL))
    """
    ctypedef struct PyTypeObject:
        pass
    void cupola_enable_vectorcall(PyTypeObject*, Py_ssize_t, object) noexcept
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t) noexcept
    void cupola_take_operators(PyTypeObject*, PyTypeObject*) noexcept
    object cupola_new(object, tuple)
    bint cupola_is_dying(PyObject*) noexcept
    bint FREE_THREADED
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept

cdef enum:
    BLOCK = 256             # threads; as in _kernels.py
    MOST_BLOCKS = 2048      # of one launch; their threads then take several elements
    MANY_BLOCKS = 1 << 20   # the same on the CPU device, where threads that follow each other have neighbors in memory
    PARTS = 1056            # blocks that share a reduction: eight for each multiprocessor
    LEAST = 4096            # elements that are worth a block of their own
    LEAVES = 12             # of one kernel; what is larger is computed in parts
    NODES = 48
    READ = 72               # arrays of one kernel, among them those of the indices of a gather
    VALUES = 256            # scalars of one kernel
    SEEN = 448
    WORDS = 2048            # of a key
    STRIDED = 8             # dimensions of a kernel, when those that lie in one piece are joined

MOST_LEAVES, MOST_NODES, STRIDED_AXES = LEAVES, NODES, STRIDED

# How a reduction is shared out, as in _kernels.py.
cdef enum Sharing:
    BY_THREAD
    BY_ROWS
    BY_COLUMNS

# Numbers for the types of elements, and for Python's numbers among operands.
cdef enum:
    TYPES = 16
    PY_BOOL = 16
    PY_INT = 17
    PY_FLOAT = 18
    PY_COMPLEX = 19
    OTHER = 31
    NO_NODE = -1

cdef str _CHARS = "".join(_MEMORY)
cdef list _DTYPES = [numpy.dtype(char) for char in _CHARS]
cdef list _CLASSES = [dtype.type for dtype in _DTYPES]
cdef dict _class_numbers = {found: number for number, found in reversed(list(enumerate(_CLASSES)))}
cdef object _UINT = numpy.dtype("uint32")
cdef int _HALF = _CHARS.index("e")
cdef int _INT64 = _CHARS.index("l")
cdef int _UINT64 = _CHARS.index("L")
cdef PyObject* _dtypes[TYPES]
cdef uint16_t _elements[TYPES]
cdef Py_ssize_t _sizes[TYPES]
cdef uint8_t _likely[64]        # the number of a dtype by some bits of its address, if no other has taken the place


cdef inline int place_of(PyObject* dtype) noexcept:
    return (<uintptr_t>dtype >> 4 ^ <uintptr_t>dtype >> 10) & 63


cdef int _fill_tables() except -1:
    cdef Array sample
    cdef int number
    for number in range(TYPES):
        sample = Array.__new__(Array)
        sample.set_type(_DTYPES[number])
        _dtypes[number], _elements[number], _sizes[number] = (
            <PyObject*>_DTYPES[number], sample.element, sample.itemsize
        )
        _likely[place_of(_dtypes[number])] = number
    return 0


assert len(_CHARS) == TYPES
_fill_tables()


cdef int type_number(object dtype) except -1:
    """The number of a dtype, which is one of those of MEMORY."""
    cdef int number = _likely[place_of(<PyObject*>dtype)]
    if _dtypes[number] == <PyObject*>dtype:
        return number
    for number in range(TYPES):
        if _dtypes[number] == <PyObject*>dtype:
            return number
    return _CHARS.index(dtype.char)


# What is set by the modules above: the class of arrays, and what writes kernels.
cdef type _array_class = None
cdef object _elementwise = None
cdef object _reduction = None
cdef object _first_device = None
cdef object _general = None
cdef object _reduce = None
cdef object _product = None
cdef object _getitem = None
cdef object _setitem = None
cdef object _report_address = None
cdef bint _complete = False         # whether arrays have all that is set behind their class


def use(
    type array_class=None, elementwise=None, reduction=None, first_device=None, general=None, reduce=None, product=None,
    getitem=None, setitem=None, report_address=None, bint complete=False
):
    """Take what the modules above have."""
    global _array_class, _elementwise, _reduction, _first_device, _general, _reduce, _product, _complete
    global _getitem, _setitem, _report_address
    _getitem = _getitem if getitem is None else getitem
    _setitem = _setitem if setitem is None else setitem
    _report_address = _report_address if report_address is None else report_address
    _complete = _complete or complete
    _array_class = _array_class if array_class is None else array_class
    _elementwise = _elementwise if elementwise is None else elementwise
    _reduction = _reduction if reduction is None else reduction
    _first_device = _first_device if first_device is None else first_device
    _general = _general if general is None else general
    _reduce = _reduce if reduce is None else reduce
    _product = _product if product is None else product


# What a package above may take part in: who gives memory, and which streams are recorded.
cdef object _allocator = None           # a Buffer for bytes and a stream; None: the device
cdef set _recording = set()


def watch(allocator):
    """Let ``allocator(size, stream)`` give arrays their memory."""
    global _allocator
    _allocator = allocator


def allocates():
    """Whether somebody else than the device gives arrays their memory."""
    return _allocator is not None


def compute_all(stream=None):
    """Compute all arrays that are pending; only those of a stream, if one is given."""
    for one in all_pending(None):
        if stream is None or (<Lazy>one)._stream == stream:
            (<Lazy>one).open_memory()


def record(Stream stream not None, bint begin):
    """Say that the work of a stream is being recorded, or is no more.

    Such work sees what was there when that began, and waits for no other stream.
    """
    if begin:
        _recording.add(stream)
    else:
        _recording.discard(stream)


def records(stream):
    """Whether the work of a stream is being recorded."""
    return stream in _recording


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


# --- streams and memory -------------------------------------------------------------------------------------------


cdef inline Stream in_force():
    """The stream that work is queued in: that of the innermost ``with`` block, else the default stream."""
    cdef Stream found = current_stream()
    return default_stream() if found is None else found


cdef int allocate(Array made, Stream queue) except -1:
    """Give an array that has a shape and a type memory of its own, in the order of a stream."""
    cdef Device device = get_current_device()
    cdef Buffer memory
    cdef Py_ssize_t size = made.count() * made.itemsize
    if device.current is None:
        device = _first_device()
    if _allocator is not None:
        memory = <Buffer?>_allocator(size, queue)
    elif device.memory is not None and (<MemoryResource>device.memory).direct:
        memory = (<MemoryResource>device.memory).obtain(size, queue)
    else:
        memory = device.allocate(size, stream=queue)
    made.memory, made.pointer = memory, memory.pointer
    return 0


cdef int take_type(Array made, int number) except -1:
    made.type, made.element, made.itemsize = <object>_dtypes[number], _elements[number], _sizes[number]
    return 0


cdef int take_shape(Array made, int rank, const Py_ssize_t* extents) except -1:
    """Extents, in row-major order; the type is known."""
    cdef int axis
    cdef Py_ssize_t stride = made.itemsize
    made.set_rank(rank)
    for axis in range(rank - 1, -1, -1):
        made.extents[axis], made.extents[rank + axis] = extents[axis], stride
        stride *= max(extents[axis], 1)
    made.dense = True
    return 0


cdef tuple shape_of(Array x):
    cdef int rank = x.rank
    if rank == 1:
        return (x.extents[0],)
    if rank == 2:
        return (x.extents[0], x.extents[1])
    return tuple([x.extents[axis] for axis in range(rank)])


cdef inline bint same_shape(Array one, Array other) noexcept:
    cdef int axis
    if one.rank != other.rank:
        return False
    for axis in range(one.rank):
        if one.extents[axis] != other.extents[axis]:
            return False
    return True


cdef inline bint has_shape(Array x, tuple shape):
    cdef int axis
    if x.rank != len(shape):
        return False
    for axis in range(x.rank):
        if x.extents[axis] != <Py_ssize_t>shape[axis]:
            return False
    return True


# --- nodes --------------------------------------------------------------------------------------------------------


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

    cdef readonly object name
    cdef readonly tuple loop
    cdef readonly object dtype
    cdef readonly object form
    cdef tuple known_shape              # None: that of the operands
    cdef tuple many                     # the operands; None: they are these two, or the first of them
    cdef object first
    cdef object second
    cdef int count                      # of operands
    cdef readonly int leaves
    cdef readonly int nodes
    cdef int code
    cdef int kind
    cdef bint gathers
    cdef int reads                      # how many Buffers it reads, -1 if that is not known
    cdef PyObject* read[LEAVES]         # which the operands keep

    def __init__(self, name, tuple operands, tuple loop, dtype, shape, form=""):
        cdef Py_ssize_t k
        if len(loop) != len(operands):
            raise ValueError(f"{name} has {len(operands)} operands and {len(loop)} types")
        self.name, self.many, self.loop, self.dtype, self.form = name, operands, loop, dtype, form
        self.count = <int>len(operands)
        self.known_shape = tuple(shape)
        self.code = number_of(form if form else name)
        self.kind = type_number(dtype)
        self.gathers = self.code == GATHER
        self.measure()

    @property
    def operands(self):
        """tuple: nodes, arrays in memory, or NumPy scalars."""
        cdef list found = []
        cdef int k
        cdef object one
        for k in range(self.count):
            one = operand_of(self, k)
            # A number of Python, in the type that it is computed in.
            found.append(self.loop[k].type(one) if type(one) is float else one)
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
        for k in range(operand.reads):
            self.note_read(operand.read[k])


cdef inline object operand_of(Node node, int k):
    """The operand with that number. A number of Python is one of float32 or float64."""
    if node.many is not None:
        return node.many[k]
    return node.first if k == 0 else node.second


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


# --- the key of an expression -------------------------------------------------------------------------------------


cdef struct Walk:
    int words
    int arrays
    int values
    int seen
    uint16_t key[WORDS]
    PyObject* array[READ + 1]
    PyObject* value[VALUES]
    uint8_t kind[VALUES]
    PyObject* known[SEEN]


cdef inline int push(Walk* walk, int word) except -1:
    if walk.words == WORDS:
        raise NotImplementedError("an expression that is too large for one kernel")
    walk.key[walk.words] = <uint16_t>word
    walk.words += 1
    return 0


cdef inline int note(Walk* walk, PyObject* operand) except -1:
    if walk.seen == SEEN:
        raise NotImplementedError("an expression that is too large for one kernel")
    walk.known[walk.seen] = operand
    walk.seen += 1
    return 0


cdef int push_array(Walk* walk, Array array) except -1:
    if walk.arrays == READ:
        raise NotImplementedError(f"an expression of more than {READ} arrays")
    walk.array[walk.arrays] = <PyObject*>array
    walk.arrays += 1
    return push(walk, 0x2000 | type_number(array.type))


cdef int push_value(Walk* walk, object operand, int kind) except -1:
    if walk.values == VALUES:
        raise NotImplementedError(f"an expression of more than {VALUES} scalars")
    walk.value[walk.values], walk.kind[walk.values] = <PyObject*>operand, <uint8_t>kind
    walk.values += 1
    return push(walk, 0x3000 | kind)


cdef int visit(Walk* walk, object operand, int kind=-1) except -1:
    """Add an operand: to the key, and to what is read, in the order of `Text`; a number of Python has this kind."""
    cdef int k, number
    cdef object found
    cdef Node node
    if type(operand) is float:
        return push_value(walk, operand, kind)      # which may stand elsewhere, in another type
    for k in range(walk.seen):
        if walk.known[k] == <PyObject*>operand:
            return push(walk, 0x1000 | k)
    if type(operand) is Node:
        node = <Node>operand
        push(walk, 0x8000 | node.code)
        push(walk, node.kind | node.count << 5)
        if node.gathers:
            for k in range(1, node.count):
                visit(walk, operand_of(node, k))
            push_array(walk, <Array?>operand_of(node, 0))
        else:
            for k in range(node.count):
                number = type_number(node.loop[k])
                visit(walk, operand_of(node, k), number)
                push(walk, number)
    elif isinstance(operand, Array):
        push_array(walk, <Array>operand)
    else:
        found = _class_numbers.get(type(operand))
        push_value(walk, operand, <int>found if found is not None else type_number(operand.dtype))
    return note(walk, <PyObject*>operand)


# --- how arrays lie -----------------------------------------------------------------------------------------------


cdef struct Plan:
    int axes                            # dimensions of the layout; -1 without strides
    int kept                            # of these, how many come before `boundary`
    int64_t numbers[STRIDED * (READ + 2)]       # extents, then the strides of each array


cdef int plan(
    Walk* walk, int rank, const Py_ssize_t* extents, const int* order, int boundary, Plan* found, uint8_t* modes
) except -1:
    """How arrays are read in the order of a shape: in one piece (c), as a single element (1), or by strides (g).

    Dimensions on both sides of `boundary` are not joined.
    """
    cdef int k
    cdef bint strided = False
    cdef Array array
    cdef int axis
    for k in range(walk.arrays):
        array = <Array>walk.array[k]
        if array.count() == 1:
            modes[k] = c"1"
            continue
        modes[k] = c"g"
        if order == NULL and array.dense and array.rank == rank:
            for axis in range(rank):
                if array.extents[axis] != extents[axis]:
                    break
            else:
                modes[k] = c"c"
                continue
        strided = True
    found.axes, found.kept = -1, 0
    if strided:
        for k in range(walk.arrays):
            if modes[k] == c"c":
                modes[k] = c"g"
        _join_dimensions(walk, rank, extents, order, boundary, found)
    return 0


cdef int _join_dimensions(
    Walk* walk, int rank, const Py_ssize_t* extents, const int* order, int boundary, Plan* found
) except -1:
    """Extents and strides with those dimensions joined that all arrays have in one piece."""
    cdef int64_t strides[READ + 1][MOST_AXES]
    cdef int64_t joined[READ + 1][MOST_AXES]
    cdef int64_t lengths[MOST_AXES]
    cdef int axis, at, k, own, axes = 0
    cdef int64_t extent
    cdef Array array
    cdef bint fits
    for k in range(walk.arrays):
        array = <Array>walk.array[k]
        for axis in range(rank):
            at = order[axis] if order != NULL else axis
            own = at - (rank - array.rank)
            strides[k][axis] = 0 if own < 0 or array.extents[own] == 1 else array.extents[array.rank + own]
    found.kept = 0
    for axis in range(rank):
        if axis == boundary:
            found.kept = axes
        extent = extents[order[axis] if order != NULL else axis]
        if extent == 1:
            continue
        fits = axes > found.kept
        if fits:
            for k in range(walk.arrays):
                if joined[k][axes - 1] != strides[k][axis] * extent:
                    fits = False
                    break
        if fits:
            lengths[axes - 1] *= extent
            for k in range(walk.arrays):
                joined[k][axes - 1] = strides[k][axis]
        else:
            lengths[axes] = extent
            for k in range(walk.arrays):
                joined[k][axes] = strides[k][axis]
            axes += 1
    if boundary == rank:
        found.kept = axes
    if axes > STRIDED:
        raise NotImplementedError(
            f"an expression of arrays whose strides need {axes} dimensions; at most {STRIDED} are computed. "
            "copy() makes an array lie in one piece"
        )
    found.axes = axes
    for axis in range(axes):
        found.numbers[axis] = lengths[axis]
        for k in range(walk.arrays):
            found.numbers[axes * (k + 1) + axis] = joined[k][axis]
    return 0


def layout(tuple shape, list arrays):
    """How arrays are read in the order of a shape.

    Returns
    -------
    tuple of (str, int, bytes)
        A letter for each array: in one piece (c), a single element (1), or by strides (g). How many dimensions their
        strides have, -1 without strides. Extents, and then the strides of each array, as int64.
    """
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Py_ssize_t extents[MOST_AXES]
    cdef int k
    walk.words = walk.arrays = walk.values = walk.seen = 0
    for array in arrays:
        push_array(&walk, <Array?>array)
    for k in range(len(shape)):
        extents[k] = shape[k]
    plan(&walk, <int>len(shape), extents, NULL, 0, &found, modes)
    return (
        bytes([modes[k] for k in range(walk.arrays)]).decode(), found.axes,
        PyBytes_FromStringAndSize(<char*>found.numbers, max(found.axes, 0) * (walk.arrays + 1) * sizeof(int64_t)),
    )


# --- launches -----------------------------------------------------------------------------------------------------

# The kernels of expressions of a structure, by their key. A kernel is found by its text, too, but writing that takes longer.
cdef dict _known = {}


cdef union Value:
    int64_t i
    uint64_t u
    double d
    float f
    double z[2]
    float c[2]


# How kernels take the scalars of a type.
cdef enum Form:
    SIGNED
    UNSIGNED
    FLOAT
    DOUBLE
    COMPLEX_FLOAT
    COMPLEX_DOUBLE

cdef Form _forms[TYPES]


cdef int _fill_forms() except -1:
    cdef int number
    for number, char in enumerate(_CHARS):
        _forms[number] = {
            "L": UNSIGNED, "Q": UNSIGNED, "I": UNSIGNED, "e": FLOAT, "f": FLOAT, "d": DOUBLE, "F": COMPLEX_FLOAT,
            "D": COMPLEX_DOUBLE,
        }.get(char, SIGNED)
    return 0


_fill_forms()


cdef int scalar_kind(object scalar) except -1:
    cdef object number = _class_numbers.get(type(scalar))
    return number if number is not None else type_number(scalar.dtype)


cdef int store(object scalar, int kind, Value* to) except -1:
    """The value of a scalar of a type as kernels take it: a half as the float that it is computed as."""
    cdef Form form = _forms[kind]
    cdef double complex whole
    if form == DOUBLE:
        to.d = <double>scalar
    elif form == FLOAT:
        to.f = <float><double>scalar
    elif form == COMPLEX_DOUBLE:
        whole = <double complex>complex(scalar)
        to.z[0], to.z[1] = whole.real, whole.imag
    elif form == COMPLEX_FLOAT:
        whole = <double complex>complex(scalar)
        to.c[0], to.c[1] = <float>whole.real, <float>whole.imag
    elif form == UNSIGNED:
        to.u = <uint64_t>int(scalar)
    else:
        to.i = <int64_t>int(scalar)
    return 0


cdef int start(Stream queue, Kernel kernel, int64_t blocks, void** parameters) except -1:
    """Launch a kernel of this package, whose parameters are known."""
    cdef CUlaunchConfig native
    cdef StreamHandle held = queue.hold()
    cdef CUresult status
    if replayed(kernel, held, blocks, BLOCK, parameters):
        return 0
    memset(&native, 0, sizeof(native))
    native.gridDimX, native.gridDimY, native.gridDimZ = <unsigned int>blocks, 1, 1
    native.blockDimX, native.blockDimY, native.blockDimZ = BLOCK, 1, 1
    native.hStream = held.pointer
    with nogil:
        status = cu.cuLaunchKernelEx(&native, <CUfunction>kernel.pointer, parameters, NULL)
    if status != CUDA_SUCCESS:
        retry(status, held, LaunchConfig(grid=blocks, block=BLOCK), kernel, &native, parameters)
    return 0


def enqueue(Kernel kernel not None, int64_t blocks, *arguments):
    """Launch a kernel of the files in ``kernels/`` in the current stream.

    Parameters
    ----------
    kernel : Kernel
        What to launch.
    blocks : int
        How many are enough; the kernel also works with less.
    *arguments
        Arrays, which are in memory and are not lent; None for no array; int for ``long long``; NumPy scalars.
    """
    cdef Value slots[24]
    cdef void* parameters[24]
    cdef Py_ssize_t k, count = len(arguments)
    cdef uint32_t size
    cdef int kind
    if kernel.parameter_count == LAYOUT_UNREAD:
        kernel.read_layout()
    if count > 24 or kernel.parameter_count not in (count, LAYOUT_UNKNOWN):
        raise TypeError(f"kernel {kernel.find_name()} has {kernel.parameter_count} parameters; {count} are given")
    for k in range(count):
        one = arguments[k]
        size = 8
        if one is None:
            slots[k].u = 0
        elif isinstance(one, Array):
            require_open((<Array>one).open_memory())
            slots[k].u = (<Array>one).pointer
        elif type(one) is int:
            slots[k].i = <int64_t>one
        else:
            kind = scalar_kind(one)
            store(one, kind, &slots[k])
            size = 4 if kind == _HALF else <uint32_t>_sizes[kind]
        if kernel.parameter_count >= 0 and kernel.parameters[k].size != size:
            raise TypeError(f"parameter {k} of kernel {kernel.find_name()} has {kernel.parameters[k].size} bytes")
        parameters[k] = &slots[k]
    start(in_force(), kernel, max(min(blocks, <int64_t>MOST_BLOCKS), 1), parameters)


cdef int64_t _most_blocks = 0       # 0: not known yet


cdef int64_t blocks_for(int64_t elements) except -1:
    """How many blocks compute so many elements, one or several in a thread."""
    return min((elements + BLOCK - 1) // BLOCK, _most_blocks if _most_blocks else most_blocks())


cpdef int64_t most_blocks() except -1:
    """How many blocks one launch has at most, whose threads then take several elements."""
    global _most_blocks
    _most_blocks = MANY_BLOCKS if _provider.current() == "cpu" else MOST_BLOCKS
    return _most_blocks


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


cdef Kernel into(Array target, object value, Stream queue, tuple at, str combine):
    """What `compute_into` does; returns the kernel, or None if there was nothing to do."""
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Value slots[READ + VALUES]
    cdef void* parameters[READ + VALUES + 4]
    cdef int64_t n = target.count()
    cdef uint64_t to
    cdef int k, count, arrays
    cdef bint wide
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
    require_memory(target)
    push_array(&walk, target)
    if combine:
        push(&walk, 0x5000 | number_of(combine))
    plan(&walk, target.rank, target.extents, NULL, 0, &found, modes)
    if modes[arrays] == c"1":
        modes[arrays] = c"c" if found.axes < 0 else c"g"
    for k in range(walk.arrays):
        push(&walk, modes[k])
    wide = found.axes > 1 and n >= <int64_t>1 << 31
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
    if found.axes > 0:
        parameters[2] = found.numbers
        count = 3
    operands_into(&walk, slots, parameters, count, arrays)
    start(queue, kernel, blocks_for(n), parameters)
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
    made.set_shape(value.shape, value.dtype)
    allocate(made, queue)
    into(made, value, queue, None, None)
    return made


def new_memory(shape, dtype, Stream queue not None):
    """Memory for an array in row-major order, allocated in the order of a stream."""
    cdef Array made = Array.__new__(Array)
    made.set_shape(shape, dtype)
    allocate(made, queue)
    return made


def reduce_into(Array target not None, how, value, tuple shape, tuple axes, Stream queue not None):
    """Reduce an expression over some of the dimensions of its shape.

    Parameters
    ----------
    target : Array
        In one piece, with an element for each place of the other dimensions.
    how : str
        A key of COMBINE, or what to begin with and how ``a`` and ``b`` are combined.
        The expression has the type of the target.
    value : Node, Array or numpy scalar
        What is reduced, broadcast to `shape`.
    shape : tuple of int
        Of the expression.
    axes : tuple of int
        The dimensions that go.
    queue : Stream
        Where the work is queued.
    """
    cdef Py_ssize_t extents[MOST_AXES]
    cdef bint gone[MOST_AXES]
    cdef int axis
    for axis in range(len(shape)):
        extents[axis] = shape[axis]
        gone[axis] = axis in axes
    reduced(target, how, value, <int>len(shape), extents, gone, queue)


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


cdef int reduced(
    Array target, object how, object value, int rank, const Py_ssize_t* extents, const bint* gone, Stream queue
) except -1:
    cdef Walk walk
    cdef Plan found
    cdef uint8_t modes[READ + 1]
    cdef Value slots[READ + VALUES]
    cdef void* parameters[READ + VALUES + 8]
    cdef int order[MOST_AXES]
    cdef int axis, k = 0
    cdef int kept
    cdef int64_t count = 1, results = target.count(), share, shares = 1, blocks, wanted
    cdef uint64_t to, partial_to = 0, counters_at = 0
    cdef bint moved = False, wide
    cdef Sharing sharing
    cdef bytes key
    cdef Kernel kernel
    cdef Array partial = None, counters = None
    if results == 0:
        return 0
    for axis in range(rank):
        if not gone[axis]:
            order[k] = axis
            k += 1
    kept = k
    for axis in range(rank):
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
    plan(&walk, rank, extents, order if moved else NULL, kept, &found, modes)
    share = count
    wide = results * max(count, 1) >= <int64_t>1 << 31
    if count <= 32 or (kept and order[kept - 1] == rank - 1 and results >= 1 << 17):
        sharing = BY_THREAD
        blocks = blocks_for(results)
    else:
        # Where the last dimension stays, results that are neighbors have elements that are.
        sharing = BY_COLUMNS if kept and order[kept - 1] == rank - 1 and extents[rank - 1] >= 8 else BY_ROWS
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


# --- arrays -------------------------------------------------------------------------------------------------------


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


cdef int wait_for(Lazy x, Stream queue) except -1:
    """Let work that is queued from now on in `queue` see the array, which another stream has made."""
    if x._stream is not queue and not x._stream.is_closed and x._stream != queue:
        if not _recording or queue not in _recording:
            queue.wait(x._stream)
        x.open_memory().set_deallocation_stream(queue)
    return 0


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


cdef inline Lazy new_array():
    """An array of the package's class, without anything."""
    if not _complete:
        above("complete_arrays")()      # some module was imported by itself, as in unpickling
    return <Lazy>cupola_new(_array_class, ())


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
    """

    cdef public Node _node
    cdef public Stream _stream
    cdef Pending pending

    def __init__(self, *args, **kwargs):
        pass

    def __dealloc__(self):
        end_pending(&self.pending)

    cdef Array beside(self, Py_ssize_t rank):
        cdef Array made = Array.beside(self, rank)
        if isinstance(made, Lazy):
            (<Lazy>made)._stream = self._stream
        return made

    def _compute(self):
        cdef Stream queue
        cdef Array target
        cdef int axis
        if self._node is None:
            Array._compute(self)
        queue = in_force()
        if queue is not self._stream and not self._stream.is_closed and queue != self._stream:
            if not _recording or queue not in _recording:
                queue.wait(self._stream)    # where the operands are
        target = Array.__new__(Array)
        target.itemsize, target.element, target.type = self.itemsize, self.element, self.type
        take_shape(target, self.rank, self.extents)
        allocate(target, queue)
        into(target, self._node, queue, None, None)
        self._node, self._stream = None, queue
        self.memory, self.pointer = target.memory, target.pointer
        end_pending(&self.pending)

    def _compute_now(self):
        """Give the array memory, if it has none."""
        self.open_memory()

    def _memory(self):
        """The Buffer, which nobody else is given."""
        return self.open_memory()

    def _address(self):
        """int: the address of the first element, for work that is queued now and keeps nothing."""
        require_open(self.open_memory())
        return self.pointer

    def _before_writing(self):
        """Compute what is pending and reads the memory."""
        before_writing(self)

    def _join(self):
        """Let the current stream see the elements."""
        wait_for(self, in_force())

    def _lend(self):
        """A kernel of the program gets the array: what reads it is computed first, and so is it."""
        cdef StreamHandle held
        cdef CUresult status
        before_writing(self)
        readers_of(self.memory).lent = True
        if self._stream.is_closed:
            return
        held = self._stream.hold()
        with nogil:
            status = cu.cuStreamQuery(held.pointer)
        if status == CUDA_ERROR_NOT_READY:
            with noted("wait"):
                self._stream.sync()     # the kernel may run in any stream
        elif status != CUDA_SUCCESS:
            self._stream.sync()         # which says what is wrong

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
    wait_for(x, queue)
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
    return made_pending(made, node_of(
        "gather", GATHER, operands, 5, (x.type, integer, integer, integer, unsigned), x.type, type_number(x.type),
        shape_of(index), queue
    ), queue)


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
            inner = array._node
            if inner is not None and inner.leaves <= LEAVES and inner.nodes <= NODES:
                operand = inner
            else:
                if inner is None and array._stream is not queue:
                    wait_for(array, queue)
                inner = None
                require_memory(array)
                made.note_read(<PyObject*>array.memory)
                made.leaves += 1
        elif type(operand) is Node:
            inner = <Node>operand
        elif isinstance(operand, Array):
            require_memory(<Array>operand)
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
    begin_pending(made)
    for k in range(count):
        readers = readers_of(<Buffer>read[k])
        lent |= readers.lent
        readers.some = True
    if lent:
        made.open_memory()
    return made


def write(Lazy target not None, value, tuple at=None, str combine=None):
    """Overwrite the elements of an array with those of an array, a node or a scalar, converted.

    `at` and `combine` are those of `compute_into`.
    """
    cdef object source = leaf(value)
    cdef Stream queue
    cdef tuple shape
    if type(source) is Node:
        shape = (<Node>source).shape
    elif isinstance(source, Array):
        shape = shape_of(<Array>source)
    else:
        shape = ()
    if not at and isinstance(source, Array) and target.memory is not None and is_same(target, <Array>source):
        return      # x[k] += y ends with x[k] = x[k]
    if not has_shape(target, shape):
        own = shape_of(target)
        if numpy.broadcast_shapes(shape, own) != own:
            raise ValueError(f"could not broadcast input array from shape {shape} into shape {own}")
    before_writing(target)
    queue = in_force()
    if at:
        for one in at:
            if isinstance(one, Lazy):
                (<Lazy>one).open_memory()
    if conflicts(target, source) or (at and reads(target, source)):
        if type(source) is not Node:
            source = Node("convert", (source,), (source.dtype,), source.dtype, shape)
        source = computed(<Node>source, queue)
    into(target, source, queue, at, combine)
    target._stream = queue


cdef bint reads(Array place, object source) except -1:
    """Whether an expression reads the memory of `place`."""
    cdef int k
    if type(source) is Node:
        for k in range((<Node>source).count):
            if reads(place, operand_of(<Node>source, k)):
                return True
        return False
    return isinstance(source, Array) and (<Array>source).open_memory() is place.open_memory()


cdef bint is_same(Array one, Array other) noexcept:
    """Whether both have the same elements in memory."""
    cdef int axis
    if one.memory is not other.memory or one.pointer != other.pointer or one.type is not other.type:
        return False
    if not same_shape(one, other):
        return False
    for axis in range(one.rank, 2 * one.rank):
        if one.extents[axis] != other.extents[axis]:
            return False
    return True


cdef bint conflicts(Array place, object source) except -1:
    """Whether an expression reads the memory of `place` in another layout than it is written."""
    cdef int k
    if type(source) is Node:
        for k in range((<Node>source).reads):
            if (<Node>source).read[k] == <PyObject*>place.memory:
                break
        else:
            if (<Node>source).reads >= 0:
                return False
        for k in range((<Node>source).count):
            if conflicts(place, operand_of(<Node>source, k)):
                return True
        return False
    if not isinstance(source, Array) or (<Array>source).open_memory() is not place.open_memory():
        return False
    return not is_same(place, <Array>source)


# --- calls --------------------------------------------------------------------------------------------------------


@cython.final
cdef class Loop:
    """The types that a function computes operands of certain types in."""

    cdef tuple inputs           # numpy.dtype of each operand
    cdef tuple classes          # its scalars
    cdef object result          # numpy.dtype
    cdef int number             # of the result
    cdef int numbers[3]         # of the operands
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

    def __call__(
        self, *operands, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True
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
        order, subok : optional
            Results are always in row-major order.

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
    made.inputs, made.result, made.number = found[:-1], found[-1], type_number(found[-1])
    made.classes = tuple([dtype.type for dtype in made.inputs])
    for k in range(function.nin):
        made.numbers[k] = type_number(made.inputs[k])
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


cdef object apply(Elementwise function, PyObject** given, object out):
    """Call a function, whose operands are as many as it has."""
    cdef int kinds[2]
    cdef int k, which = 0
    cdef object operand
    cdef Lazy first = None, made
    cdef Loop loop
    cdef Stream queue
    cdef object one, other = None
    cdef PyObject* operands[2]
    cdef Node node
    for k in range(function.nin):
        operand = <object>given[k]
        if isinstance(operand, Lazy):
            kinds[k] = type_number((<Lazy>operand).type)
            if first is None:
                first = <Lazy>operand
            elif not same_shape(first, <Lazy>operand):
                return _general(function, tuple([<object>given[i] for i in range(function.nin)]), out)
        elif type(operand) is float:
            kinds[k] = PY_FLOAT
        elif type(operand) is int:
            kinds[k] = PY_INT
        elif type(operand) is bool:
            kinds[k] = PY_BOOL
        elif type(operand) is complex:
            kinds[k] = PY_COMPLEX
        else:
            number = _class_numbers.get(type(operand))
            if number is None:
                return _general(function, tuple([<object>given[i] for i in range(function.nin)]), out)
            kinds[k] = number
        which = which << 5 | kinds[k]
    if first is None or (function.careful and kinds[1] == PY_INT and <object>given[1] < 0):
        return _general(function, tuple([<object>given[i] for i in range(function.nin)]), out)
    loop = function.last
    if loop is None or loop.which != which:
        loop = <Loop>function.loops.get(which)
        if loop is None:
            loop = _find_loop(function, kinds, which)
        function.last = loop
    queue = in_force()
    if out is not None:
        if isinstance(out, Lazy) and loop.number == type_number((<Lazy>out).type) and same_shape(first, <Lazy>out):
            return _at_once(function, loop, kinds, given, <Lazy>out, queue, which)
        return _general(function, tuple([<object>given[i] for i in range(function.nin)]), out)
    one = <object>given[0] if kinds[0] < PY_BOOL else scalar_of(loop, 0, <object>given[0])
    if function.nin == 2:
        other = <object>given[1] if kinds[1] < PY_BOOL else scalar_of(loop, 1, <object>given[1])
    operands[0], operands[1] = <PyObject*>one, <PyObject*>other
    node = node_of(
        function.name, function.code, operands, function.nin, loop.inputs, loop.result, loop.number, None, queue
    )
    made = new_array()
    take_type(made, loop.number)
    take_shape(made, first.rank, first.extents)
    return made_pending(made, node, queue)


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
    plain = out.dense and n > 1
    cdef bint twice = function.nin == 2 and given[0] == given[1]
    for k in range(function.nin):
        if kinds[k] < TYPES and plain and isinstance(<object>given[k], Lazy):
            operand = <Lazy>given[k]
            plain = operand._node is None and operand.dense and operand._stream is queue and operand.memory is not None
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
    node = node_of(
        function.name, function.code, values, function.nin, loop.inputs, loop.result, loop.number, None, queue
    )
    if conflicts(out, node):
        into(out, computed(node, queue), queue, None, None)
    else:
        kernel = into(out, node, queue, None, None)
        if plain and kernel is not None:
            function.direct[which] = kernel
    out._stream = queue
    return out


# --- operators ----------------------------------------------------------------------------------------------------

cdef enum:
    ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, REMAINDER
    BITWISE_AND, BITWISE_OR, BITWISE_XOR, LEFT_SHIFT, RIGHT_SHIFT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL
    EQUAL, NOT_EQUAL, NEGATIVE, POSITIVE, ABSOLUTE, INVERT
    OPERATORS

cdef list _OPERATORS = """
    add subtract multiply divide floor_divide remainder bitwise_and bitwise_or bitwise_xor left_shift right_shift less
    less_equal greater greater_equal equal not_equal negative positive absolute invert
""".split()
cdef dict _functions = {}
cdef PyObject* _operators[OPERATORS]    # which _functions has
cdef tuple _operands = ()


def use_functions(dict functions, tuple operands):
    """Take the functions of operators by name, and the classes that their operands have."""
    global _functions, _operands
    _functions, _operands = functions, operands


cdef inline Elementwise function_of(int which):
    if _operators[which] == NULL:
        _operators[which] = <PyObject*>_functions[_OPERATORS[which]]
    return <Elementwise>_operators[which]


cdef inline bint is_operand(object given):
    return isinstance(given, Lazy) or type(given) is float or type(given) is int or isinstance(given, _operands)


def quick_operators(type cls not None):
    """Let the operators of a class below Lazy have no detour."""
    cupola_take_operators(<PyTypeObject*>cls, <PyTypeObject*>Lazy)


cdef object operate(int which, object one, object other):
    cdef PyObject* given[2]
    given[0], given[1] = <PyObject*>one, <PyObject*>other
    if not is_operand(one) or not is_operand(other):
        return NotImplemented
    return apply(function_of(which), given, None)


cdef object operate_in_place(int which, object one, object other):
    cdef PyObject* given[2]
    given[0], given[1] = <PyObject*>one, <PyObject*>other
    if not is_operand(other):
        return NotImplemented
    return apply(function_of(which), given, one)


cdef object operate_alone(int which, object one):
    cdef PyObject* given[1]
    given[0] = <PyObject*>one
    return apply(function_of(which), given, None)


# --- reductions of the usual form -----------------------------------------------------------------------------------

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
    cdef Py_ssize_t extents[MOST_AXES]
    cdef bint gone[MOST_AXES]
    cdef Py_ssize_t count = 1
    cdef int rank = 0
    cdef Stream queue
    cdef Lazy made
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
        else:
            extents[rank] = x.extents[k]
            rank += 1
    if how == "sum" or how == "prod":
        to = _totals[number]
    elif how == "any" or how == "all":
        to = _CHARS.index("?")
    else:
        to = number
    # Sums of halves are computed as float32, as in NumPy; extremes of nothing are an error.
    if (to != number and number == _HALF) or (how in ("sum", "prod") and number == _HALF) or count == 0:
        return _reduce(how, obj, axis, dtype, out, keepdims, initial, where)
    queue = in_force()
    if x._node is None:
        wait_for(x, queue)
    made = new_array()
    take_type(made, to)
    take_shape(made, rank, extents)
    made._stream = queue
    allocate(made, queue)
    reduced(made, how, leaf(x), x.rank, x.extents, gone, queue)
    return made


def mean(obj, axis=None):
    """The mean of floating-point or complex elements; None if it is not of the usual form."""
    cdef Lazy x, total
    cdef object many
    cdef PyObject* given[2]
    if not isinstance(obj, Lazy) or not (axis is None or type(axis) is int):
        return None
    x = <Lazy>obj
    if _CHARS[type_number(x.type)] not in "fdFD":
        return None
    total = reduce("sum", x, axis, None, None, False, None, True)
    many = float(x.count() // total.count()) if total.count() else 1.0
    given[0], given[1] = <PyObject*>total, <PyObject*>many
    return apply(function_of(DIVIDE), given, None)


# --- products of small matrices -------------------------------------------------------------------------------------

cdef enum:
    SMALL = 64              # rows and columns; what is larger is for cuBLAS

cdef list _products = [None] * TYPES


def product(one, other):
    """The product of two small matrices; None if there is a reason to ask cuBLAS."""
    cdef Lazy a, b, made
    cdef int number
    cdef int64_t sizes[3]
    cdef int64_t strides[4]
    cdef Py_ssize_t extents[2]
    cdef uint64_t places[3]
    cdef void* parameters[10]
    cdef int k
    cdef Stream queue
    cdef Kernel kernel
    if not isinstance(one, Lazy) or not isinstance(other, Lazy):
        return None
    a, b = <Lazy>one, <Lazy>other
    if a.rank != 2 or b.rank != 2 or a.extents[1] != b.extents[0]:
        return None
    number = type_number(a.type)
    sizes[0], sizes[1], sizes[2] = a.extents[0], b.extents[1], a.extents[1]
    if number != type_number(b.type) or _CHARS[number] not in "efdFD":
        return None
    for k in range(3):
        if not 0 < sizes[k] <= SMALL:
            return None
    a.open_memory()
    b.open_memory()
    strides[0], strides[1] = a.extents[2], a.extents[3]
    strides[2], strides[3] = b.extents[2], b.extents[3]
    for k in range(4):
        if strides[k] % a.itemsize:
            return None
        strides[k] //= a.itemsize
    queue = in_force()
    wait_for(a, queue)
    wait_for(b, queue)
    kernel = <Kernel>_products[number]
    if kernel is None:
        kernel = _products[number] = _product(_CHARS[number])
    made = new_array()
    take_type(made, number)
    extents[0], extents[1] = sizes[0], sizes[1]
    take_shape(made, 2, extents)
    made._stream = queue
    allocate(made, queue)
    require_open(a.memory)
    require_open(b.memory)
    places[0], places[1], places[2] = a.pointer, b.pointer, made.pointer
    for k in range(3):
        parameters[k] = &places[k]
        parameters[3 + k] = &sizes[k]
    for k in range(4):
        parameters[6 + k] = &strides[k]
    start(queue, kernel, blocks_for(sizes[0] * sizes[1]), parameters)
    return made
