"""Kernels: functions of loaded code that can be launched."""

from collections import namedtuple

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t, uintptr_t

from cupola.core.base._cuda cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS, CUdevice,
    CUfunction_attribute, CUkernel, CUresult, check, cu, driver_module, factory_error,
    forget_missing
)
from cupola.core.base._elements cimport (
    ANY_ELEMENT, BFLOAT16, COMPLEX64, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64
)
from cupola.core.base._shared cimport publish
from cupola.core.program._library cimport library_of

from cupola._above import above
from cupola.core.base._cuda import put_up_signs
from cupola.core.program._mangled import SIGNED, UNSIGNED, sign_of, types_of

cimport cython

ParamInfo = namedtuple("ParamInfo", ("offset", "size"), module=__name__)
ParamInfo.__doc__ = """The place of a kernel parameter in the parameter block.

Attributes
----------
offset : int
    Bytes from the start of the block.
size : int
    Bytes of the parameter.
"""


cdef class Kernel:
    """A function that runs on the device (``CUkernel``), valid in every context.

    :meth:`ObjectCode.get_kernel` returns it, and :func:`launch` runs it. It keeps its code loaded.

    Notes
    -----
    Threads may share it.
    """

    def __cinit__(self):
        self.parameter_count = LAYOUT_UNREAD

    def __init__(self, *args, **kwargs):
        raise factory_error("Kernel", "ObjectCode.get_kernel() or Kernel.from_handle()")

    def __dealloc__(self):
        PyMem_Free(self.parameters)

    @staticmethod
    @cython.binding(True)
    def from_handle(handle, mod=None):
        """Wrap the address of a ``CUkernel``.

        Parameters
        ----------
        handle : int
            The address; ``int(kernel.handle)`` of another library's kernel.
        mod : ObjectCode, optional
            Kept alive. The code of a kernel from :meth:`ObjectCode.get_kernel` is kept loaded anyway. The caller must
            keep the code of other kernels loaded.

        Returns
        -------
        Kernel
            The address is not checked.

        Raises
        ------
        TypeError
            `handle` is not an int, or `mod` not an ObjectCode.
        """
        cdef Kernel kernel
        if not isinstance(handle, int):
            raise TypeError(f"handle must be an int, not {type(handle).__name__}: pass int(handle)")
        if mod is not None and not isinstance(mod, above("ObjectCode")):
            raise TypeError(f"mod must be an ObjectCode or None, not {type(mod).__name__}")
        kernel = new_kernel(<CUkernel><uintptr_t>handle, library_of(<CUkernel><uintptr_t>handle), None)
        kernel.owner = mod
        return kernel

    @property
    def handle(self):
        """cupola.bindings.driver.CUkernel: the native handle."""
        return driver_module.CUkernel(<uintptr_t>self.pointer)

    @property
    def num_arguments(self):
        """int: number of parameters (``cuKernelGetParamInfo``).

        Raises
        ------
        NotImplementedError
            The driver is older than 12.4.
        """
        require_layout(self)
        return self.parameter_count

    @property
    def arguments_info(self):
        """list of ParamInfo: (offset, size) of each parameter in bytes (``cuKernelGetParamInfo``).

        Raises
        ------
        NotImplementedError
            The driver is older than 12.4.
        """
        cdef int i
        require_layout(self)
        return [ParamInfo(self.parameters[i].offset, self.parameters[i].size) for i in range(self.parameter_count)]

    def __getitem__(self, key):
        """How to launch it: ``kernel[grid, block](*kernel_args)``, also with a stream.

        Parameters
        ----------
        key : tuple
            ``grid, block``, then a Stream or GraphBuilder and the bytes of dynamic shared memory if wanted; a
            :class:`LaunchConfig` may stand for grid and block. Without a stream, that of the innermost ``with`` block of
            a stream is used, else the default stream.

        Returns
        -------
        callable
            It takes the kernel's arguments and launches, as :func:`launch` does.

        Examples
        --------
        >>> kernel[n // 256, 256, stream](buffer, 2.0, n)
        """
        return above("launcher_of")(self, key)

    def prepare(self, config, *types):
        """Fix how the kernel is launched, for calls that are faster than :func:`launch` and check more.

        Parameters
        ----------
        config : LaunchConfig
            How many threads, and how they are grouped. It is copied: later changes have no effect.
        *types
            One for each parameter, or none at all: NumPy scalar types and dtypes, ctypes types, Buffer for pointers,
            int, float, bool or complex with the width of the parameter, or None for the type that the kernel declares.
            Python numbers are then passed as that type; one that does not fit is an OverflowError.

        Returns
        -------
        PreparedLaunch
            To be called with a stream and the arguments.

        Raises
        ------
        TypeError
            The number of types, or the size of one, does not match the kernel.
        """
        return above("prepare")(self, config, types)

    @property
    @cython.critical_section
    def attributes(self):
        """KernelAttributes: results of the compilation, such as registers, shared memory and limits."""
        if self.known_attributes is None:
            from cupola.core.program._kernel_attributes import attributes_of
            self.known_attributes = attributes_of(self)
        return self.known_attributes

    @property
    @cython.critical_section
    def occupancy(self):
        """KernelOccupancy: how many blocks of the kernel run at the same time."""
        if self.known_occupancy is None:
            self.known_occupancy = above("occupancy_of")(self)
        return self.known_occupancy

    cdef int read_layout(self) except -1:
        """Ask the driver for the offset and size of each parameter, until it says that there is none."""
        cdef size_t offset = 0
        cdef size_t size = 0
        cdef int count = 0
        cdef CUkernel pointer = self.pointer
        cdef Parameter* found = NULL
        cdef Parameter* grown
        cdef CUresult status
        try:
            while True:
                with nogil:
                    status = cu.cuKernelGetParamInfo(pointer, count, &offset, &size)
                if status != CUDA_SUCCESS:
                    break
                if count % 16 == 0:
                    grown = <Parameter*>PyMem_Realloc(found, (count + 16) * sizeof(Parameter))
                    if grown == NULL:
                        raise MemoryError()
                    found = grown
                found[count].offset = offset
                found[count].size = size
                count += 1
            if status == CUDA_ERROR_NOT_FOUND or status == CUDA_ERROR_NOT_SUPPORTED:
                forget_missing()
                self.parameter_count = LAYOUT_UNKNOWN
                return 0
            if status != CUDA_ERROR_INVALID_VALUE:
                check(status, b"cuKernelGetParamInfo")
            _add_kinds(self, found, count)
            with cython.critical_section(self):
                if self.parameter_count == LAYOUT_UNREAD:   # another thread may have been faster
                    self.parameters = found
                    publish(self.parameter_count, count)    # who sees it sees the parameters
                    found = NULL
            return 0
        finally:
            PyMem_Free(found)

    cdef str find_name(self):
        cdef const char* text = NULL
        with cython.critical_section(self):
            if self.known_name is None:
                if cu.cuKernelGetName(&text, self.pointer) == CUDA_SUCCESS and text != NULL:
                    self.known_name = text.decode("utf-8", "replace")
                else:
                    forget_missing()
                    self.known_name = f"at {<uintptr_t>self.pointer:#x}"
            return self.known_name

    def _name(self):
        return self.find_name()

    def _attribute(self, int number, int device_id):
        cdef CUkernel pointer = self.pointer
        cdef CUdevice device = device_id
        cdef int value = 0
        cdef CUresult status
        # With lazy loading this may load the kernel, which may wait for work that waits for the GIL (a host callback).
        with nogil:
            status = cu.cuKernelGetAttribute(&value, <CUfunction_attribute>number, pointer, device)
        check(status, b"cuKernelGetAttribute")
        return value

    def _set_attribute(self, int number, int value, int device_id):
        cdef CUkernel pointer = self.pointer
        cdef CUdevice device = device_id
        cdef CUresult status
        with nogil:
            status = cu.cuKernelSetAttribute(<CUfunction_attribute>number, value, pointer, device)
        check(status, b"cuKernelSetAttribute")

    def __eq__(self, other):
        if not isinstance(other, Kernel):
            return NotImplemented
        return self.pointer == (<Kernel>other).pointer

    def __hash__(self):
        return hash(<uintptr_t>self.pointer)

    def __repr__(self):
        return f"<Kernel handle={<uintptr_t>self.pointer:#x}>"

    def __str__(self):
        return above("text_of")(self)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self):
        return above("html_of")(self)

    def __reduce__(self):
        raise TypeError("a Kernel belongs to this process: pickle its ObjectCode")


