"""The errors of the search."""

from __future__ import annotations


class DynamicLibNotFoundError(RuntimeError):
    """A CUDA library was found nowhere; the text lists where it was looked for."""


class DynamicLibUnknownError(DynamicLibNotFoundError):
    """The name is not one of a CUDA library."""


class DynamicLibNotAvailableError(DynamicLibNotFoundError):
    """The library exists, but not for this operating system."""


class BitcodeLibNotFoundError(RuntimeError):
    """A bitcode library was found nowhere; the text lists where it was looked for."""


class StaticLibNotFoundError(RuntimeError):
    """A static library was found nowhere; the text lists where it was looked for."""


class UnsupportedArchError(RuntimeError):
    """CUDA does not exist for the processor that this Python was built for."""


class UnsupportedBinaryError(Exception):
    """The name is not one of a CUDA tool."""


for _public in (
    DynamicLibNotFoundError,
    DynamicLibUnknownError,
    DynamicLibNotAvailableError,
    BitcodeLibNotFoundError,
    StaticLibNotFoundError,
    UnsupportedArchError,
    UnsupportedBinaryError,
):
    _public.__module__ = "cupola.pathfinder"  # tracebacks then say the name that programs catch it by
