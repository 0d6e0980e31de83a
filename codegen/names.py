"""What things are called in Python.

Modules whose functions return a tuple keep C's names. Modules whose functions raise drop the library's prefix, write
functions, parameters and fields in snake_case, and have no classes for handles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from .libraries import Library

# Parameters that would hide a keyword or a builtin function.
_RENAMED = {
    "type": "typename",
    "from": "from_",
    "input": "input_",
    "bytes": "numbytes",
    "len": "length",
    "format": "pformat",
}


def snake(name: str) -> str:
    """``GetLinkedLTOIRSize`` -> ``get_linked_ltoir_size``."""
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)
    return re.sub(r"(?<=[A-Z])([A-Z][a-z])", r"_\1", name).lower()


@dataclass(frozen=True)
class Names:
    """The Python names of one library."""

    library: Library

    @property
    def raising(self) -> bool:
        return bool(self.library.error)

    @cached_property
    def _exceptions(self) -> dict[str, str]:
        exceptions: dict[str, str] = self.library.overrides().get("names", {})
        return exceptions

    def function(self, name: str) -> str:
        return snake(self._exceptions.get(name, name).removeprefix(self.library.prefix)) if self.raising else name

    def parameter(self, name: str) -> str:
        return snake(self._exceptions.get(name, name)) if self.raising else _RENAMED.get(name, name)

    def type(self, name: str) -> str:
        """The class of an enumeration or a record."""
        if not self.raising:
            return name
        stripped = self._exceptions.get(name, name).removeprefix(self.library.prefix)
        return stripped.removesuffix("_t")

    def member(self, name: str) -> str:
        """The member of an enumeration."""
        fits = [prefix for prefix in self.library.members if name.startswith(prefix)]
        return name.removeprefix(fits[0]) if fits else name
