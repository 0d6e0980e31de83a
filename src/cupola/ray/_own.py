"""The device of this actor, for threads of Ray, which has given them none."""

from __future__ import annotations

from cupola.core.device._device import Device

_known: list[Device] = []


def keep(device: Device) -> None:
    """This is what `cupola.ray.device` has found."""
    _known[:] = [device]


def make_current() -> None:
    """Make it the current device of the thread; device 0, if the actor has not asked yet."""
    (_known[0] if _known else Device()).set_current()
