"""The driver's function table, statuses turned into errors, and when destructors may still call the driver."""

import os

from cpython.exc cimport PyErr_Clear

import cupola.bindings.driver

from cupola import _signposts
from cupola.core.base import _errors

cimport cython

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define cupola_finalizing Py_IsFinalizing
    #else
    #define cupola_finalizing _Py_IsFinalizing
    #endif
    """
    bint cupola_finalizing() noexcept nogil

cdef const cupola_driver_table* cu = cupola_import_driver()
cdef object driver_module = cupola.bindings.driver

cdef bint initialised = False
cdef bint forked = False

# The errors reported so far that leave their context unusable. Every later call in the context returns the same error,
# also in destructors: one report is enough.
cdef set known_faults = set()
cdef set raised_faults = set()      # those of them that were raised, and not only warned of
cdef object unraised = None         # the first of those that were only warned of
cdef object _state = object()       # what threads change all of this alone with (_shared.pxd)


cdef bint _poisons_context(CUresult status) noexcept:
    return (status == CUDA_ERROR_ILLEGAL_ADDRESS or status == CUDA_ERROR_LAUNCH_TIMEOUT
            or CUDA_ERROR_ASSERT == status or CUDA_ERROR_HARDWARE_STACK_ERROR <= status <= CUDA_ERROR_LAUNCH_FAILED
            or status == CUDA_ERROR_ECC_UNCORRECTABLE or status == CUDA_ERROR_CONTAINED
            or status == CUDA_ERROR_TENSOR_MEMORY_LEAK or status == CUDA_ERROR_MPS_CLIENT_TERMINATED
            or status == CUDA_ERROR_EXTERNAL_DEVICE)


cdef bint _context_is_gone(CUresult status) noexcept:
    return (status == CUDA_ERROR_DEINITIALIZED or status == CUDA_ERROR_INVALID_CONTEXT
            or status == CUDA_ERROR_CONTEXT_IS_DESTROYED)


cdef bint context_is_broken(CUresult status) noexcept:
    return _poisons_context(status) or _context_is_gone(status)


cdef object make_error(CUresult status, const char* call, str detail, bint complete=False):
    """The CUDAError for `status`. Call this right after the failed call, whose explanation it reads."""
    cdef const char* text = NULL
    cdef char explanation[2048]
    cdef size_t length = 0 if complete else cu.head.explain(status, explanation, sizeof(explanation))
    cdef str name = ""
    cdef str description = ""
    if cu.cuGetErrorName(status, &text) == CUDA_SUCCESS and text != NULL:
        name = text.decode()
    text = NULL
    if cu.cuGetErrorString(status, &text) == CUDA_SUCCESS and text != NULL:
        description = text.decode()
    details = [detail] if detail else []
    if length > 0 and not (detail and status == CUDA_ERROR_NOT_FOUND):  # the detail lists what there is, too
        said = explanation[:min(length, sizeof(explanation) - 1)].decode("utf-8", "replace")
        if detail is None or said not in detail:
            details.append(said)
    return _errors.driver_error(status, name, description, call.decode(), details, forked)


cdef int fail_because(CUresult status, const char* call, str detail) except -1:
    return _raise(status, call, detail, False)


cdef int fail_with(CUresult status, const char* call, str reason) except -1:
    return _raise(status, call, reason, True)


cdef int _raise(CUresult status, const char* call, str detail, bint complete) except -1:
    if cu.head.raise_pending() != 0:
        return -1
    global unraised
    error = make_error(status, call, detail, complete)
    error._repeated = _note_fault(status)
    if _poisons_context(status):
        with cython.critical_section(_state):
            before = <int>status in raised_faults
            raised_faults.add(<int>status)
            unraised = None
        error._raised_before = before
    raise error


cdef bint _note_fault(CUresult status):
    """Whether it was already reported that a context is unusable for this reason."""
    cdef bint repeated
    if not _poisons_context(status):
        return False
    with cython.critical_section(_state):
        repeated = <int>status in known_faults
        known_faults.add(<int>status)
    return repeated


cdef int not_raised(object error) except -1:
    global unraised
    status = error.status
    if _poisons_context(<CUresult><int>status) and not error._raised_before:
        with cython.critical_section(_state):
            raised_faults.discard(status)
            if unraised is None:
                unraised = error
    return 0


def take_unraised():
    """The error of a fault that only destructors saw and that was never raised, or None. Marks it as raised."""
    global unraised
    with cython.critical_section(_state):
        error, unraised = unraised, None
    if error is not None:
        raised_faults.add(error.status)
    return error


cdef void forget_faults() noexcept:
    known_faults.clear()
    raised_faults.clear()


cdef int fail(CUresult status, const char* call) except -1:
    return fail_because(status, call, None)


cdef void forget_missing() noexcept:
    if cu.head.raise_pending() != 0:
        PyErr_Clear()


cdef void report_failure(CUresult status, const char* call) noexcept:
    if _context_is_gone(status) or not driver_usable() or _note_fault(status):
        return
    forget_missing()
    error = make_error(status, call, None)
    not_raised(error)
    _errors.warn(f"while an object was destroyed: {error}")


cdef int initialise() except -1:
    global initialised
    if initialised:
        return 0
    if forked:
        raise _errors.CUDAError(_errors.FORKED)
    cdef CUresult status
    with nogil:
        status = cu.cuInit(0)
    check(status, b"cuInit")
    with cython.critical_section(_state):
        first, initialised = not initialised, True
    if first:
        os.register_at_fork(after_in_child=_note_fork)
    return 0


def _note_fork():
    global forked, initialised
    forked = True
    initialised = False


cdef bint driver_usable() noexcept nogil:
    return not forked and not cupola_finalizing()


cdef extern from "Python.h":
    ctypedef struct SignedType "PyTypeObject":
        void* tp_dict
    void PyType_Modified(SignedType*)


cdef object closed_error(object instance):
    return RuntimeError(f"{type(instance).__name__} has been closed")


def put_up_signs(type cls):
    """Let a class say what the names of other libraries are called here (``cupola._signposts``).

    The signs are entries of the class that raise AttributeError. A method ``__getattr__`` would make every look-up of a
    name slower.
    """
    cdef dict names = <dict>(<SignedType*>cls).tp_dict
    for name in _signposts.SIGNS[cls.__name__]:
        names.setdefault(name, _signposts.Sign(cls.__name__, name))
    PyType_Modified(<SignedType*>cls)


cdef object gone_error(object instance):
    name = instance if isinstance(instance, str) else type(instance).__name__
    return _errors.CUDAError(
        f"CUDA_ERROR_CONTEXT_IS_DESTROYED: the context of this {name} has been reset, which destroyed the {name}: "
        f"make another one",
        name="CUDA_ERROR_CONTEXT_IS_DESTROYED", status=<int>CUDA_ERROR_CONTEXT_IS_DESTROYED,
    )


cdef object factory_error(str name, str factories):
    return RuntimeError(f"{name} objects cannot be instantiated directly; use {factories}")
