"""The source of a program on disk, so that debuggers, profilers and diagnostics can show its lines.

Imported when such a program is compiled: re and tempfile are slow to import.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import weakref

from cupola.core.program._program_options import DEFAULT_NAME

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from cupola.core.program._program_options import ProgramOptions

KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(?:\w+\s+)*?(\w+)\s*\(")


class SourceFile:
    """A temporary file with the source, removed with this object.

    Attributes
    ----------
    path : str
        The absolute path.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._remove = weakref.finalize(self, _unlink, path)

    @classmethod
    def for_debugging(cls, code: str, options: ProgramOptions) -> SourceFile | None:
        """Write `code` to a file if `options` ask for debug information and do not name the program themselves.

        None when they do not, when the file cannot be written, or when the CPU device counts what the lines do and
        keeps the text itself: the code compiles without it.
        """
        from cupola.bindings import _provider

        if not (options.debug or options.lineinfo) or options.name != DEFAULT_NAME or _provider.is_observed():
            return None
        kernel = KERNEL.search(code)
        prefix = f"{_caller_stem()}_{kernel.group(1) if kernel else 'kernel'}_"
        try:
            descriptor, path = tempfile.mkstemp(prefix=prefix, suffix=".cu")
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(code)
        except OSError:
            return None
        return cls(os.path.abspath(path))

    def remove(self) -> None:
        """Remove the file now. Removing twice is fine."""
        self._remove()


def _unlink(path: str) -> None:
    # Somebody who cleans the temporary directory may have been faster.
    if os.path.exists(path):
        os.unlink(path)


def _caller_stem() -> str:
    """Name, without folder and suffix, of the file of the code that called into the package."""
    frame = sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
    stem = os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]
    return re.sub(r"\W", "_", stem) or "python"
