"""Launches with a fixed kernel, configuration and argument types.

A prepared launch is called by the vectorcall protocol (PEP 590), which reads its arguments where the interpreter has
them. Cython has no syntax for that, so the slots of the type are filled in by hand.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t, uint32_t

from cupola.core.launch._arguments cimport Slot
from cupola.core.program._kernel cimport (
    INTEGER, LAYOUT_UNKNOWN, LAYOUT_UNREAD, UNKNOWN, Kernel, Parameter, settle_parameter
)
from cupola.core.launch._launch cimport FEW, submit
from cupola.core.launch._launch_config cimport LaunchConfig, copy_config

cdef extern from *:
    """
    static void cupola_enable_vectorcall(PyTypeObject *type, Py_ssize_t offset)
    {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
    }
    """
    ctypedef struct PyTypeObject:
        pass
    void cupola_enable_vectorcall(PyTypeObject*, Py_ssize_t) noexcept
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept

cdef class PreparedLaunch:
    """A kernel with its LaunchConfig and the types of its arguments; :meth:`cupola.Kernel.prepare` gives it.

    ``prepared(stream, *kernel_args)`` launches it, as ``launch(stream, config, kernel, *kernel_args)`` would.

    Notes
    -----
    Threads may share it: it does not change.
    """

    cdef void* vectorcall
    cdef Kernel used
    cdef LaunchConfig shape
    cdef Parameter* parameters
    cdef Py_ssize_t count
    cdef object __weakref__

    def __init__(self, *args, **kwargs):
        raise RuntimeError("PreparedLaunch objects cannot be instantiated directly; use Kernel.prepare()")

    def __dealloc__(self):
        PyMem_Free(self.parameters)

    def __call__(self, stream, *kernel_args):
        """Launch the kernel.

        Parameters
        ----------
        stream : Stream or GraphBuilder
            Where the kernel runs, or is captured.
        *kernel_args
            One for each parameter of the kernel, as for :func:`cupola.launch`.

        Raises
        ------
        TypeError, ValueError, OverflowError, CUDAError
            As :func:`cupola.launch`.
        """
        raise NotImplementedError("the slot of this method is replaced by _call")

    @property
    def kernel(self):
        """Kernel: what is launched."""
        return self.used

    @property
    def config(self):
        """LaunchConfig: how many threads, and how they are grouped; a copy."""
        return copy_config(self.shape)

    def __repr__(self):
        return f"<PreparedLaunch of {self.used._name()}, {self.shape!r}>"

    def __reduce__(self):
        raise TypeError("a PreparedLaunch belongs to this process: prepare the kernel again")


cdef PyObject* _call(PyObject* callee, PyObject** arguments, size_t flags, PyObject* names) except NULL:
    cdef PreparedLaunch prepared = <PreparedLaunch>callee
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags) - 1
    cdef void* pointers[FEW]
    cdef Slot slots[FEW]
    cdef void* many
    if count != prepared.count or names != NULL:
        raise _wrong_call(prepared, count, names != NULL)
    if count <= FEW:
        submit(
            <object>arguments[0], prepared.shape, prepared.used, prepared.parameters, arguments + 1, count, pointers,
            slots
        )
    else:
        many = PyMem_Calloc(count, sizeof(Slot) + sizeof(void*))
        if many == NULL:
            raise MemoryError()
        try:
            submit(
                <object>arguments[0], prepared.shape, prepared.used, prepared.parameters, arguments + 1, count,
                <void**>(<Slot*>many + count), <Slot*>many
            )
        finally:
            PyMem_Free(many)
    Py_INCREF(None)
    return <PyObject*>None


cdef object _wrong_call(PreparedLaunch prepared, Py_ssize_t count, bint by_name):
    if by_name:
        return TypeError("a prepared launch takes its arguments by position: prepared(stream, *kernel_args)")
    if count < 0:
        return TypeError("a prepared launch takes a stream first: prepared(stream, *kernel_args)")
    return TypeError(
        f"kernel {prepared.used.find_name()} takes {prepared.count} arguments behind the stream; {count} given"
    )


def prepare(Kernel kernel not None, LaunchConfig config not None, tuple types not None):
    """What :meth:`Kernel.prepare` does.

    Parameters
    ----------
    kernel : Kernel
        What to launch.
    config : LaunchConfig
        How.
    types : tuple
        Of the parameters, or empty.

    Returns
    -------
    PreparedLaunch
    """
    from cupola.core.launch._parameter_types import describe
    cdef PreparedLaunch made = PreparedLaunch.__new__(PreparedLaunch)
    cdef Py_ssize_t i, count
    cdef Parameter* parameter
    described = [describe(wanted) for wanted in types]
    if kernel.parameter_count == LAYOUT_UNREAD:
        kernel.read_layout()
    count = kernel.parameter_count
    if count == LAYOUT_UNKNOWN:
        count = len(types)      # whoever wrote the types knows the kernel
    elif types and len(types) != count:
        raise TypeError(f"kernel {kernel.find_name()} has {count} parameters; types of {len(types)} are given")
    made.used = kernel
    made.shape = copy_config(config)
    made.count = count
    made.parameters = <Parameter*>PyMem_Calloc(count + 1, sizeof(Parameter))
    if made.parameters == NULL:
        raise MemoryError()
    for i in range(count):
        parameter = &made.parameters[i]
        if kernel.parameter_count != LAYOUT_UNKNOWN:
            parameter[0] = kernel.parameters[i]
        if types and described[i] is not None:
            _fix(kernel, i, parameter, types[i], described[i])
    made.vectorcall = <void*>_call
    return made


cdef int _fix(Kernel kernel, Py_ssize_t i, Parameter* parameter, object wanted, tuple described) except -1:
    cdef uint8_t kind
    cdef uint32_t size
    kind, size, signed, unsigned = described
    if size == 0:
        size = parameter.size if parameter.size else 8
    if parameter.size not in (0, size):
        raise TypeError(
            f"parameter {i} of kernel {kernel.find_name()} is {parameter.size} bytes (at offset {parameter.offset}), "
            f"{wanted!r} has {size}"
        )
    if kind != UNKNOWN and parameter.kind not in (UNKNOWN, kind):
        raise TypeError(
            f"parameter {i} of kernel {kernel.find_name()} is "
            f"{'an integer or a pointer' if kind != INTEGER else 'a floating-point number'}, not {wanted!r}"
        )
    parameter.size = size
    if kind != UNKNOWN:
        parameter.kind = kind
    settle_parameter(parameter, signed, unsigned)
    return 0


cdef PreparedLaunch _nobody = PreparedLaunch.__new__(PreparedLaunch)
cupola_enable_vectorcall(<PyTypeObject*>PreparedLaunch, <char*>&_nobody.vectorcall - <char*><PyObject*>_nobody)
