"""Programs: source code and the compiler for it."""

from __future__ import annotations

import os
import warnings
from _thread import RLock

from cupola.core import _nvrtc
from cupola.core._errors import NVRTCError
from cupola.core._object_code import ObjectCode

# Programs are imported long before the first one is made: what only that needs, and is slow to import, comes then.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from cupola.bindings.nvrtc import nvrtcProgram
    from cupola.core._program_options import ProgramOptions
    from cupola.core._source_file import SourceFile
    from cupola.typing import CompilerBackendType, PCHStatusType

    class LogSink(Protocol):
        """What the compilation log is written to."""

        def write(self, text: str, /) -> object:
            """Take the text."""


# What each kind of source can be compiled to, and by which member of CompilerBackendType.
TARGETS = {"c++": ("ptx", "cubin", "ltoir"), "ptx": ("cubin", "ptx")}
BACKENDS = {"c++": "NVRTC", "ptx": "DRIVER"}


class Program:
    """Source code, ready to be compiled.

    Parameters
    ----------
    code : str
        The source.
    code_type : str or SourceCodeType
        ``"c++"`` (CUDA C++, for NVRTC) or ``"ptx"`` (for the linker of the driver), in any case.
    options : ProgramOptions or dict, optional
        How to compile. The object is used, not copied: later changes count.

    Raises
    ------
    TypeError
        When `code` is not a str, or an option is unknown.
    RuntimeError
        For an unknown `code_type`, or when NVRTC cannot be loaded.

    Examples
    --------
    >>> program = Program(source, "c++", {"std": "c++17", "arch": "sm_90"})
    >>> kernel = program.compile("cubin", name_expressions=("scale<float>",)).get_kernel("scale<float>")
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_code",
        "_code_type",
        "_compiling",
        "_nvrtc",
        "_options",
        "_pch_status",
        "_source_file",
    )

    def __init__(self, code: str, code_type: str, options: ProgramOptions | dict[str, Any] | None = None) -> None:
        self._closed = False
        self._compiling = RLock()  # NVRTC keeps the result in its program: one compile at a time
        self._nvrtc: _nvrtc.NvrtcProgram | None = None
        self._pch_status: PCHStatusType | None = None
        self._source_file: SourceFile | None = None
        from cupola.core._options import as_options
        from cupola.core._program_options import ProgramOptions

        self._options = as_options(ProgramOptions, options)
        self._code_type = _known_code_type(code_type, self._options)
        if not isinstance(code, str):
            raise TypeError(f"Expected type str, but got {type(code).__name__}: {self._code_type} code is text")
        if self._options.extra_sources is not None:
            raise ValueError(f"extra_sources are for NVVM programs only, not for {self._code_type}")
        self._code = code
        if self._options.use_bundled_headers:
            _require_bundled_headers()
        if self._code_type == "c++":
            if self._options.debug or self._options.lineinfo:
                from cupola.core._source_file import SourceFile

                self._source_file = SourceFile.for_debugging(code, self._options)
            self._nvrtc = self._new_nvrtc_program()
        elif self._options.numba_debug:
            warnings.warn("numba_debug means nothing for a PTX program", UserWarning, stacklevel=2)

    def compile(
        self,
        target_type: str,
        name_expressions: Sequence[str | bytes] = (),
        logs: LogSink | None = None,
    ) -> ObjectCode:
        """Compile the program.

        Parameters
        ----------
        target_type : str
            ``"ptx"``, ``"cubin"`` or ``"ltoir"``; of PTX source the first two.
        name_expressions : sequence of str or bytes
            C++ names of kernels, such as template instances, that the result can be asked for by
            ``get_kernel(name)``. They must all be given at the first compile.
        logs : object with a ``write`` method, optional
            Gets the compiler's log, if there is one, after a successful compile.

        Returns
        -------
        ObjectCode

        Raises
        ------
        NVRTCError
            When the compiler refuses; its log is part of the text.
        ValueError
            For a target that this source cannot be compiled to.
        """
        with self._compiling:
            if self._closed:
                raise RuntimeError("Program has been closed")
            target = str(target_type).lower()
            if target not in TARGETS[self._code_type]:
                raise ValueError(
                    f"unsupported target {target!r} for {self.backend} ({self._code_type} source); "
                    f"it compiles to {', '.join(TARGETS[self._code_type])}"
                )
            if self._code_type == "ptx":
                return self._link(target)
            return self._compile_with_nvrtc(target, name_expressions, logs)

    @property
    def backend(self) -> CompilerBackendType:
        """CompilerBackendType: the compiler in charge."""
        from cupola.typing import CompilerBackendType

        return CompilerBackendType[BACKENDS[self._code_type]]

    @property
    def handle(self) -> nvrtcProgram | int:
        """cupola.bindings.nvrtc.nvrtcProgram or int: null once closed; 0 for a PTX program, which has no handle."""
        if self._code_type != "c++":
            return 0
        from cupola.bindings.nvrtc import nvrtcProgram

        return nvrtcProgram(0 if self._nvrtc is None else self._nvrtc.address)

    @property
    def pch_status(self) -> PCHStatusType | None:
        """PCHStatusType or None: what became of the precompiled header in the last compile that had one."""
        return self._pch_status

    def close(self) -> None:
        """Release the compiler's handle. Object code that was made stays. Closing twice is fine."""
        with self._compiling:
            self._closed = True
            self._nvrtc = None
            if self._source_file is not None:
                self._source_file.remove()

    @property
    def is_closed(self) -> bool:
        """bool: whether the program was closed."""
        return self._closed

    def __repr__(self) -> str:
        return f"<Program backend='{self.backend}'>"

    def __reduce__(self) -> str:
        raise TypeError("a Program cannot be pickled; pickle its source and options, or the ObjectCode it makes")

    # --- CUDA C++ -------------------------------------------------------------------------------------

    @property
    def _file_name(self) -> str:
        return self._options.name or "" if self._source_file is None else self._source_file.path

    def _new_nvrtc_program(self) -> _nvrtc.NvrtcProgram:
        return _nvrtc.NvrtcProgram(self._code.encode(), os.fsencode(self._file_name))

    def _compile_with_nvrtc(
        self, target: str, name_expressions: Sequence[str | bytes], logs: LogSink | None
    ) -> ObjectCode:
        flags = self._options.as_bytes("nvrtc", target)
        if target == "ltoir" and not self._options.link_time_optimization:
            flags.append(b"--dlink-time-opt")  # without it NVRTC gives zero bytes of LTO-IR
        program = self._run_nvrtc([_as_bytes(name) for name in name_expressions], flags)
        _warn_of_wrong_headers(flags)
        result = program.result(target)
        if not result:
            raise ValueError(self._why_empty(target))
        if target == "ptx":
            _warn_of_newer_ptx()
        log = program.log()
        if logs is not None and len(log) > 1:
            logs.write(log.decode(errors="backslashreplace"))
        symbols = {name: program.lowered_name(_as_bytes(name)) for name in name_expressions}
        make = {"ptx": ObjectCode.from_ptx, "cubin": ObjectCode.from_cubin, "ltoir": ObjectCode.from_ltoir}[target]
        return make(result, name=self._file_name, symbol_mapping=symbols)

    def _run_nvrtc(self, expressions: list[bytes], flags: list[bytes]) -> _nvrtc.NvrtcProgram:
        assert self._nvrtc is not None
        for expression in expressions:
            self._nvrtc.add_name_expression(expression)
        try:
            self._nvrtc.compile(flags)
        except NVRTCError as error:
            from cupola.core._compatibility import explain_compile

            raise explain_compile(error, flags) from None
        if not (self._options.create_pch or self._options.pch):
            return self._nvrtc
        status = self._nvrtc.pch_status()
        if status == _nvrtc.PCH_HEAP_EXHAUSTED:
            # NVRTC says how much the header needs; the heap is only read when a program is made.
            _nvrtc.set_pch_heap_size(self._nvrtc.pch_heap_required())
            self._nvrtc = self._new_nvrtc_program()
            for expression in expressions:
                self._nvrtc.add_name_expression(expression)
            self._nvrtc.compile(flags)
            status = self._nvrtc.pch_status()
        from cupola.typing import PCHStatusType

        self._pch_status = {
            _nvrtc.PCH_CREATED: PCHStatusType.CREATED,
            _nvrtc.PCH_NOT_ATTEMPTED: PCHStatusType.NOT_ATTEMPTED,
        }.get(status, PCHStatusType.FAILED)
        return self._nvrtc

    def _why_empty(self, target: str) -> str:
        arch = self._options.arch or ""
        if target == "cubin" and arch.startswith("compute_"):
            return f"{arch} is a virtual architecture, for which there is no cubin: use arch={'sm_' + arch[8:]!r}"
        if target == "cubin" and self._options.link_time_optimization:
            return "link_time_optimization makes LTO-IR instead of a cubin: compile to 'ltoir', or leave it out"
        return f"NVRTC made an empty {target} with the options {self._options.as_bytes('nvrtc', target)}"

    # --- PTX ------------------------------------------------------------------------------------------

    def _link(self, target: str) -> ObjectCode:
        text = self._code.encode()
        name = self._options.name or ""
        if target == "ptx":
            return ObjectCode.from_ptx(text + b"\0", name=name)
        from cupola.core._driver_linker import link_ptx

        options = self._options
        return ObjectCode.from_cubin(
            link_ptx(
                text,
                name.encode(),
                options.arch or "",
                max_registers=options.max_register_count,
                debug=bool(options.debug),
                lineinfo=bool(options.lineinfo),
            ),
            name=name,
        )


