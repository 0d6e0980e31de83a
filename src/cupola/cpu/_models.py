"""The GPUs that the CPU device can stand for; the figures are in driver/base/model.c."""

from __future__ import annotations

from typing import NamedTuple

from cupola.cpu import _driver


class Model(NamedTuple):
    """A GPU that the CPU device can stand for.

    Attributes
    ----------
    key : str
        What `use` calls it.
    name : str
        What :attr:`Device.name <cupola.Device.name>` says.
    compute_capability : tuple of (int, int)
        Major and minor number.
    multiprocessor_count : int
        Number of multiprocessors.
    memory_bytes : int
        Size of its memory, of which the CPU device gives what the host can back.
    """

    key: str
    name: str
    compute_capability: tuple[int, int]
    multiprocessor_count: int
    memory_bytes: int


# The default comes first.
models = tuple(Model(*fields) for fields in _driver.models())
