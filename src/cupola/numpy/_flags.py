"""How the elements of an array lie in memory."""

from __future__ import annotations

from typing import Any

_KEYS = {
    "C_CONTIGUOUS": "c_contiguous", "C": "c_contiguous", "CONTIGUOUS": "c_contiguous", "F_CONTIGUOUS": "f_contiguous",
    "F": "f_contiguous", "FORTRAN": "f_contiguous", "OWNDATA": "owndata", "O": "owndata", "FNC": "fnc", "FORC": "forc",
    "WRITEABLE": "writeable", "W": "writeable", "ALIGNED": "aligned", "A": "aligned", "WRITEBACKIFCOPY":
    "writebackifcopy", "X": "writebackifcopy", "BEHAVED": "behaved", "B": "behaved", "CARRAY": "carray", "CA": "carray",
    "FARRAY": "farray", "FA": "farray",
}  # fmt: skip


class Flags:
    """What ``x.flags`` gives: as ``numpy.ndarray.flags``, which can be read and not set.

    Parameters
    ----------
    array : ndarray
        Which.
    """

    aligned = True
    writeable = True
    writebackifcopy = False

    def __init__(self, array: Any) -> None:
        self.c_contiguous = bool(array.is_contiguous)
        self.f_contiguous = bool(array.transpose().is_contiguous)
        memory = array._memory()
        self.owndata = memory.owner is None and array.nbytes == memory.size

    @property
    def contiguous(self) -> bool:
        """bool: row-major."""
        return self.c_contiguous

    @property
    def fortran(self) -> bool:
        """bool: column-major and not row-major."""
        return self.fnc

    @property
    def fnc(self) -> bool:
        """bool: column-major and not row-major."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """bool: row-major or column-major."""
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self) -> bool:
        """bool: aligned and writeable."""
        return self.writeable

    @property
    def carray(self) -> bool:
        """bool: row-major and writeable."""
        return self.c_contiguous and self.writeable

    @property
    def farray(self) -> bool:
        """bool: column-major, not row-major, and writeable."""
        return self.fnc and self.writeable

    def __getitem__(self, name: str) -> bool:
        if name not in _KEYS:
            raise KeyError(f"{name} is not among the flags of an array: {', '.join(_KEYS)}")
        return bool(getattr(self, _KEYS[name]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")
        return "\n".join(f"  {name} : {self[name]}" for name in names)
