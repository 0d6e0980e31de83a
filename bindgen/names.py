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


_KEYWORDS = frozenset(["from", "in", "is", "default", "class"])
_OF_ARRAYS = frozenset(["base", "data", "device", "flags", "max", "min", "size"])  # attributes of NumPy's arrays


def snake(name: str) -> str:
    """``GetLinkedLTOIRSize`` -> ``get_linked_ltoir_size``, ``GetP2PStatus`` -> ``get_p2p_status``."""
    words = r"(?<=[a-z])(?=[A-Z])|(?<=[a-z0-9]\d)(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return re.sub(words, "_", name).lower()


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

    @cached_property
    def _words(self) -> dict[str, str]:
        words: dict[str, str] = self.library.overrides().get("words", {})
        return words

    def function(self, name: str) -> str:
        if not self.raising:
            return name
        python = self._exceptions.get(name)
        if python is None:
            python = name
            for word, written in self._words.items():
                python = python.replace(word, written)
        return snake(python.removeprefix(self.library.prefix))

    def parameter(self, name: str) -> str:
        return snake(self._exceptions.get(name, name)) if self.raising else _RENAMED.get(name, name)

    def type(self, name: str) -> str:
        """The class of an enumeration or a record."""
        if not self.raising:
            return name
        name = re.sub(rf"^{self.library.prefix}", "", self._exceptions.get(name, name), flags=re.I)
        return name.removesuffix("_t")

    def dtype(self, name: str) -> str:
        """The NumPy type of a record."""
        return f"{snake(self.type(name))}_dtype"

    def field(self, name: str) -> str:
        """A field of a record; keywords get an underscore, and where functions raise, names that arrays have, too."""
        name = snake(self._exceptions.get(name, name)) if self.raising else name
        taken = _KEYWORDS | _OF_ARRAYS if self.raising else _KEYWORDS
        return f"{name}_" if name in taken else name

    def member(self, name: str, enum: str = "") -> str:
        """The name of a member of an enumeration. NVML's ClockId drops ``CLOCK_ID_``, too."""
        prefixes = [prefix for prefix in self.library.members if name.startswith(prefix)]
        fits = [prefix for prefix in prefixes if name.removeprefix(prefix).isidentifier()]  # CURAND_3RD stays
        name = name.removeprefix(fits[0]) if fits else name
        if not self.raising or not enum:
            return name
        words = f"{snake(self.type(enum)).upper()}_"
        return name.removeprefix(words) if name.removeprefix(words).isidentifier() else name
