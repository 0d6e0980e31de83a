"""Programs: source code and the compiler for it."""

from __future__ import annotations

import warnings
from _thread import RLock

from cupola.core.base._errors import CUDAError, NVRTCError
from cupola.core.base._options import as_options
from cupola.core.program._object_code import ObjectCode

# Programs are imported long before the first one is made, so slow imports that only making one needs come later.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol, Self

    from cupola.bindings.driver import CUlinkState
    from cupola.bindings.nvrtc import nvrtcProgram
    from cupola.core.program._cxx_compiler import CxxCompiler
    from cupola.core.program._kernel import Kernel
    from cupola.core.program._nvvm_compiler import NvvmCompiler
    from cupola.core.program._program_cache import ProgramCacheResource
    from cupola.core.program._program_options import ProgramOptions
    from cupola.core.program._ptx_compiler import PtxCompiler
    from cupola.typing import CompilerBackendType, PCHStatusType

    class LogSink(Protocol):
        """An object that takes the compilation log."""

        def write(self, text: str, /) -> object:
            """Take the text."""


CODE_TYPES = ("c++", "ptx", "nvvm")


class Program:
    """Source code, ready to be compiled.

    Parameters
    ----------
    code : str, bytes or bytearray
        The source. NVVM IR may be text or bitcode; the others are text.
    code_type : str or SourceCodeType
        ``"c++"`` (CUDA C++, for NVRTC), ``"ptx"`` (for the :class:`Linker`) or ``"nvvm"`` (NVVM IR, for libNVVM), in
        any case.
    options : ProgramOptions or dict, optional
        How to compile. The object is not copied: later changes have an effect.

    Raises
    ------
    TypeError
        When `code` is of the wrong type, or an option is unknown.
    RuntimeError
        For an unknown `code_type`, or when the compiler cannot be loaded.

    Notes
    -----
    Threads may share it: compilations of one program run one after the other.

    Examples
    --------
    >>> program = Program(source, "c++", {"std": "c++17"})
    >>> kernel = program.compile("cubin", name_expressions=("scale<float>",)).get_kernel("scale<float>")
    """

    __slots__ = ("__weakref__", "_closed", "_code", "_code_type", "_compiler", "_compiling", "_kernels", "_options")

    def __init__(
        self,
        code: str | bytes | bytearray,
        code_type: str,
        options: ProgramOptions | dict[str, Any] | None = None,
    ) -> None:
        self._closed = False
        self._kernels: dict[str, Kernel] = {}
        self._compiling = RLock()  # the compilers keep the result in their program: one compile at a time
        from cupola.core.program._program_options import ProgramOptions

        self._options: ProgramOptions = as_options(ProgramOptions, options)
        self._code_type = _known_code_type(code_type, self._options)
        self._code = code
        if self._options.use_bundled_headers:
            from cupola.core.program._cxx_compiler import require_bundled_headers

            require_bundled_headers()
        self._compiler = _make_compiler(code, self._code_type, self._options)

    def compile(
        self,
        target_type: str,
        name_expressions: Sequence[str | bytes] = (),
        logs: LogSink | None = None,
        *,
        cache: ProgramCacheResource | None = None,
    ) -> ObjectCode:
        """Compile the program.

        Parameters
        ----------
        target_type : str
            CUDA C++ compiles to ``"ptx"``, ``"cubin"`` or ``"ltoir"``; PTX to ``"cubin"`` or ``"ptx"``; NVVM IR to
            ``"ptx"`` or ``"ltoir"``.
        name_expressions : sequence of str or bytes
            C++ names of kernels, such as template instances, that the result can be asked for by
            ``get_kernel(name)``. They must all be given at the first compile.
        logs : object with a ``write`` method, optional
            Gets the compiler's log, if there is one, after a successful compile. Without it, warnings of NVRTC
            become a :class:`CompilerWarning`.
        cache : cupola.utils.ProgramCacheResource, optional
            Where to look for the result first, and to store it otherwise. Not with `name_expressions`.

        Returns
        -------
        ObjectCode

        Raises
        ------
        NVRTCError
            When NVRTC refuses; its log is part of the text.
        cupola.bindings.nvvm.nvvmError, cupola.bindings.nvjitlink.nvJitLinkError, CUDAError
            When libNVVM, nvJitLink or the driver's linker refuses.
        ValueError
            For a target to which this source cannot be compiled, or options with which a cache cannot be used.
        """
        with self._compiling:
            if self._closed:
                raise RuntimeError("Program has been closed")
            if isinstance(name_expressions, (str, bytes)):
                raise TypeError(f"name_expressions is a sequence of names: write ({name_expressions!r},)")
            if cache is not None:
                from cupola.core.program._program_cache import ProgramCacheResource

                if not isinstance(cache, ProgramCacheResource):
                    raise TypeError(f"cache must be a ProgramCacheResource, not {type(cache).__name__}")
                if name_expressions:
                    raise ValueError("a cache does not keep the names of name_expressions: leave one of them out")
            target = str(target_type).lower()
            if target not in self._compiler.targets:
                raise ValueError(
                    f"unsupported target {target!r} for {self.backend} ({self._code_type} source); "
                    f"it compiles to {', '.join(self._compiler.targets)}"
                )
            if cache is None:
                return self._compiler.compile(target, name_expressions or (), logs)
            return self._compile_once(target, logs, cache)

    def kernel(self, name: str) -> Kernel:
        """Compile the program to machine code and get a kernel of it; the second time the kernel is known.

        Parameters
        ----------
        name : str
            Of the kernel: plain if it is ``extern "C"`` or there is only one, else a C++ name such as
            ``"scale<float>"``.

        Returns
        -------
        Kernel

        Raises
        ------
        NVRTCError
            The program does not compile.
        CUDAError
            There is no such kernel.

        Examples
        --------
        >>> program.kernel("scale<float>")[1, 32](buffer, 2.0)
        """
        with self._compiling:
            if self._closed:
                raise RuntimeError("Program has been closed")
            found = self._kernels.get(name)
            if found is None:
                found = self._kernels[name] = self._get_kernel(name)
            return found

    def _get_kernel(self, name: str) -> Kernel:
        # In programs of their own, so that compile() may still be given other names.
        target = "ptx" if self._code_type == "nvvm" else "cubin"
        missing = None
        if "<" not in name:
            with Program(self._code, self._code_type, self._options) as program:
                code = program.compile(target)
            try:
                return code.get_kernel(name)
            except CUDAError as error:
                missing = error
        if self._code_type == "c++":
            with Program(self._code, self._code_type, self._options) as program:
                try:
                    return program.compile(target, name_expressions=(name,)).get_kernel(name)
                except NVRTCError:
                    if missing is None:
                        raise
        assert missing is not None
        raise missing

    @property
    def backend(self) -> CompilerBackendType:
        """CompilerBackendType: the compiler in charge."""
        from cupola.typing import CompilerBackendType

        return CompilerBackendType(self._compiler.backend)

    @property
    def handle(self) -> nvrtcProgram | CUlinkState | int:
        """cupola.bindings.nvrtc.nvrtcProgram or int: the native handle, for PTX the linker's; 0 once closed."""
        return self._compiler.handle

    @property
    def pch_status(self) -> PCHStatusType | None:
        """PCHStatusType or None: the status of the precompiled header in the last compile that had one."""
        return self._compiler.pch_status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the compiler's handle. Object code that it made stays valid. Closing twice is fine."""
        with self._compiling:
            self._closed = True
            self._compiler.close()

    @property
    def is_closed(self) -> bool:
        """bool: whether the program was closed."""
        return self._closed

    if not TYPE_CHECKING:  # for type checkers there are no other attributes

        def __getattr__(self, name: str) -> None:
            advice = "; Program.link(target) is now Program.compile(target)" if name == "link" else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    def __repr__(self) -> str:
        return f"<Program backend='{self.backend}'>"

    def __reduce__(self) -> str:
        raise TypeError("a Program cannot be pickled; pickle its source and options, or the ObjectCode it makes")

    def _compile_once(self, target: str, logs: LogSink | None, cache: ProgramCacheResource) -> ObjectCode:
        """Take the result from the cache, or compile and store it."""
        from cupola.bindings import _provider
        from cupola.core.program._program_key import make_program_cache_key

        key = make_program_cache_key(
            code=self._code, code_type=self._code_type, options=self._options, target_type=target
        )
        # What observes kernels knows the sources that were compiled in this process, and compiles some another way.
        if _provider.is_observed():
            return self._compiler.compile(target, (), logs)
        found = cache.get(key)
        if found is None:
            made = self._compiler.compile(target, (), logs)
            try:
                cache[key] = made._to_cache()
            except OSError as error:  # such as a full disk: the next process compiles again
                import logging

                logging.getLogger("cupola").warning("what was compiled could not be put into %r: %s", cache, error)
            return made
        if target == "ptx" and self._code_type == "c++":
            from cupola.core.program._cxx_compiler import warn_of_newer_ptx

            warn_of_newer_ptx()
        make = {"ptx": ObjectCode.from_ptx, "cubin": ObjectCode.from_cubin, "ltoir": ObjectCode.from_ltoir}[target]
        return make(found, name=self._compiler.name)


