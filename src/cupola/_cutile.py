"""cuTile on the CPU device: tiles are loaded and stored without tensor maps.

For compute capability 9.0 cuTile's compiler makes loads and stores of tiles copies by the hardware (TMA), whose tensor
maps NVIDIA's driver makes at each launch, by code for the host inside the cubin, which the CPU device cannot run. A
program may forbid that for each of them (``allow_tma=False``); this forbids it for all.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of cuTile.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from cupola._after_import import after_import

MODULE = "cuda.tile._ir2bytecode"


def install() -> None:
    """Have cuTile's compiler do without tensor maps in this process and those that it starts with cupola."""
    after_import(MODULE, _change)


def _change(module: ModuleType) -> None:
    context = getattr(module, "BytecodeContext", None)
    plain = getattr(context, "load_store_hints", None)
    if context is None or plain is None:  # kernels with tensor maps are then refused, with what to do
        return

    def load_store_hints(self: Any, latency: Any, allow_tma: Any) -> Any:
        return plain(self, latency, False)

    context.load_store_hints = load_store_hints
