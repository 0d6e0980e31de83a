"""NVVM IR by libNVVM: to PTX and LTO-IR (libNVVM API; NVVM IR Specification).

Imported when NVVM IR is first compiled.
"""

from __future__ import annotations

import weakref

from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from cupola.bindings.nvvm import nvvmError
    from cupola.core.program._program import LogSink
    from cupola.core.program._program_options import ProgramOptions

_unusable: str | None = None  # why libNVVM cannot be used in this process


class NvvmCompiler:
    """The modules of one program; each compile makes a libNVVM program of its own, since modules may be added once."""

    targets = ("ptx", "ltoir")
    backend = "NVVM"
    pch_status = None

    def __init__(self, code: str | bytes | bytearray, options: ProgramOptions) -> None:
        require_nvvm()
        self._options = options
        self._modules = [(options.name or "", _as_bytes(code))]
        self._modules += [(name, _as_bytes(source)) for name, source in options.extra_sources or ()]
        self.handle = 0
        self._load()

    @property
    def name(self) -> str:
        """The name of the program."""
        return self._options.name or ""

    def close(self) -> None:
        """Release the handle."""
        self.handle = 0
        self._release()

    def compile(self, target: str, name_expressions: Sequence[str | bytes], logs: LogSink | None) -> ObjectCode:
        """Compile; see :meth:`Program.compile`."""
        from cupola.bindings import nvvm

        flags = self._options.as_bytes("nvvm", target)
        self.close()
        self._load()
        handle = self.handle
        libdevice = _libdevice() if self._options.use_libdevice else b""
        try:
            nvvm.verify_program(handle, len(flags), flags)
            if libdevice:
                nvvm.lazy_add_module_to_program(handle, libdevice, len(libdevice), "libdevice")
            nvvm.compile_program(handle, len(flags), flags)
            result = bytearray(nvvm.get_compiled_result_size(handle))
            nvvm.get_compiled_result(handle, result)
        except nvvm.nvvmError as error:
            _fail(error, self._log())
        log = self._log()
        if logs is not None and log:
            logs.write(log)
        make = ObjectCode.from_ptx if target == "ptx" else ObjectCode.from_ltoir
        return make(bytes(result), name=self.name)

    def _load(self) -> None:
        from cupola.bindings import nvvm

        self.handle = nvvm.create_program()
        self._release = weakref.finalize(self, nvvm.destroy_program, self.handle)
        self._release.atexit = False  # the process takes it along
        try:
            for name, code in self._modules:
                nvvm.add_module_to_program(self.handle, code, len(code), name)
        except nvvm.nvvmError as error:
            _fail(error, self._log())

    def _log(self) -> str:
        from cupola.bindings import nvvm

        log = bytearray(nvvm.get_program_log_size(self.handle))
        nvvm.get_program_log(self.handle, log)
        return log.rstrip(b"\0").decode(errors="backslashreplace")


def require_nvvm() -> None:
    """Raise a RuntimeError when libNVVM cannot be loaded; a second attempt in the process is not made."""
    global _unusable
    if _unusable is None:
        from cupola.bindings import nvvm

        try:
            nvvm.version()
            _unusable = ""
        except (RuntimeError, ImportError, OSError) as error:
            _unusable = str(error) or type(error).__name__
    if _unusable:
        raise RuntimeError(f"NVVM programs need libNVVM, which cannot be loaded: {_unusable}")


def _libdevice() -> bytes:
    from cupola.pathfinder import find_bitcode_lib

    with open(find_bitcode_lib("device"), "rb") as file:
        return file.read()


def _as_bytes(source: str | bytes | bytearray) -> bytes:
    return source.encode() if isinstance(source, str) else bytes(source)


def _fail(error: nvvmError, log: str) -> NoReturn:
    if log.strip():
        error.args = (f"{error}\nNVVM program log: {log.strip()}",)
        error.__notes__ = []  # the log once is enough
    raise error from None
