"""The GPUs that the CPU device can stand for; the figures are in driver/model.c."""

from __future__ import annotations

from typing import NamedTuple

from cupola.cpu import _driver


class Model(NamedTuple):
    """A GPU that the CPU device can stand for."""

    key: str
    name: str
    compute_capability: tuple[int, int]
    multiprocessor_count: int
    memory_bytes: int


models = tuple(Model(*fields) for fields in _driver.models())