cdef Kernel new_kernel(CUkernel pointer, Library library, str name):
    cdef Kernel kernel = Kernel.__new__(Kernel)
    kernel.pointer = pointer
    kernel.library = library
    kernel.known_name = name
    return kernel


cdef int _add_kinds(Kernel kernel, Parameter* parameters, int count) except -1:
    """Find out the type of each parameter from the kernel's PTX or name, and what the fast path may pass."""
    cdef bytes kinds = None
    cdef str symbol = _symbol(kernel)
    cdef list types = types_of(symbol)
    cdef str pointers = None
    cdef int i
    if types is not None and len(types) != count:
        types = None
    if kernel.library is not None and kernel.library.heads is not None:
        from cupola.core.program._signatures import kinds_of, pointers_of
        kinds = kinds_of(kernel.library.heads, symbol)
        if kinds is not None and len(kinds) != count:
            kinds = None
        if types is None:
            pointers = pointers_of(kernel.library.heads, symbol)
            if pointers is not None and len(pointers) != count:
                pointers = None
    for i in range(count):
        sign = sign_of(types[i]) if types is not None else ""
        parameters[i].kind = INTEGER if sign else kinds[i] if kinds is not None else UNKNOWN
        settle_parameter(&parameters[i], sign != UNSIGNED, sign != SIGNED)
        parameters[i].declared = types is not None
        parameters[i].elements = ANY_ELEMENT
        if types is not None and types[i][:1] == "P":
            parameters[i].elements = _ELEMENTS.get(types[i][1:], ANY_ELEMENT)
        elif pointers is not None and parameters[i].takes & TAKES_POINTER:
            parameters[i].elements = _ELEMENTS.get(pointers[i], ANY_ELEMENT)
    return 0


