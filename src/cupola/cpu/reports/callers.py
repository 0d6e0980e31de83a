"""Lines of Python from what the driver has noted of its callers: the address of their code, and a place in it.

The driver takes no references when something is launched (driver/base/caller.c). So the code is looked for among that
which the program has: of its functions, and of the frames that are active. What is gone is not found.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterable, Iterator


def line_of(address: int, offset: int) -> str | None:
    """The line, as ``"file:line"``, or None.

    Parameters
    ----------
    address
        Of the code object.
    offset
        Of an instruction in it, in bytes.
    """
    code = _find(address)
    if code is None:
        return None
    lines = (line for start, end, line in code.co_lines() if start <= offset < end and line is not None)
    return f"{code.co_filename}:{next(lines, code.co_firstlineno)}"


def _find(address: int) -> types.CodeType | None:
    for first in _codes():
        for code in _with_inner(first):
            if id(code) == address:
                return code
    return None


def _codes() -> Iterator[types.CodeType]:
    """Code of frames, which is mostly what is looked for, and of functions."""
    for innermost in sys._current_frames().values():
        frame: types.FrameType | None = innermost
        while frame is not None:
            yield frame.f_code
            frame = frame.f_back
    # By type(): isinstance() would ask what a dead weak proxy is a proxy of.
    yield from (found.__code__ for found in gc.get_objects() if type(found) is types.FunctionType)
    for module in list(sys.modules.values()):  # after gc.freeze() the collector does not tell what there was before
        for value in list(getattr(module, "__dict__", {}).values()):
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            for member in members:
                function = getattr(member, "__func__", member) if isinstance(value, type) else member
                if isinstance(function, types.FunctionType):
                    yield function.__code__


def _with_inner(code: types.CodeType) -> Iterable[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)
