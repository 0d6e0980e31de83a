from typing import Any

import numpy as np

from cupola import Buffer, Stream

class Stage:
    buffer: Buffer
    bytes: np.ndarray
    def __init__(self, order: int) -> None: ...
    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray: ...

class Stages:
    def take(self, size: int, queue: Stream | None = None) -> Stage: ...
    def give_back(self, stage: Stage, queue: Stream | None = None) -> None: ...
