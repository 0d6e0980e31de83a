"""Errors of the CPU device's compiler."""

from __future__ import annotations


class ImageError(Exception):
    """An image cannot be loaded, or a kernel in it not compiled.

    Attributes
    ----------
    status
        The name of the CUDA error that the driver returns for it, such as ``"CUDA_ERROR_INVALID_PTX"``.
    """

    def __init__(self, status: str, message: str) -> None:
        self.status = status
        super().__init__(message)