def _known_code_type(code_type: str, options: ProgramOptions) -> str:
    name = str(code_type).lower()
    if name in TARGETS:
        return name
    known = "the code types are " + " and ".join(f'"{known}"' for known in TARGETS)
    if name == "nvvm":
        raise RuntimeError(f"NVVM programs are not supported yet; {known}")
    if options.use_libdevice:
        raise ValueError(f"use_libdevice is for NVVM programs, which are not supported yet; {known}")
    if name.startswith(("cu", "c", "nvrtc")):
        known += '. For CUDA C++ write "c++"'
    raise RuntimeError(f"unsupported code_type {code_type!r}; {known}")


def _as_bytes(expression: str | bytes) -> bytes:
    if isinstance(expression, str):
        return expression.encode()
    if isinstance(expression, bytes):
        return expression
    raise TypeError(f"a name expression must be str or bytes, got {type(expression).__name__}")


def _require_bundled_headers() -> None:
    major, minor = _nvrtc.version()
    if (major, minor) < (13, 3):
        raise RuntimeError(f"use_bundled_headers needs NVRTC 13.3 or later; this one is {major}.{minor}")


def _warn_of_wrong_headers(flags: list[bytes]) -> None:
    from cupola.core._compatibility import wrong_headers

    found = wrong_headers(map(os.fsdecode, flags), _nvrtc.version())
    if found:
        warnings.warn(str(found), RuntimeWarning, stacklevel=4)


def _warn_of_newer_ptx() -> None:
    from cupola.bindings.driver import cuDriverGetVersion

    try:
        status, number = cuDriverGetVersion()
    except (RuntimeError, ImportError):
        return  # no driver here: whoever loads the PTX elsewhere has another one
    driver, compiler = (number // 1000, number % 1000 // 10), _nvrtc.version()
    if not status and driver < compiler:
        warnings.warn(
            f"the PTX comes from NVRTC {compiler[0]}.{compiler[1]} and the driver is for CUDA {driver[0]}.{driver[1]}, "
            "which may be too old to load it; compile to 'cubin' instead",
            RuntimeWarning,
            stacklevel=4,
        )
