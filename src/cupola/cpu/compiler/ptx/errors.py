"""What the front end raises: where in the PTX it went wrong, and what to do about it."""

from __future__ import annotations

from cupola.cpu.compiler.ptx import ast


class PtxError(ValueError):
    """A PTX module cannot be used; the message says where and why."""


class PtxSyntaxError(PtxError):
    """The text is not PTX, or uses an instruction or directive that the grammar does not have.

    Attributes
    ----------
    line, column : int
        Position in the PTX text, counted from 1.
    text : str
        The offending word or character; empty at the end of the text.
    expected : str
        What would have been right there; empty when nothing better can be said.
    source : str
        The CUDA source line that the PTX comes from, as ``"kernel.cu:12"``; empty when it is not known.
    """

    def __init__(
        self, message: str, line: int, column: int, text: str = "", expected: str = "", source: str = ""
    ) -> None:
        self.line = line
        self.column = column
        self.text = text
        self.expected = expected
        self.source = source
        origin = f" ({source})" if source else ""
        hint = f"; expected {expected}" if expected else ""
        super().__init__(f"{message} at PTX line {line}, column {column}{origin}{hint}")


class PtxUnsupportedError(PtxError):
    """The PTX is right, but the CPU device cannot run it.

    Attributes
    ----------
    location : ast.Location or None
        The instruction's place, with the CUDA source line when the PTX was made with ``-lineinfo``.
    """

    def __init__(self, message: str, location: ast.Location | None = None) -> None:
        self.location = location
        super().__init__(f"{message} at {describe(location)}" if location else message)


def describe(location: ast.Location) -> str:
    """``"PTX line 12 (kernel.cu:3)"``, for messages; ``(header.h:7, inlined at kernel.cu:3)`` in inlined functions."""
    sources = []
    at: ast.Location | None = location
    while at is not None and at.file:
        sources.append(f"{at.file}:{at.line}")
        at = at.inlined_at
    return f"PTX line {location.ptx_line}" + (f" ({', inlined at '.join(sources)})" if sources else "")
