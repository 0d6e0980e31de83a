"""The driver's own linker (``cuLinkCreate``, ``cuLinkAddData``, ``cuLinkAddFile``, ``cuLinkComplete``).

Imported when the driver first links.
"""

import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_COMPUTE_ACCELERATED_TARGET_BASE, CU_COMPUTE_FAMILY_TARGET_BASE, CU_JIT_CACHE_MODE, CU_JIT_CACHE_OPTION_NONE,
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_GENERATE_DEBUG_INFO,
    CU_JIT_GENERATE_LINE_INFO, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_INPUT_CUBIN,
    CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_PTX, CU_JIT_LOG_VERBOSE,
    CU_JIT_LTO, CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_TARGET, CUDA_ERROR_NOT_PERMITTED, CUDA_SUCCESS, CUjit_option,
    CUjitInputType, CUlinkState, CUresult, check, cu, driver_module, driver_usable, initialise, report,
)
from cupola.core.device._later cimport in_host_function, let_go_later

from cupola.core.base._errors import CUDAError

cdef enum:
    LOG_SIZE = 1 << 20
    MOST_OPTIONS = 16

cdef dict INPUT_TYPES = {
    "cubin": <int>CU_JIT_INPUT_CUBIN,
    "ptx": <int>CU_JIT_INPUT_PTX,
    "fatbin": <int>CU_JIT_INPUT_FATBINARY,
    "object": <int>CU_JIT_INPUT_OBJECT,
    "library": <int>CU_JIT_INPUT_LIBRARY,
}


