"""The checks of the CPU device by their names; imported early, so it knows nothing else."""

from __future__ import annotations

CHECKS = {
    "race": "accesses to shared and global memory that nothing orders",
    "init": "reads of memory that nobody has written since it was allocated",
    "sync": "barriers and warp operations that not all named threads take part in",
    "memory": "accesses outside of what is allocated, and all else that ends kernels",
    "leak": "memory that is allocated when the program ends",
}
"""All checks, with what each finds."""

INSTRUMENTS = ("race", "init", "sync")
"""Those for which kernels are compiled anew, with the instrument of the same name."""

RACE, INIT, SYNC, MEMORY, LEAK = (1 << place for place in range(5))
"""``enum cpu_check`` of the engine and the driver, in the order of `CHECKS`."""


def bits_of(names: tuple[str, ...]) -> int:
    """The checks among some names, as the driver numbers them."""
    return sum(1 << place for place, name in enumerate(CHECKS) if name in names)


def parse(text: str) -> tuple[str, ...]:
    """The names in a text such as ``"race,init"``, in the order of `CHECKS`.

    Raises
    ------
    ValueError
        For a name that is none, with those that there are.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if "all" in names:
        return tuple(CHECKS)
    for name in names:
        if name not in CHECKS:
            raise ValueError(f"there is no check {name!r}: there are {', '.join(CHECKS)}, or all")
    if not names:
        raise ValueError(f"name a check: {', '.join(CHECKS)}, or all")
    return tuple(name for name in CHECKS if name in names)
