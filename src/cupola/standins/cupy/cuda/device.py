"""Devices with CuPy's interface."""

from __future__ import annotations

from typing import Any

import cupola
from cupola.bindings import runtime as _native
from cupola.standins.cupy.cuda import _state, runtime


class Device:
    """A device; current within its ``with`` block, or after :meth:`use`.

    Parameters
    ----------
    device : int or Device, optional
        Its number; the current one by default.
    """

    def __init__(self, device: Any = None) -> None:
        self.id = _state.device_id() if device is None else int(device)
        self._before: list[int] = []

    def use(self) -> Device:
        """Make it the current device of the thread."""
        self._known().set_current()
        _state.apply()
        return self

    def _known(self) -> cupola.Device:
        """The device; a CUDARuntimeError if there is none of that number."""
        if not 0 <= self.id < runtime.getDeviceCount():
            raise runtime.CUDARuntimeError(101)
        return cupola.Device(self.id)

    def __enter__(self) -> Device:
        before = _state.device_id()
        self.use()
        self._before.append(before)
        return self

    def __exit__(self, *exception: object) -> None:
        Device(self._before.pop()).use()

    def synchronize(self) -> None:
        """Wait for all its work."""
        _state.may_wait()
        with self:
            runtime.deviceSynchronize()

    @property
    def compute_capability(self) -> str:
        """str: such as ``"90"``."""
        major, minor = self._known().compute_capability
        return f"{major}{minor}"

    @property
    def mem_info(self) -> tuple[int, int]:
        """tuple of (int, int): bytes that are free, and all of them."""
        with self:
            found: tuple[int, int] = runtime.memGetInfo()
        return found

    @property
    def pci_bus_id(self) -> str:
        """str: its address on the bus."""
        return runtime.deviceGetPCIBusId(self.id)

    @property
    def attributes(self) -> dict[str, int]:
        """dict: the attributes by their names in ``cudaDeviceAttr``, without ``cudaDevAttr``."""
        self._known()
        found = {}
        for name, member in _native.cudaDeviceAttr.__members__.items():
            if name.startswith("cudaDevAttr") and "Reserved9" not in name and not name.endswith("Max"):
                status, value = _native.cudaDeviceGetAttribute(member, self.id)
                if int(status) == 0:
                    found[name.removeprefix("cudaDevAttr")] = int(value)
        return found

    @staticmethod
    def from_pci_bus_id(pci_bus_id: str) -> Device:
        """The device with an address on the bus."""
        return Device(runtime.deviceGetByPCIBusId(pci_bus_id.encode()))

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Device, cupola.Device)):
            return self.id == int(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(cupola.Device(self.id)) if 0 <= self.id < runtime.getDeviceCount() else hash(self.id)

    def __lt__(self, other: Device) -> bool:
        return self.id < other.id

    def __gt__(self, other: Device) -> bool:
        return self.id > other.id

    def __le__(self, other: Device) -> bool:
        return self.id <= other.id

    def __ge__(self, other: Device) -> bool:
        return self.id >= other.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return Device, (self.id,)

    def __getattr__(self, name: str) -> Any:
        # What cupola's devices have besides: the arrays are theirs, too.
        if name.startswith("_") or name.endswith("_handle") or not hasattr(cupola.Device, name):
            raise AttributeError(f"cupola's stand-in for CuPy has no Device.{name}")
        return getattr(self._known(), name)


def get_device_id() -> int:
    """The number of the current device."""
    return _state.device_id()


def get_compute_capability() -> str:
    """The compute capability of the current device, such as ``"90"``."""
    return Device().compute_capability
