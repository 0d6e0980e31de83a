"""The emulated CUDA driver of the CPU device."""

from typing import Any

lookup: Any
explain: Any

def configure(model: str, devices: int) -> None: ...
def models() -> tuple[tuple[str, str, tuple[int, int], int, int], ...]: ...
def symbols() -> tuple[str, ...]: ...
