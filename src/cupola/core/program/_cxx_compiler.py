"""CUDA C++ by NVRTC: to PTX, machine code and LTO-IR, with name expressions and precompiled headers.

Imported when CUDA C++ is first compiled.
"""

from __future__ import annotations

import os
import re
import warnings

from cupola.core.base._errors import CompilerWarning, NVRTCError
from cupola.core.program import _nvrtc
from cupola.core.program._cuda_headers import flags_for
from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cupola.bindings.nvrtc import nvrtcProgram
    from cupola.core.program._program import LogSink
    from cupola.core.program._program_options import ProgramOptions
    from cupola.core.program._source_file import SourceFile
    from cupola.typing import PCHStatusType

_WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)


class CxxCompiler:
    """The source of one program, and NVRTC's handle of it."""

    targets = ("ptx", "cubin", "ltoir")
    backend = "NVRTC"

    def __init__(self, code: str, options: ProgramOptions) -> None:
        self._code = code
        self._options = options
        self._source_file: SourceFile | None = None
        self.pch_status: PCHStatusType | None = None
        if options.debug or options.lineinfo:
            from cupola.core.program._source_file import SourceFile

            self._source_file = SourceFile.for_debugging(code, options)
        self._program: _nvrtc.NvrtcProgram | None = self._new_program()

    @property
    def handle(self) -> nvrtcProgram:
        """NVRTC's handle; null once closed."""
        from cupola.bindings.nvrtc import nvrtcProgram

        program = self._program  # which another thread may close meanwhile
        return nvrtcProgram(0 if program is None else program.address)

    @property
    def name(self) -> str:
        """The file name that NVRTC gets."""
        return self._options.name or "" if self._source_file is None else self._source_file.path

    def close(self) -> None:
        """Release the handle and the source file."""
        self._program = None
        if self._source_file is not None:
            self._source_file.remove()

    def compile(self, target: str, name_expressions: Sequence[str | bytes], logs: LogSink | None) -> ObjectCode:
        """Compile; see :meth:`Program.compile`."""
        flags = self._options.as_bytes("nvrtc", target)
        flags += flags_for(self._options, self._code, _nvrtc.version)
        if self._options.debug and self._options.lineinfo:
            flags.remove(b"--generate-line-info")  # part of --device-debug, and the assembler warns of both
        if target == "ltoir" and not self._options.link_time_optimization:
            flags.append(b"--dlink-time-opt")  # without it NVRTC gives zero bytes of LTO-IR
        program = self._run([_as_bytes(name) for name in name_expressions], flags)
        _warn_of_wrong_headers(flags)
        result = program.result(target)
        if not result and not self._options.fdevice_syntax_only:
            raise ValueError(self._why_empty(target))
        if target == "ptx":
            warn_of_newer_ptx()
        self._tell(program.log(), logs)
        symbols = {name: program.lowered_name(_as_bytes(name)) for name in name_expressions}
        make = {"ptx": ObjectCode.from_ptx, "cubin": ObjectCode.from_cubin, "ltoir": ObjectCode.from_ltoir}[target]
        made = make(result, name=self.name, symbol_mapping=symbols)
        if target == "cubin":
            made._take_signatures(program.result("ptx"), self._code)
        return made

    def _new_program(self) -> _nvrtc.NvrtcProgram:
        return _nvrtc.NvrtcProgram(self._code.encode(), os.fsencode(self.name))

    def _run(self, expressions: list[bytes], flags: list[bytes]) -> _nvrtc.NvrtcProgram:
        assert self._program is not None
        for expression in expressions:
            self._program.add_name_expression(expression)
        try:
            self._program.compile(flags)
        except NVRTCError as error:
            from cupola.core.program._compatibility import explain_compile

            raise explain_compile(error, flags) from None
        if not (self._options.create_pch or self._options.pch):
            return self._program
        status = self._program.pch_status()
        if status == _nvrtc.PCH_HEAP_EXHAUSTED:
            # NVRTC says how much the header needs; the heap is only read when a program is made.
            _nvrtc.set_pch_heap_size(self._program.pch_heap_required())
            self._program = self._new_program()
            for expression in expressions:
                self._program.add_name_expression(expression)
            self._program.compile(flags)
            status = self._program.pch_status()
        from cupola.typing import PCHStatusType

        self.pch_status = {
            _nvrtc.PCH_CREATED: PCHStatusType.CREATED,
            _nvrtc.PCH_NOT_ATTEMPTED: PCHStatusType.NOT_ATTEMPTED,
        }.get(status, PCHStatusType.FAILED)
        return self._program

    def _tell(self, log: bytes, logs: LogSink | None) -> None:
        if len(log) <= 1:  # its terminator
            return
        text = log.decode(errors="backslashreplace")
        if logs is not None:
            logs.write(text)
        elif _WARNING.search(text):
            warnings.warn(f"NVRTC warns of {self.name}:\n{text.rstrip(chr(0)).rstrip()}", CompilerWarning, stacklevel=4)

    def _why_empty(self, target: str) -> str:
        arch = self._options.arch or ""
        if target == "cubin" and arch.startswith("compute_"):
            return f"{arch} is a virtual architecture and has no cubin: use arch={'sm_' + arch[8:]!r}"
        if target == "cubin" and self._options.link_time_optimization:
            return "link_time_optimization makes LTO-IR instead of a cubin: compile to 'ltoir', or leave it out"
        return f"NVRTC made an empty {target} with the options {self._options.as_bytes('nvrtc', target)}"


def require_bundled_headers() -> None:
    """Raise a RuntimeError when NVRTC carries no headers."""
    major, minor = _nvrtc.version()
    if (major, minor) < (13, 3):
        raise RuntimeError(f"use_bundled_headers needs NVRTC 13.3 or later; this one is {major}.{minor}")


def warn_of_newer_ptx() -> None:
    """Warn when the driver may be too old for the PTX of this NVRTC."""
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


def _as_bytes(expression: str | bytes) -> bytes:
    if isinstance(expression, str):
        return expression.encode()
    if isinstance(expression, bytes):
        return expression
    raise TypeError(f"a name expression must be str or bytes, got {type(expression).__name__}")


def _warn_of_wrong_headers(flags: list[bytes]) -> None:
    from cupola.core.program._compatibility import wrong_headers

    found = wrong_headers(map(os.fsdecode, flags), _nvrtc.version())
    if found:
        warnings.warn(str(found), RuntimeWarning, stacklevel=4)
