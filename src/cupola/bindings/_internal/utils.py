"""The exceptions of older bindings for what a library lacks."""

from __future__ import annotations

from cupola.bindings._provider import FunctionNotFoundError as FunctionNotFoundError


class NotSupportedError(RuntimeError):
    """Never raised: a library or a function that is missing is an error of its own."""
