"""Compiled code: the results of compilers and linkers, loaded into the driver at the first use."""

import os
from _thread import RLock

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uintptr_t

from cupola._above import above
from cupola.core.base._cuda cimport (
    CUDA_ERROR_NOT_FOUND, CUDA_SUCCESS, CUdeviceptr, CUjit_option, CUkernel, CUlibrary, CUmodule, CUresult, check, cu,
    driver_module, factory_error, fail_because, forget_missing
)
from cupola.core.program._kernel cimport new_kernel
from cupola.core.program._library cimport LOG_SIZE, Library

from cupola.core.memory._buffer import Buffer

cimport cython

# The end of code from a cache that includes the types of its kernels' parameters (_signatures.py).
cdef bytes HEADS_MARK = b"cupolaSG"

# The kinds that the driver loads; the others are for the linker.
cdef tuple LOADABLE = ("cubin", "ptx", "fatbin")


cdef class ObjectCode:
    """Compiled code of one of the types ``cubin``, ``ptx``, ``ltoir``, ``fatbin``, ``object``, ``library``.

    :meth:`Program.compile` returns it; the ``from_…`` constructors are for code that was compiled elsewhere. Nothing is
    loaded before a kernel is asked for (``cuLibraryLoadData``); the code stays loaded as long as this object or one of
    its kernels exists.

    Attributes
    ----------
    code : bytes, bytearray or str
        The code, or the path of the file that holds it.
    code_type : str
        Which of the types it is.
    name : str
        The name that error messages use.

    Notes
    -----
    Threads may share it: the code is loaded once.

    Examples
    --------
    >>> again = ObjectCode.from_cubin(code.code, name="from the database")
    >>> kernel = again.get_kernel("nothing")
    >>> kernel.num_arguments
    0
    """

    def __init__(self, *args, **kwargs):
        raise factory_error("ObjectCode", "Program.compile(), or ObjectCode.from_cubin() and its siblings")

    @staticmethod
    @cython.binding(True)
    def from_cubin(module, *, str name not None="", symbol_mapping=None):
        """Take machine code for one architecture.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The code itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "cubin", name, symbol_mapping)

    @staticmethod
    @cython.binding(True)
    def from_ptx(module, *, str name not None="", symbol_mapping=None):
        """Take PTX, which the driver assembles when it is loaded.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The PTX itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "ptx", name, symbol_mapping)

    @staticmethod
    @cython.binding(True)
    def from_ltoir(module, *, str name not None="", symbol_mapping=None):
        """Take LTO-IR, for the linker.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The LTO-IR itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "ltoir", name, symbol_mapping)

    @staticmethod
    @cython.binding(True)
    def from_fatbin(module, *, str name not None="", symbol_mapping=None):
        """Take a fat binary, of which the driver chooses the part that fits.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The fat binary itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "fatbin", name, symbol_mapping)

    @staticmethod
    @cython.binding(True)
    def from_object(module, *, str name not None="", symbol_mapping=None):
        """Take a host object file with device code, for the linker.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The object file itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "object", name, symbol_mapping)

    @staticmethod
    @cython.binding(True)
    def from_library(module, *, str name not None="", symbol_mapping=None):
        """Take an archive of such object files, for the linker.

        Parameters
        ----------
        module : bytes, bytearray, str or PathLike
            The archive itself, or the path of a file that holds it.
        name : str
            For error messages.
        symbol_mapping : dict, optional
            Maps names that are passed to :meth:`get_kernel` to names in the code.

        Returns
        -------
        ObjectCode
        """
        return new_object_code(module, "library", name, symbol_mapping)

    @property
    def symbol_mapping(self):
        """dict: maps names that are passed to :meth:`get_kernel` to names in the code; a copy."""
        return dict(self.symbols) if self.symbols is not None else {}

    @property
    def handle(self):
        """cupola.bindings.driver.CUlibrary: the native handle; reading it loads the code."""
        return driver_module.CUlibrary(<uintptr_t>self.load().pointer)

    def get_kernel(self, name):
        """Look up a kernel (``cuLibraryGetKernel``), loading the code if it is not.

        Parameters
        ----------
        name : str or bytes
            A name expression that the program was compiled with, such as ``"fill<double>"``, or the name in the
            code: the plain name of an ``extern "C"`` kernel, else the mangled one.

        Returns
        -------
        Kernel

        Raises
        ------
        CUDAError
            There is no such kernel; the text lists the existing ones.
        RuntimeError
            Code of this type must be linked first.
        """
        cdef bytes symbol = self.find_symbol(name, "kernel")
        cdef Library library = self.load()
        cdef CUlibrary native = library.pointer
        cdef CUkernel kernel = NULL
        cdef const char* text = symbol
        cdef CUresult status
        with nogil:
            status = cu.cuLibraryGetKernel(&kernel, native, text)
        if status == CUDA_ERROR_NOT_FOUND:
            fail_because(status, b"cuLibraryGetKernel", _describe_missing(self, library, name))
        if status != CUDA_SUCCESS:
            _fail_load(self, library, status, b"cuLibraryGetKernel")
        library.remember(kernel)
        known = self.symbols is not None and name in self.symbols
        return new_kernel(kernel, library, str(name) if known else symbol.decode("utf-8", "replace"))

    def get_global(self, name):
        """Look up a ``__device__``, ``__constant__`` or ``__managed__`` variable, loading the code if it is not.

        Each context has variables of its own, except managed ones (``cuLibraryGetGlobal``, ``cuLibraryGetManaged``).

        Parameters
        ----------
        name : str or bytes
            A name expression that the program was compiled with, such as ``"&table<float>"``, or the name in the code:
            the plain name outside of namespaces, else the mangled one.

        Returns
        -------
        Buffer
            The variable in the current context. It keeps the code loaded; closing it frees nothing.

        Raises
        ------
        CUDAError
            There is no such variable, or no context is current.
        RuntimeError
            Code of this type must be linked first.

        Examples
        --------
        >>> code.get_global("weights").copy_from(np.array([1, 2, 1], np.float32), stream=stream)
        """
        cdef bytes symbol = self.find_symbol(name, "variable")
        cdef Library library = self.load()
        cdef CUlibrary native = library.pointer
        cdef CUdeviceptr pointer = 0
        cdef size_t size = 0
        cdef const char* text = symbol
        cdef CUresult status
        with nogil:
            status = cu.cuLibraryGetGlobal(&pointer, &size, native, text)
            if status == CUDA_ERROR_NOT_FOUND and cu.cuLibraryGetManaged(&pointer, &size, native, text) == CUDA_SUCCESS:
                status = CUDA_SUCCESS
        if status == CUDA_ERROR_NOT_FOUND:
            fail_because(
                status, b"cuLibraryGetGlobal",
                f"there is no variable {name!r} in the {self.code_type} code. One that no kernel uses, or that is static, "
                "the compiler may leave out; one in a namespace or template is found by the name expression given to "
                f"Program.compile(..., name_expressions=('&...',))"
            )
        if status != CUDA_SUCCESS:
            _fail_load(self, library, status, b"cuLibraryGetGlobal")
        return Buffer.from_handle(pointer, size, owner=library)

    def get_module(self):
        """Return the code's module in the current context (``cuLibraryGetModule``).

        Returns
        -------
        cupola.bindings.driver.CUmodule
            It belongs to this object's library: do not unload it.
        """
        cdef CUmodule module = NULL
        cdef Library library = self.load()
        cdef CUlibrary native = library.pointer
        cdef CUresult status
        with nogil:
            status = cu.cuLibraryGetModule(&module, native)
        if status != CUDA_SUCCESS:
            _fail_load(self, library, status, b"cuLibraryGetModule")
        return driver_module.CUmodule(<uintptr_t>module)

    cdef bytes find_symbol(self, object name, str what):
        """The name in the code; `what` it is the name of."""
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"the name of a {what} is str or bytes, not {type(name).__name__}")
        if self.code_type not in LOADABLE:
            raise RuntimeError(f"{what}s come from {', '.join(LOADABLE)} code: link this {self.code_type} code first")
        found = self.symbols.get(name, name) if self.symbols is not None else name
        return found.encode() if isinstance(found, str) else found

    cdef Library load(self):
        cdef Library library = self.known_library()
        if library is None:
            self.lock.acquire()
            try:
                library = self.known_library()
                if library is None:
                    library = _load(self)
                    with cython.critical_section(self):
                        self.library = library
            finally:
                self.lock.release()
        return library

    cdef Library known_library(self):
        with cython.critical_section(self):
            return self.library

    def __eq__(self, other):
        if not isinstance(other, ObjectCode):
            return NotImplemented
        return self.load().pointer == (<ObjectCode>other).load().pointer

    def __hash__(self):
        return hash(<uintptr_t>self.load().pointer)

    def __repr__(self):
        cdef Library library = self.known_library()
        cdef uintptr_t pointer = <uintptr_t>library.pointer if library is not None else 0
        return f"<ObjectCode handle={pointer:#x} code_type={self.code_type!r}>"

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def __reduce__(self):
        return _restore, (self.code, self.code_type, self.name, self.symbols, self.heads)

    def _take_signatures(self, bytes ptx, str source):
        """Remember the types of the parameters, from the PTX that was compiled along with this code, and its source."""
        from cupola.core.program._signatures import heads_of, pointers_in
        self.heads = heads_of(ptx) + b"\n" + pointers_in(source)

    def _signatures(self):
        """The heads of the kernels, or None."""
        from cupola.core.program._signatures import heads_of
        if self.heads is None and self.code_type == "ptx":
            return heads_of(_read(self.code))
        return self.heads

    def _take_heads(self, bytes heads=None):
        self.heads = heads

    def _to_cache(self):
        """The code as a cache keeps it: with the types of the parameters behind it, which `from_cubin` finds there."""
        from cupola.core.program._signatures import with_heads
        code = _read(self.code)
        return code if self.heads is None else with_heads(code, self.heads)


def _restore(module, code_type, name, symbols, heads=None):
    cdef ObjectCode made = new_object_code(module, code_type, name, symbols)
    made.heads = heads
    return made


cdef bytes _read(object code):
    if not isinstance(code, str):
        return bytes(code)
    file = open(code, "rb")
    try:
        return file.read()
    finally:
        file.close()


cdef ObjectCode new_object_code(object module, str code_type, str name, object symbols):
    cdef ObjectCode made = ObjectCode.__new__(ObjectCode)
    if isinstance(module, str) and ("\n" in module or "\0" in module):
        raise ValueError("a str is the path of a file: give the code itself as bytes, code.encode()")
    made.code = os.fspath(module) if hasattr(type(module), "__fspath__") else module
    if not isinstance(made.code, (bytes, bytearray, str)):
        raise TypeError(f"{code_type} code is bytes, a bytearray, or the path of a file, not {type(module).__name__}")
    if symbols is not None and not isinstance(symbols, dict):
        raise TypeError(f"symbol_mapping must be a dict or None, not {type(symbols).__name__}")
    made.code_type = code_type
    made.name = name
    made.symbols = symbols
    made.lock = RLock()
    if code_type == "cubin" and isinstance(module, bytes):
        if type(module) is not bytes:
            from cupola.core.program._signatures import CachedCode
            if isinstance(module, CachedCode):
                made.code, made.heads = bytes(module), module.heads
        elif (<bytes>module).endswith(HEADS_MARK):
            from cupola.core.program._signatures import split_heads
            made.code, made.heads = split_heads(module)
    return made


cdef Library _load(ObjectCode source):
    cdef Library library = Library.__new__(Library)
    cdef CUlibrary pointer = NULL
    cdef Py_buffer view
    cdef const char* path
    cdef const char* call
    cdef CUjit_option* options = library.options
    cdef void** values = library.option_values
    cdef bytes encoded
    cdef CUresult status
    if isinstance(source.code, str):
        call = b"cuLibraryLoadFromFile"
        encoded = os.fsencode(source.code)
        path = encoded
        with nogil:
            status = cu.cuLibraryLoadFromFile(&pointer, path, options, values, 2, NULL, NULL, 0)
    else:
        # Both bytes and bytearray keep a NUL behind their last byte, which PTX must end with.
        call = b"cuLibraryLoadData"
        PyObject_GetBuffer(source.code, &view, PyBUF_SIMPLE)
        with nogil:
            status = cu.cuLibraryLoadData(&pointer, view.buf, options, values, 2, NULL, NULL, 0)
        PyBuffer_Release(&view)
    if status != CUDA_SUCCESS:
        _fail_load(source, library, status, call)
    library.pointer = pointer
    library.heads = source._signatures()
    return library


cdef int _fail_load(ObjectCode source, Library library, CUresult status, const char* call) except -1:
    """Raise what went wrong when code was loaded, at once or for its first kernel."""
    library.log[LOG_SIZE - 1] = 0
    text = (<bytes>library.log).decode("utf-8", "replace").strip()
    what = f"{source.code_type} code {source.name!r}" if source.name else f"{source.code_type} code"
    if isinstance(source.code, str):
        what += f" in {source.code}"
    lines = [f"while the {what} was loaded" + (":" if text else ""), text, _explain_failure(source, status)]
    return fail_because(status, call, "\n".join([line for line in lines if line]))


cdef str _explain_failure(ObjectCode source, CUresult status):
    """How the versions of compiler and driver may be the reason; empty if they are not."""
    from cupola.core.program._compatibility import explain_load

    cdef int version = 0
    if cu.cuDriverGetVersion(&version) != CUDA_SUCCESS:
        return ""
    return explain_load(<int>status, source.code, (version // 1000, version % 1000 // 10))


cdef str _describe_missing(ObjectCode source, Library library, object name):
    cdef unsigned int count = 0
    cdef CUkernel kernels[64]
    cdef const char* text
    cdef list known = []
    cdef unsigned int i
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    if (cu.cuLibraryGetKernelCount(&count, library.pointer) == CUDA_SUCCESS
            and cu.cuLibraryEnumerateKernels(kernels, min(count, 64), library.pointer) == CUDA_SUCCESS):
        for i in range(min(count, 64)):
            text = NULL
            if cu.cuKernelGetName(&text, kernels[i]) == CUDA_SUCCESS and text != NULL:
                known.append(text.decode("utf-8", "replace"))
    forget_missing()
    said = f"there is no kernel {name!r} in the {source.code_type} code"
    if source.symbols:
        known = [str(n) for n in source.symbols] + known
    if known:
        from difflib import get_close_matches
        near = get_close_matches(name, known, 1)
        said += ", which has: " + ", ".join(known) + (f"; did you mean {near[0]!r}?" if near else ".")
    else:
        said += "."
    if not known or any(n.startswith("_Z") for n in known):
        said += (
            ' Kernels that are not extern "C" are found by the name expressions given to '
            f"Program.compile(..., name_expressions=({name!r},))"
        )
    return said
