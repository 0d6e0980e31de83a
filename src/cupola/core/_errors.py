"""The errors and warnings of the package, and the advice that goes with the common ones."""

from __future__ import annotations


class CUDAError(Exception):
    """A CUDA call failed.

    Attributes
    ----------
    name : str
        CUDA's name of the status, such as ``CUDA_ERROR_OUT_OF_MEMORY``; empty when the error was found before
        any call.
    status : int
        Its number, 0 likewise.
    call : str
        The CUDA function that returned it, empty likewise.
    """

    def __init__(self, *args: object, name: str = "", status: int = 0, call: str = "") -> None:
        super().__init__(*args)
        self.name = name
        self.status = status
        self.call = call


class NVRTCError(CUDAError):
    """The runtime compiler failed; the compilation log is part of the text."""


class CUDAWarning(UserWarning):
    """Something went wrong where no exception can be raised, for example while an object was destroyed."""
