from inspect import Parameter
from typing import Any

import numpy as np

from cupola import Buffer, Stream
from cupola.mpi._request import RECEIVING as RECEIVING
from cupola.mpi._request import forgotten as forgotten

class Stage:
    buffer: Buffer
    bytes: np.ndarray
    def __init__(self, order: int) -> None: ...
    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray: ...

class Stages:
    def take(self, size: int, queue: Stream | None = None) -> Stage: ...
    def give_back(self, stage: Stage, queue: Stream | None = None) -> None: ...

class Settings:
    comm: Any
    stream: Stream | None
    timeout: float | None
    part: int
    _stages: Stages

class Plan:
    def __init__(
        self, name: str, parameters: list[Parameter], buffers: dict[str, tuple[bool, bool]], in_parts: bool
    ) -> None: ...
    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None: ...
    def named(self, given: list[Any]) -> dict[str, Any]: ...

def carry_out(own: Settings, plan: Plan, given: list[Any]) -> bool: ...
