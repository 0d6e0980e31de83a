"""``kernel[grid, block, stream](*arguments)``: what :meth:`cupola.Kernel.__getitem__` returns.

Imported when a kernel is first launched in this way.
"""

from __future__ import annotations

from functools import partial

from cupola.core.device._stream import stream_in_force
from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cupola.core.program._kernel import Kernel

_FORM = "kernel[grid, block](...), kernel[grid, block, stream](...) or kernel[grid, block, stream, shared_bytes](...)"


def launcher_of(kernel: Kernel, key: Any) -> Callable[..., None]:
    """See :meth:`cupola.Kernel.__getitem__`."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if parts and isinstance(parts[0], LaunchConfig):
        config = parts.pop(0)
        most = 1
    elif 2 <= len(parts) <= 4:
        grid, block = parts[:2]
        config = LaunchConfig(grid=grid, block=block, shmem_size=parts[3] if len(parts) == 4 else 0)
        parts = parts[2:3]
        most = 1
    else:
        raise TypeError(f"write {_FORM}; or a LaunchConfig in place of grid and block")
    if len(parts) > most:
        raise TypeError(f"write {_FORM}; or a LaunchConfig in place of grid and block")
    stream, _ = stream_in_force(parts[0] if parts else None)
    return partial(launch, stream, config, kernel)
