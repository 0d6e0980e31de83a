"""The emulated CUDA driver of the CPU device."""

from typing import Any

lookup: Any
exported: Any
runtime_lookup: Any
explain: Any
CUDA_VERSION: int  # of the headers that the driver is made after: 1000 * major + 10 * minor

def configure(model: str, devices: int) -> None: ...
def models() -> tuple[tuple[str, str, tuple[int, int], int, int], ...]: ...
def symbols() -> tuple[str, ...]: ...
def runtime_symbols() -> tuple[str, ...]: ...
