"""Which other devices may access the memory of a device's pool, as a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet

from cupola.core.device._device import Device

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.memory._device_memory import DeviceMemoryResource


class PeerAccessibleBySetProxy(MutableSet[Device]):
    """The devices with read and write access to the memory of a pool, beside its own (``cuMemPoolSetAccess``).

    A live set: reading asks the driver, and each change is one call of it, for all allocations of the pool, past and
    future. Devices may be given by their ordinals. The pool's own device is ignored wherever it is given.
    """

    __slots__ = ("_resource",)

    def __init__(self, resource: DeviceMemoryResource) -> None:
        self._resource = resource

    # --- reading --------------------------------------------------------------------------------------

    def __contains__(self, device: object) -> bool:
        try:
            number = Device(device).device_id  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False
        return number in self._numbers()

    def __iter__(self) -> Iterator[Device]:
        return iter([Device(number) for number in sorted(self._numbers())])

    def __len__(self) -> int:
        return len(self._numbers())

    def __repr__(self) -> str:
        return f"PeerAccessibleBySetProxy({set(self)!r})" if self else "PeerAccessibleBySetProxy(set())"

    @classmethod
    def _from_iterable(cls, devices: Iterable[Any]) -> Any:
        return set(devices)  # of the operators | & - ^

    def _numbers(self) -> set[int]:
        if self._resource.is_closed:
            raise RuntimeError(f"{type(self._resource).__name__} has been closed")
        return {
            number
            for number in range(len(Device.get_all_devices()))
            if number != self._resource.device_id and self._resource._has_access(number)
        }

    # --- changing -------------------------------------------------------------------------------------

    def add(self, device: Device | int) -> None:
        """Give a device access.

        Parameters
        ----------
        device : Device or int
            The device or its ordinal.

        Raises
        ------
        ValueError
            When it cannot reach the memory, or there is no such device.
        """
        self.update([device])

    def discard(self, device: object) -> None:
        """Revoke the access of a device, if it has any.

        Parameters
        ----------
        device : Device or int
            The device or its ordinal.
        """
        self.difference_update([device])

    def clear(self) -> None:
        """Revoke the access of all devices."""
        self._change(set())

    def update(self, *others: Iterable[Device | int]) -> None:
        """Give all these devices access.

        Parameters
        ----------
        *others : iterables of Device or int
            Devices or their ordinals.

        Raises
        ------
        ValueError
            When a device cannot reach the memory, or does not exist. Access then does not change.
        """
        self._change(self._numbers().union(*map(self._valid, others)))

    def difference_update(self, *others: Iterable[object]) -> None:
        """Revoke the access of all these devices; other objects are ignored.

        Parameters
        ----------
        *others : iterables of Device or int
            Devices or their ordinals.
        """
        self._change(self._numbers().difference(*map(self._known, others)))

    def intersection_update(self, *others: Iterable[object]) -> None:
        """Keep access only for devices that are in all of `others`.

        Parameters
        ----------
        *others : iterables of Device or int
            Devices or their ordinals.
        """
        self._change(self._numbers().intersection(*map(self._known, others)))

    def symmetric_difference_update(self, other: Iterable[Device | int]) -> None:
        """Give access to the devices that do not have it, and revoke it from those that do.

        Parameters
        ----------
        other : iterable of Device or int
            Devices or their ordinals.
        """
        self._change(self._numbers() ^ self._valid(other))

    def __ior__(self, other: Iterable[Any]) -> PeerAccessibleBySetProxy:  # type: ignore[misc]
        self.update(other)
        return self

    def __isub__(self, other: Iterable[Any]) -> PeerAccessibleBySetProxy:
        self.difference_update(other)
        return self

    def __iand__(self, other: Iterable[Any]) -> PeerAccessibleBySetProxy:
        self.intersection_update(other)
        return self

    def __ixor__(self, other: Iterable[Any]) -> PeerAccessibleBySetProxy:  # type: ignore[misc]
        self.symmetric_difference_update(other)
        return self

    def _replace(self, devices: Iterable[Device | int]) -> None:
        self._change(self._valid(devices))

    def _change(self, wanted: set[int]) -> None:
        present = self._numbers()
        added, removed = wanted - present, present - wanted
        owner = self._resource.device_id
        unable = [number for number in sorted(added) if not Device(number).can_access_peer(owner)]
        if unable:
            raise ValueError(f"Device {owner} cannot access peer: {', '.join(map(str, unable))}")
        if added or removed:
            self._resource._change_access(sorted(added), sorted(removed))

    def _valid(self, devices: Iterable[Device | int]) -> set[int]:
        return {Device(device).device_id for device in devices} - {self._resource.device_id}

    def _known(self, devices: Iterable[object]) -> set[int]:
        numbers = self._numbers()
        return {int(device) for device in devices if isinstance(device, Device | int) and int(device) in numbers}