def _make_compiler(
    code: str | bytes | bytearray, code_type: str, options: ProgramOptions
) -> CxxCompiler | NvvmCompiler | PtxCompiler:
    if code_type == "nvvm":
        if not isinstance(code, str | bytes | bytearray):
            raise TypeError(f"NVVM IR is str, bytes or bytearray, not {type(code).__name__}")
        from cupola.core.program._nvvm_compiler import NvvmCompiler

        return NvvmCompiler(code, options)
    if not isinstance(code, str):
        raise TypeError(f"Expected type str, but got {type(code).__name__}: {code_type} code is text")
    if options.extra_sources is not None:
        raise ValueError(f"extra_sources are for NVVM programs only, not for {code_type}")
    if code_type == "c++":
        from cupola.core.program._cxx_compiler import CxxCompiler

        return CxxCompiler(code, options)
    if options.numba_debug:
        warnings.warn("numba_debug has no effect for a PTX program", UserWarning, stacklevel=3)
    from cupola.core.program._ptx_compiler import PtxCompiler

    return PtxCompiler(code, options)


def _known_code_type(code_type: str, options: ProgramOptions) -> str:
    name = str(code_type).lower()
    if name in CODE_TYPES:
        return name
    known = 'the code types are "c++", "ptx" and "nvvm"'
    if options.use_libdevice:
        raise ValueError(f"use_libdevice is for NVVM programs, not for {code_type!r}; {known}")
    if name.startswith(("cu", "c", "nvrtc")):
        known += '. For CUDA C++ write "c++"'
    raise RuntimeError(f"unsupported code_type {code_type!r}; {known}")