# What arrays a pointer to a type takes, by the letters of _mangled.py. Complex numbers are pairs of floating-point numbers.
cdef dict _ELEMENTS = {
    "s": INT16, "t": INT16, "i": INT32, "j": INT32, "l": INT64, "m": INT64, "x": INT64, "y": INT64,
    "f": FLOAT32 | COMPLEX64, "d": FLOAT64 | COMPLEX128, "H": FLOAT16, "B": BFLOAT16,
}


cdef void settle_parameter(Parameter* parameter, bint signed, bint unsigned) noexcept:
    cdef uint32_t bits = 8 * parameter.size
    parameter.takes = 0
    parameter.signed = not unsigned
    parameter.bits_below = parameter.bits_above = 0
    if parameter.kind != FLOATING and parameter.size in (1, 2, 4, 8):
        parameter.takes |= TAKES_INT
        if signed:
            parameter.bits_below = bits - 1
        parameter.bits_above = bits if unsigned and bits < 64 else bits - 1
        if bits == 64:
            parameter.takes |= TAKES_POINTER
    if parameter.kind != INTEGER:
        if parameter.size == 8:
            parameter.takes |= TAKES_DOUBLE
        elif parameter.size == 4:
            parameter.takes |= TAKES_FLOAT


cdef str _symbol(Kernel kernel):
    """The name of the kernel in its code, which may differ from the name passed to get_kernel."""
    cdef const char* text = NULL
    if cu.cuKernelGetName(&text, kernel.pointer) == CUDA_SUCCESS and text != NULL:
        return text.decode("utf-8", "replace")
    forget_missing()
    return kernel.find_name()


cdef int require_layout(Kernel kernel) except -1:
    if kernel.parameter_count == LAYOUT_UNREAD:
        kernel.read_layout()
    if kernel.parameter_count == LAYOUT_UNKNOWN:
        raise NotImplementedError("the parameters of a kernel can be listed with CUDA drivers from 12.4 on")
    return 0


put_up_signs(Kernel)
