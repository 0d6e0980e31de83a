"""Numbers with the word for what they count: one block, two blocks."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """So many of something, as in ``1 block`` and ``1,024 blocks``.

    Parameters
    ----------
    number
        How many.
    one
        The word for one.
    several
        That for more, or for none; empty for `one` with an ``s``.
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
