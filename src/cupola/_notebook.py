"""In IPython and notebooks, errors end where the program called cupola: frames below that have nothing to say.

``%xmode Verbose`` shows them all. Nothing changes where the shell has a handler for exceptions of its own already.
Imported when cupola is imported in IPython.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_ours(traceback: TracebackType) -> bool:
    """Whether a frame is one of cupola, compiled or not."""
    name = traceback.tb_frame.f_code.co_filename
    return name.startswith((_HERE, "cupola/"))


def shorten(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of cupola at its end; as it is, if all frames are."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    kept = len(frames)
    while kept and is_ours(frames[kept - 1]):
        kept -= 1
    made: TracebackType | None = None
    for frame in reversed(frames[: kept or len(frames)]):
        made = TracebackType(made, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return made


def show(shell: Any, kind: type, error: BaseException, traceback: TracebackType, tb_offset: int | None = None) -> None:
    """Let the shell show an exception, shortened unless all of it is wanted."""
    if getattr(getattr(shell, "InteractiveTB", None), "mode", "") != "Verbose":
        shortened = shorten(traceback)
        assert shortened is not None
        error.__traceback__ = traceback = shortened
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset, running_compiled_code=True)


def begin() -> None:
    """Ask the shell, if there is one, to show exceptions this way."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = ask() if ask is not None else None
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), show)


begin()
