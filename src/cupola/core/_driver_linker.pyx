"""PTX to machine code with the driver's own linker (``cuLinkCreate``, ``cuLinkAddData``, ``cuLinkComplete``)."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

from cupola.core._cuda cimport (
    CU_COMPUTE_ACCELERATED_TARGET_BASE, CU_COMPUTE_FAMILY_TARGET_BASE, CU_JIT_ERROR_LOG_BUFFER,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_GENERATE_DEBUG_INFO,
    CU_JIT_GENERATE_LINE_INFO, CU_JIT_INPUT_PTX, CU_JIT_MAX_REGISTERS, CU_JIT_TARGET, CUjit_option, CUlinkState,
    CUresult, check, cu, initialise,
)

from cupola.core._errors import CUDAError

cdef enum:
    LOG_SIZE = 1 << 16
    MOST_OPTIONS = 8


def link_ptx(bytes text not None, bytes name not None, str arch not None, *, max_registers=None, bint debug=False,
             bint lineinfo=False):
    """Assemble PTX for a real architecture. A context must be current.

    Parameters
    ----------
    text : bytes
        The PTX.
    name : bytes
        Shown in messages.
    arch : str
        Such as ``"sm_90"``.
    max_registers : int, optional
        Most registers that a thread may use.
    debug, lineinfo : bool
        Keep debug information; line numbers.

    Returns
    -------
    bytes
        A cubin.

    Raises
    ------
    CUDAError
        With the linker's log.
    """
    cdef CUjit_option options[MOST_OPTIONS]
    cdef void* values[MOST_OPTIONS]
    cdef unsigned int count = 2
    cdef CUlinkState state = NULL
    cdef CUresult status
    cdef void* image = NULL
    cdef size_t size = 0
    cdef const char* data = text
    cdef const char* label = name
    cdef size_t length = len(text) + 1
    cdef char* log = <char*>malloc(LOG_SIZE)
    if log == NULL:
        raise MemoryError()
    log[0] = 0
    options[0], values[0] = CU_JIT_ERROR_LOG_BUFFER, log
    options[1], values[1] = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, <void*><uintptr_t>LOG_SIZE
    for option, value in (
        (<int>CU_JIT_TARGET, _target(arch)),
        (<int>CU_JIT_MAX_REGISTERS, max_registers),
        (<int>CU_JIT_GENERATE_DEBUG_INFO, 1 if debug else None),
        (<int>CU_JIT_GENERATE_LINE_INFO, 1 if lineinfo else None),
    ):
        if value is not None:
            options[count], values[count] = <CUjit_option><int>option, <void*><uintptr_t>value
            count += 1
    try:
        initialise()
        with nogil:
            status = cu.cuLinkCreate(count, options, values, &state)
        check(status, b"cuLinkCreate")
        with nogil:
            status = cu.cuLinkAddData(state, CU_JIT_INPUT_PTX, <void*>data, length, label, 0, NULL, NULL)
        check(status, b"cuLinkAddData")
        with nogil:
            status = cu.cuLinkComplete(state, &image, &size)
        check(status, b"cuLinkComplete")
        return PyBytes_FromStringAndSize(<char*>image, size)
    except CUDAError as error:
        if log[0] != 0:
            text_of_log = (<bytes>log).decode(errors="backslashreplace")
            raise CUDAError(
                f"{error}\nLinker error log: {text_of_log}", name=error.name, status=error.status, call=error.call
            ) from None
        raise
    finally:
        if state != NULL:
            cu.cuLinkDestroy(state)
        free(log)


cdef object _target(str arch):
    """The CUjit_target of an architecture: its number, with a bit for the a and f variants."""
    digits = arch.rpartition("_")[2]
    if digits.isdigit():
        return int(digits)
    number, variant = digits[:-1], digits[-1:]
    if not number.isdigit() or variant not in ("a", "f"):
        raise ValueError(f"arch must look like 'sm_90', got {arch!r}")
    return int(number) + (CU_COMPUTE_ACCELERATED_TARGET_BASE if variant == "a" else CU_COMPUTE_FAMILY_TARGET_BASE)
