"""The compiler's dataclasses: those that are frozen are so for type checkers, and not at run time.

Reading PTX and writing LLVM IR make many thousands of small objects that nobody changes. A frozen dataclass takes twice
as long to make an object, and to be defined. So here ``frozen=True`` gives a class a hash by value, as ever, and that
its fields are not assigned is left to mypy and pyright.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(cls=None, /, *, frozen=False, **options):
        """``dataclasses.dataclass``, see above."""
        return dataclasses.dataclass(cls, unsafe_hash=frozen, **options)
