"""PTX by the linker: to machine code.

Imported when PTX is first compiled.
"""

from __future__ import annotations

from cupola.core.program._linker import Linker
from cupola.core.program._linker_options import LinkerOptions
from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cupola.bindings.driver import CUlinkState
    from cupola.core.program._program import LogSink
    from cupola.core.program._program_options import ProgramOptions

# The options of a program that a linker has, too.
PASSED_ON = (
    "arch",
    "max_register_count",
    "time",
    "link_time_optimization",
    "debug",
    "lineinfo",
    "ftz",
    "prec_div",
    "prec_sqrt",
    "fma",
    "ptxas_options",
    "split_compile",
    "no_cache",
)


class PtxCompiler:
    """The text of one program. A linker links once: a second compile makes another one."""

    targets = ("cubin", "ptx")
    pch_status = None

    def __init__(self, code: str, options: ProgramOptions) -> None:
        self._code = ObjectCode.from_ptx(code.encode() + b"\0", name=options.name or "")
        self._options = options
        self.backend = str(Linker.which_backend())
        self._linker: Linker | None = self._new_linker()
        self._used = False

    @property
    def handle(self) -> int | CUlinkState:
        """The linker's handle; 0 once closed."""
        linker = self._linker  # which another thread may close meanwhile
        return 0 if linker is None else linker.handle

    @property
    def name(self) -> str:
        """The name of the program."""
        return self._options.name or ""

    def close(self) -> None:
        """Release the linker."""
        if self._linker is not None:
            self._linker.close()
            self._linker = None

    def compile(self, target: str, name_expressions: Sequence[str | bytes], logs: LogSink | None) -> ObjectCode:
        """Compile; see :meth:`Program.compile`."""
        if target == "ptx":
            return self._code
        if self._used or self._linker is None:
            self._linker = self._new_linker()
        self._used = True
        made = self._linker.link("cubin")
        log = self._linker.get_info_log()
        if logs is not None and log:
            logs.write(log)
        return made

    def _new_linker(self) -> Linker:
        return Linker(self._code, options=linker_options(self._options))


def linker_options(options: ProgramOptions) -> LinkerOptions:
    """The options for the linker, of those for the program."""
    return LinkerOptions(name=options.name or "", **{field: getattr(options, field) for field in PASSED_ON})
