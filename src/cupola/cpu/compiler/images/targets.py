"""For which GPUs code is: PTX says so by ``.target``, and a cubin in its ELF header and its section ``.nv.compat``.

PTX runs on its target and on all newer GPUs; a cubin on GPUs of the same major number whose minor number is not lower.
What is limited to one GPU (suffix ``a``) runs on that one only, and PTX for a family (``f``) on the newer ones of the
same major number, as any cubin does.
"""

from __future__ import annotations

import re
import struct

from cupola.cpu.compiler.images import elf
from cupola.cpu.compiler.records import dataclass

_TARGET = re.compile(rb"\.target\s+(?:sm|compute)_(\d+)([af]?)")


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU that code is for.

    Attributes
    ----------
    number
        90 for sm_90.
    suffix
        ``"a"`` for that GPU only, ``"f"`` for its family, or empty.
    """

    number: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    def runs_as_ptx(self, architecture: int) -> bool:
        """Whether PTX for this target can be compiled for a GPU."""
        return self.runs_as_cubin(architecture) if self.suffix else self.number <= architecture

    def runs_as_cubin(self, architecture: int) -> bool:
        """Whether a GPU runs machine code for this target."""
        if self.suffix == "a":
            return self.number == architecture
        return self.number // 10 == architecture // 10 and self.number <= architecture


def of_ptx(text: bytes) -> Target | None:
    """The target of PTX; None if it names none, of which the compiler says what is wrong."""
    match = _TARGET.search(text)
    return Target(int(match[1]), match[2].decode()) if match else None


# In the ELF header of a cubin: the version of the ABI, and flags. Up to 7 (CUDA 12) the lowest byte of the flags is the
# architecture, and one of the others says that it is limited to that. In 8 the architecture is the second byte. There
# CUDA 12.9 has a bit for the limit; later compilers have it in .nv.compat, whose entries are those of .nv.info: a
# format, an attribute, and two bytes of value, or of size if bytes follow.
_ABI_AT, _FLAGS_AT = 8, 48
_LIMITED_7, _LIMITED_8 = 0x800, 0x8
_FORMAT_SIZED = 4
_ISA_CLASS = 9


def of_cubin(image: bytes) -> Target | None:
    """The target of a cubin; None if it does not tell, or its headers lead out of the image."""
    try:
        (flags,) = struct.unpack_from("<I", image, _FLAGS_AT)
        if image[_ABI_AT] < 8:
            number, limited = flags & 0xFF, bool(flags & _LIMITED_7)
        else:
            number, limited = flags >> 8 & 0xFF, bool(flags & _LIMITED_8)
            limited = limited or b".nv.compat" in image and _isa_class(elf.sections(image)[b".nv.compat"]) == 1
    except (struct.error, ValueError, LookupError):
        return None
    return Target(number, "a" if limited else "") if number else None


def cubin_flags(target: Target) -> int:
    """The flags in the ELF header of a cubin of an ABI up to 7."""
    return target.number | (_LIMITED_7 if target.suffix == "a" else 0)


def _isa_class(entries: bytes) -> int:
    at = 0
    while at + 4 <= len(entries):
        form, attribute, value = struct.unpack_from("<BBH", entries, at)
        if attribute == _ISA_CLASS:
            return int(value)
        at += 4 + (value if form == _FORMAT_SIZED else 0)
    return 0
