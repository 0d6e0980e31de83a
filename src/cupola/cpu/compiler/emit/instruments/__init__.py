"""Code that observes: what an *instrument* writes into the body of a kernel, beside the kernel's own instructions.

A process switches instruments on and off by name (`cupola.cpu._instruments`). The set of names belongs to the key of a
body in the cache, and each launch uses code with the instruments that are on when it is queued: switching one on later
compiles new bodies. Without any, not a byte of the code is different, and nothing is tested at run time.

To add an instrument

1. write a class in a module of this room, derived from `instrument.Instrument`; its docstring has the places at which
   the emitter calls it, and what it may write there;
2. give it a name: a row here, at the end, since the place of a name is the bit that the driver knows it by; and in
   `emit/bodies.py` the class;
3. if it calls helpers in C (``cupola_...``), they are ``CPU_HELPER``s in ``engine/instruments``.

This module itself knows only the names, because whoever loads code from the cache does not import the emitter.
"""

from __future__ import annotations

NAMES = ("blocks", "race", "init", "sync", "counters", "debug")
"""All instruments; the bit of each in the driver's set is that of its place here."""


OF_ANY_WIDTH = frozenset(["race", "init", "sync"])
"""Those for which units may have less than 32 threads, and one call of a body may run all units of a block."""


def set_of(names: tuple[str, ...]) -> int:
    """The set that the driver keeps, for some names."""
    if unknown := set(names) - set(NAMES):
        raise ValueError(f"there is no instrument {sorted(unknown)[0]!r}: there are {', '.join(NAMES)}")
    return sum({1 << NAMES.index(name) for name in names})


def names_of(bits: int) -> tuple[str, ...]:
    """The names of a set, in the order of `NAMES`."""
    return tuple(name for place, name in enumerate(NAMES) if bits >> place & 1)
