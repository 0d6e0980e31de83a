"""NVRTC, the runtime compiler: a program handle with bytes in and bytes out.

Imported when its version is first asked for, or CUDA C++ is first compiled.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

import cupola.bindings.nvrtc  # PyCapsule_Import itself would only look for the attribute

from cupola.bindings.cnvrtc cimport *

from cupola.core.base._errors import NVRTCError

cdef const cupola_nvrtc_table* nvrtc = cupola_import_nvrtc()

ctypedef nvrtcResult (*size_getter)(nvrtcProgram, size_t*) noexcept nogil
ctypedef nvrtcResult (*bytes_getter)(nvrtcProgram, char*) noexcept nogil


cdef class NvrtcProgram:
    """One ``nvrtcProgram`` (nvrtcCreateProgram), destroyed with the object."""

    cdef nvrtcProgram program

    def __cinit__(self, bytes source not None, bytes name not None):
        cdef const char* text = source
        cdef const char* file_name = name
        cdef nvrtcResult status
        with nogil:
            status = nvrtc.nvrtcCreateProgram(&self.program, text, file_name, 0, NULL, NULL)
        _check(status, None)

    def __dealloc__(self):
        if self.program != NULL:
            nvrtc.nvrtcDestroyProgram(&self.program)

    @property
    def address(self):
        """int: the handle."""
        return <uintptr_t>self.program

    def add_name_expression(self, bytes expression not None):
        """Ask for the lowered name of an expression (nvrtcAddNameExpression). Before the first compile only."""
        _check(nvrtc.nvrtcAddNameExpression(self.program, expression), self)

    def compile(self, list options not None):
        """Compile with flags given as bytes (nvrtcCompileProgram); the GIL is released.

        Raises
        ------
        NVRTCError
            With the compilation log.
        """
        cdef int count = <int>len(options)
        cdef const char** flags = <const char**>malloc((count + 1) * sizeof(char*))
        cdef nvrtcResult status
        if flags == NULL:
            raise MemoryError()
        try:
            for i in range(count):
                flags[i] = PyBytes_AS_STRING(<bytes?>options[i])
            with nogil:
                status = nvrtc.nvrtcCompileProgram(self.program, count, flags)
        finally:
            free(flags)
        _check(status, self)

    def result(self, str target not None):
        """What a compile made: target ``"ptx"``, ``"cubin"`` or ``"ltoir"`` (nvrtcGetPTX, nvrtcGetCUBIN, nvrtcGetLTOIR)."""
        if target == "ptx":
            return self.fetch(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        if target == "cubin":
            return self.fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return self.fetch(nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR)

    def log(self):
        """The log of the last compile as bytes, which ends with a NUL (nvrtcGetProgramLog)."""
        return self.fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)

    def lowered_name(self, bytes expression not None):
        """The mangled name of an expression that was added before the compile (nvrtcGetLoweredName)."""
        cdef const char* name = NULL
        _check(nvrtc.nvrtcGetLoweredName(self.program, expression, &name), self)
        return <bytes>name

    def pch_status(self):
        """The status of the precompiled header (nvrtcGetPCHCreateStatus): an nvrtcResult as int."""
        cdef nvrtcResult status = nvrtc.nvrtcGetPCHCreateStatus(self.program)
        _raise_pending()
        return <int>status

    def pch_heap_required(self):
        """Bytes of heap that the precompiled header would have needed (nvrtcGetPCHHeapSizeRequired)."""
        cdef size_t size = 0
        _check(nvrtc.nvrtcGetPCHHeapSizeRequired(self.program, &size), self)
        return size

    cdef bytes fetch(self, size_getter get_size, bytes_getter get_bytes):
        cdef size_t size = 0
        cdef bytes result
        cdef char* target
        cdef nvrtcResult status
        _check(get_size(self.program, &size), self)
        result = PyBytes_FromStringAndSize(NULL, size)
        target = PyBytes_AS_STRING(result)
        if size != 0:
            # The CPU device's nvrtcGetCUBIN does more than a copy.
            with nogil:
                status = get_bytes(self.program, target)
            _check(status, self)
        return result


def version():
    """The (major, minor) version of the library (nvrtcVersion)."""
    cdef int major = 0, minor = 0
    _check(nvrtc.nvrtcVersion(&major, &minor), None)
    return major, minor


def set_pch_heap_size(size_t size):
    """Set the heap for precompiled headers, for the whole process (nvrtcSetPCHHeapSize)."""
    _check(nvrtc.nvrtcSetPCHHeapSize(size), None)


PCH_CREATED = <int>NVRTC_SUCCESS
PCH_NOT_ATTEMPTED = <int>NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED
PCH_HEAP_EXHAUSTED = <int>NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED


cdef int _check(nvrtcResult status, NvrtcProgram program) except -1:
    if status == NVRTC_SUCCESS:
        return 0
    _raise_pending()
    name = nvrtc.nvrtcGetErrorString(status).decode()
    text = f"{<int>status}: {name}"
    log = b"" if program is None else program.log().rstrip(b"\0")
    if status == NVRTC_ERROR_COMPILATION or log.strip():
        text += ", compilation log:\n\n" + log.decode(errors="backslashreplace")
    if status == NVRTC_ERROR_COMPILATION:
        from cupola.core.program._source_hints import hint

        said = hint(text)
        text += f"\n\n{said}" if said else ""
    raise NVRTCError(text, name=name, status=<int>status)


cdef int _raise_pending() except -1:
    """Raise the error that a call left behind if the library or the function is missing."""
    return nvrtc.head.raise_pending()
