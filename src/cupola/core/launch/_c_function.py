"""Checks whether an address can be that of a C function (proc(5), /proc/pid/maps)."""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from cupola.bindings.driver import CUoccupancyB2DSize

_MAPS = Path("/proc/self/maps")
_POINTER = 8  # bytes


def address_of(callback: CUoccupancyB2DSize) -> int:
    """The address of the function that a handle of the bindings names; 0 for none.

    Raises
    ------
    ValueError
        The memory in which the address is stored cannot be read, or there is no code at the address.
    """
    regions, kind = _regions(), type(callback).__name__
    place = callback.getPtr()
    if regions is not None and not any(a <= place <= b - _POINTER and "r" in m for a, b, m in regions):
        raise ValueError(
            f"{kind}(_ptr={place:#x}): there is no memory at that address. _ptr is where the address of the function "
            "is stored, such as ctypes.addressof(function)"
        )
    address = int(callback)
    if address == 0 or regions is None or any(a <= address < b and "x" in mode for a, b, mode in regions):
        return address
    raise ValueError(
        f"{address:#x} is not the address of a function. Give {kind}(_ptr=ctypes.addressof(function)), "
        f"or the address itself, {kind}(ctypes.cast(function, ctypes.c_void_p).value)"
    )


def _regions() -> list[tuple[int, int, str]] | None:
    """Start, end and permissions of all memory of the process; None if the system does not report them."""
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return None
    found = []
    for line in lines:
        addresses, mode = line.split(maxsplit=2)[:2]
        start, _, end = addresses.partition("-")
        found.append((int(start, 16), int(end, 16), mode))
    return found
