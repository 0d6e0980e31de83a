"""The options that choose a device, of the commands and of the pytest plugin, which starts with every pytest."""

from __future__ import annotations

from collections.abc import Callable


def add_device(
    add: Callable[..., object],
    prefix: str = "--",
    *,
    choices: tuple[str, ...] = ("auto", "cpu", "gpu"),
    where: str = "where to run (default: CUPOLA_DEVICE, or auto)",
    several: bool = True,
) -> None:
    """Which device: ``--device``, ``--model`` and, if there may be several of them, ``--devices``.

    Parameters
    ----------
    add
        ``add_argument`` of a parser, or what a group of pytest's options has for it.
    prefix
        What the names begin with.
    choices
        What the device may be; none for a command of the CPU device only.
    where
        What is said of the choice.
    several
        Whether there may be several devices.
    """
    if choices:
        add(f"{prefix}device", choices=choices, help=where)
    add(f"{prefix}model", metavar="NAME", help="the GPU that the CPU device models, such as h200 or t4")
    if several:
        add(f"{prefix}devices", metavar="N", type=int, help="how many of them")
