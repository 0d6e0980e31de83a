"""The processors for which managed memory stays mapped, as a set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet

from cupola.core.device._device import Device
from cupola.core.memory import _migration
from cupola.core.memory._host import Host

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.memory._buffer import Buffer


class AccessedBySetProxy(MutableSet[Device | Host]):
    """The devices, and ``Host()``, for which a piece of managed memory stays mapped (``cuMemAdvise``).

    A live set: reading asks the driver, and a change is advice to it.
    """

    __slots__ = ("_buffer",)

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    def __contains__(self, place: object) -> bool:
        return place in _migration.accessed_by(self._buffer)

    def __iter__(self) -> Iterator[Device | Host]:
        return iter(_migration.accessed_by(self._buffer))

    def __len__(self) -> int:
        return len(_migration.accessed_by(self._buffer))

    def __repr__(self) -> str:
        return f"AccessedBySetProxy({_migration.accessed_by(self._buffer)!r})"

    @classmethod
    def _from_iterable(cls, places: Iterable[Any]) -> Any:
        return set(places)  # of the operators | & - ^

    def add(self, place: Device | Host) -> None:
        """Keep the memory mapped for a place.

        Parameters
        ----------
        place : Device or Host
            A device, or ``Host()``.

        Raises
        ------
        TypeError
            When it is something else.
        ValueError
            When it is a NUMA node of the host: only the whole host can be named.
        """
        _migration.set_accessed_by(self._buffer, _checked(place), True)

    def discard(self, place: object) -> None:
        """Withdraw the advice for the place, if there is any.

        Parameters
        ----------
        place : Device or Host
            Anything else is ignored.
        """
        if isinstance(place, Device | Host) and place in self:
            _migration.set_accessed_by(self._buffer, place, False)

    def _replace(self, places: Iterable[Device | Host]) -> None:
        wanted = {_checked(place) for place in places}
        present = _migration.accessed_by(self._buffer)
        for place in present - wanted:
            _migration.set_accessed_by(self._buffer, place, False)
        for place in wanted - present:
            _migration.set_accessed_by(self._buffer, place, True)


def _checked(place: object) -> Device | Host:
    if not isinstance(place, Device | Host):
        raise TypeError(f"accessed_by takes a Device or Host(), got {type(place).__name__}")
    if isinstance(place, Host) and place is not Host():
        raise ValueError(f"accessed_by knows the host as a whole only: pass Host(), not {place!r}")
    return place