cdef class DriverLink:
    """One link. A context must be current.

    Parameters
    ----------
    arch : str
        Such as ``"sm_90"``.
    max_registers : int, optional
        Most registers that a thread may use.
    optimization_level : int, optional
        0 to 4.
    debug, lineinfo : bool
        Keep debug information; line numbers.
    verbose : bool
        More in the information log.
    lto : bool
        Link-time optimization, as far as the driver has it.
    no_cache : bool
        Do not use the driver's cache on disk.

    Raises
    ------
    CUDAError
        With the linker's log, as by all methods.
    """

    # The driver writes to all of this until the state is destroyed.
    cdef CUjit_option options[MOST_OPTIONS]
    cdef void* values[MOST_OPTIONS]
    cdef char* info
    cdef char* error
    cdef CUlinkState state

    def __cinit__(self):
        self.info = <char*>PyMem_RawCalloc(LOG_SIZE, 1)
        self.error = <char*>PyMem_RawCalloc(LOG_SIZE, 1)
        if self.info == NULL or self.error == NULL:
            raise MemoryError()

    def __init__(self, str arch not None, *, max_registers=None, optimization_level=None, bint debug=False,
                 bint lineinfo=False, bint verbose=False, bint lto=False, bint no_cache=False):
        cdef unsigned int count = 0
        cdef CUresult status
        for option, value in (
            (<int>CU_JIT_INFO_LOG_BUFFER, <uintptr_t>self.info),
            (<int>CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_SIZE),
            (<int>CU_JIT_ERROR_LOG_BUFFER, <uintptr_t>self.error),
            (<int>CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_SIZE),
            (<int>CU_JIT_TARGET, _target(arch)),
            (<int>CU_JIT_MAX_REGISTERS, max_registers),
            (<int>CU_JIT_OPTIMIZATION_LEVEL, optimization_level),
            (<int>CU_JIT_GENERATE_DEBUG_INFO, 1 if debug else None),
            (<int>CU_JIT_GENERATE_LINE_INFO, 1 if lineinfo else None),
            (<int>CU_JIT_LOG_VERBOSE, 1 if verbose else None),
            (<int>CU_JIT_LTO, 1 if lto else None),
            (<int>CU_JIT_CACHE_MODE, <int>CU_JIT_CACHE_OPTION_NONE if no_cache else None),
        ):
            if value is not None:
                self.options[count] = <CUjit_option><int>option
                self.values[count] = <void*><uintptr_t>value
                count += 1
        initialise()
        with nogil:
            status = cu.cuLinkCreate(count, self.options, self.values, &self.state)
        self.finish(status, b"cuLinkCreate")

    def __del__(self):
        self.release()
        if self.state != NULL:
            let_go_later(self)

    def __dealloc__(self):
        PyMem_RawFree(self.info)
        PyMem_RawFree(self.error)

    @property
    def handle(self):
        """cupola.bindings.driver.CUlinkState: the native handle."""
        return driver_module.CUlinkState(<uintptr_t>self.state)

    def is_usable_here(self):
        """Whether this thread may continue to use it: any thread may.

        Returns
        -------
        bool
        """
        return True

    def add(self, str code_type not None, code, str name not None):
        """Add an input: bytes, or the path of a file as str.

        Parameters
        ----------
        code_type : str
            As of an ObjectCode.
        code : bytes or str
            The code or its path.
        name : str
            Shown in messages.

        Raises
        ------
        ValueError
            The driver does not link this kind of code.
        """
        cdef CUjitInputType kind
        cdef bytes data
        cdef bytes label = os.fsencode(name)
        cdef const char* text
        cdef const char* shown = label
        cdef size_t size
        cdef CUresult status
        if code_type not in INPUT_TYPES:
            raise ValueError(f"the driver's linker does not take {code_type} code: install nvidia-nvjitlink")
        kind = <CUjitInputType><int>INPUT_TYPES[code_type]
        if isinstance(code, str):
            data = os.fsencode(code)
            text = data
            with nogil:
                status = cu.cuLinkAddFile(self.state, kind, text, 0, NULL, NULL)
            self.finish(status, b"cuLinkAddFile")
            return
        data = code
        text = data
        size = len(data)
        if kind == CU_JIT_INPUT_PTX and not data.endswith(b"\0"):
            size += 1   # bytes keep a NUL behind their last one, which PTX must end with
        with nogil:
            status = cu.cuLinkAddData(self.state, kind, <void*>text, size, shown, 0, NULL, NULL)
        self.finish(status, b"cuLinkAddData")

    def complete(self, str target not None):
        """Link, and return the machine code.

        Parameters
        ----------
        target : str
            Only ``"cubin"`` exists.

        Returns
        -------
        bytes
        """
        cdef void* image = NULL
        cdef size_t size = 0
        cdef CUresult status
        with nogil:
            status = cu.cuLinkComplete(self.state, &image, &size)
        self.finish(status, b"cuLinkComplete")
        return PyBytes_FromStringAndSize(<char*>image, size)

    def logs(self):
        """The information log and the error log.

        Returns
        -------
        tuple of str
        """
        self.info[LOG_SIZE - 1] = self.error[LOG_SIZE - 1] = 0
        return _text(self.info), _text(self.error)

    def close(self):
        """Destroy the state (``cuLinkDestroy``)."""
        self.release()

    cdef void release(self) noexcept:
        """Destroy the state; where the driver must not be called, this is done later."""
        cdef CUlinkState state = self.state
        cdef CUresult status = CUDA_ERROR_NOT_PERMITTED
        self.state = NULL
        if state == NULL or not driver_usable():
            return
        if not in_host_function():
            with nogil:
                status = cu.cuLinkDestroy(state)
        if status == CUDA_ERROR_NOT_PERMITTED:
            self.state = state
        else:
            report(status, b"cuLinkDestroy")

    cdef int finish(self, CUresult status, const char* call) except -1:
        if status == CUDA_SUCCESS:
            return 0
        log = self.logs()[1]
        try:
            check(status, call)
        except CUDAError as error:
            if not log:
                raise
            raise CUDAError(
                f"{error}\nLinker error log: {log}", name=error.name, status=error.status, call=error.call
            ) from None
        return 0


cdef str _text(const char* log):
    return (<bytes>log).decode(errors="backslashreplace").strip()


cdef object _target(str arch):
    """The CUjit_target of an architecture: its number, with a bit for the a and f variants."""
    digits = arch.rpartition("_")[2]
    if digits.isdigit():
        return int(digits)
    number, variant = digits[:-1], digits[-1:]
    if not number.isdigit() or variant not in ("a", "f"):
        raise ValueError(f"arch must look like 'sm_90', got {arch!r}")
    return int(number) + (CU_COMPUTE_ACCELERATED_TARGET_BASE if variant == "a" else CU_COMPUTE_FAMILY_TARGET_BASE)
