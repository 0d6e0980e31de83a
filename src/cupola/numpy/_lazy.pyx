"""The way of a call from Python to the launch: expressions, pending arrays, and the kernels that compute them.

An expression is a graph of `Node`s. An array that is *pending* (`Lazy`) has a shape, a type and a node, and no memory.
When its elements are needed, the graph is walked once. That gives its arrays and scalars, and a key of a few bytes:
operations, types, and how each array lies. The kernel is found by that key. A new key is for the code generator,
_evaluate.py; it is written in Python, as the key is then known for good.

A call of an operation whose operands are in memory, with an array for the result, needs no node at all: `_at_once`.

Fusing must not show. So a Buffer knows that pending arrays read it (`Readers`), and before it is written they are looked
for among all that are pending, and computed. A kernel of the program, or another library, may write later what it was given once. Memory that is *lent* to
them is therefore never read later: an expression of it is computed at once.

The parts of this module are the files in lazy/, each about one thing, in the order in which they build on each other.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.complex cimport PyComplex_ImagAsDouble, PyComplex_RealAsDouble
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

cimport cython

from cupola.core.array._array cimport MOST_AXES, Array
from cupola.core.base._cuda cimport (
    CUDA_SUCCESS, CUcontext, CUdevice, CUfunction, CUlaunchConfig, CUresult, check, cu
)
from cupola.core.device._context cimport enter, leave, primary_context, resets
from cupola.core.device._device cimport Device, get_current_device
from cupola.core.device._memory_resource cimport MemoryResource
from cupola.core.device._stream cimport Stream, StreamHandle, current_stream, default_stream
from cupola.core.launch._launch cimport retry
from cupola.core.launch._launch_config cimport LaunchConfig
from cupola.core.memory._access cimport copy_async, fill_async
from cupola.core.memory._buffer cimport Buffer, is_used_by, order_recorded_use, require_open, users_of
from cupola.core.memory._users cimport Users, is_recorded
from cupola.core.program._kernel cimport LAYOUT_UNKNOWN, LAYOUT_UNREAD, Kernel
from cupola.numpy._replay cimport replayed

import weakref

import numpy

from cupola._above import above
from cupola.bindings import _provider
from cupola.core.device._stream import enter_stream, leave_stream
from cupola.core.memory._access import has_access
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

    /* Whether objects of a class made by a statement are those of `base`, and nothing more. */
    static int cupola_is_plain(PyTypeObject *type, PyTypeObject *base)
    {
        return type->tp_base == base && type->tp_basicsize == base->tp_basicsize && type->tp_itemsize == 0
            && type->tp_dictoffset == 0 && type->tp_weaklistoffset == base->tp_weaklistoffset
            && type->tp_finalize == NULL && type->tp_del == NULL && !(base->tp_flags & Py_TPFLAGS_HEAPTYPE);
    }

    /* Let objects of a class, and of those below it, end by `end`; returns what ended them in `base`. */
    static destructor cupola_replace_end(PyTypeObject *type, PyTypeObject *base, destructor end)
    {
        type->tp_dealloc = end;
        PyType_Modified(type);
        return base->tp_dealloc;
    }

    static int cupola_has_finalizer(PyObject *object)
    {
        return Py_TYPE(object)->tp_finalize != NULL || Py_TYPE(object)->tp_del != NULL;
    }

    static void cupola_clear_references(PyObject *object)
    {
        if (*(PyObject **)((char *)object + Py_TYPE(object)->tp_weaklistoffset) != NULL)
            PyObject_ClearWeakRefs(object);
    }

    /* The object had a reference to its class. */
    static void cupola_let_go(PyTypeObject *type) { Py_DECREF((PyObject *)type); }

    /* An object that was ended, as a new one with a reference. */
    static PyObject *cupola_anew(PyObject *object, PyTypeObject *type)
    {
        PyObject_Init(object, type);
        PyObject_GC_Track(object);
        return object;
    }
    """
    ctypedef struct PyTypeObject:
        pass
    ctypedef void (*destructor)(PyObject*) noexcept
    PyTypeObject* Py_TYPE(PyObject*) noexcept
    void PyObject_GC_UnTrack(void*) noexcept
    void PyObject_GC_Del(void*) noexcept
    bint cupola_is_plain(PyTypeObject*, PyTypeObject*) noexcept
    destructor cupola_replace_end(PyTypeObject*, PyTypeObject*, destructor) noexcept
    bint cupola_has_finalizer(PyObject*) noexcept
    void cupola_clear_references(PyObject*) noexcept
    void cupola_let_go(PyTypeObject*) noexcept
    object cupola_anew(PyObject*, PyTypeObject*)
    void cupola_enable_vectorcall(PyTypeObject*, Py_ssize_t, object) noexcept
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t) noexcept
    void cupola_take_operators(PyTypeObject*, PyTypeObject*) noexcept
    object cupola_new(object, tuple)
    bint cupola_is_dying(PyObject*) noexcept
    bint FREE_THREADED
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept

# One module, so that calls between these files are those of C.
include "lazy/types.pxi"
include "lazy/above.pxi"
include "lazy/shapes.pxi"
include "lazy/orders.pxi"
include "lazy/nodes.pxi"
include "lazy/keys.pxi"
include "lazy/layouts.pxi"
include "lazy/scalars.pxi"
include "lazy/launches.pxi"
include "lazy/computing.pxi"
include "lazy/pending.pxi"
include "lazy/devices.pxi"
include "lazy/arrays.pxi"
include "lazy/indices.pxi"
include "lazy/expressions.pxi"
include "lazy/writing.pxi"
include "lazy/calls.pxi"
include "lazy/operators.pxi"
include "lazy/making.pxi"
include "lazy/reductions.pxi"
include "lazy/products.pxi"
