"""Arrays from actor to actor of one machine, by CUDA's IPC."""

from __future__ import annotations

from typing import Any

from cupola import _same_host
from cupola.numpy import ndarray


class Shared:
    """An array of another actor, as a few bytes that Ray passes on like any object; made by `share`."""

    def __init__(self, offered: dict[str, Any], place: str) -> None:
        self._offered, self._place = offered, place

    @property
    def shape(self) -> tuple[int, ...]:
        """tuple of int: extents."""
        found: tuple[int, ...] = self._offered["shape"]
        return found

    def open(self, *, copy: bool = False) -> ndarray:
        """The array.

        Parameters
        ----------
        copy : bool
            Whether it has memory of its own, as it always has if it was shared by an actor with another device. If
            not, it is the memory of that actor, which stays while the array or a view of it does. On a GPU it is gone
            when that actor ends.

        Returns
        -------
        ndarray

        Raises
        ------
        ConnectionError
            When the actor that has shared it has ended, when as many as it is for have opened it, or when this is
            another machine.
        LookupError
            When this process does not see the array's device.
        """
        if self._place != _same_host.place():
            raise ConnectionError(
                "the array was shared on another machine: return arrays themselves to where they cross machines, "
                "which copies them through the host"
            )
        found: ndarray = _same_host.claim(self._offered, copy=copy)
        return found

    def __repr__(self) -> str:
        return f"<Shared {self.shape} {self._offered['dtype']}>"


def share(x: ndarray, readers: int = 1) -> Shared:
    """Keep an array for other actors of this machine, and return what they open it by.

    Parameters
    ----------
    x : ndarray
        The array. It is not copied if `device` was called before it was made, and it is in one piece; do not write it
        any more then.
    readers : int
        How many times it is opened. Behind the last time the memory is let go of, and after two minutes in which nobody
        has opened it.

    Returns
    -------
    Shared

    Raises
    ------
    RuntimeError
        When device memory cannot be shared between processes on this machine.
    ValueError
        When `readers` is less than 1.
    """
    if readers < 1:
        raise ValueError(f"readers is {readers}: somebody has to open it")
    offered = _same_host.offer(x, readers=readers, in_place=True)
    if offered is None:
        raise RuntimeError(
            "device memory cannot be shared between processes on this machine: return the arrays themselves, which "
            "copies them through the host"
        )
    return Shared(offered, _same_host.place())
