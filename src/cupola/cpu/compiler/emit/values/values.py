"""What the emitter holds in its hands: one SSA value for all lanes of a warp.

A *uniform* value is one scalar that every lane shares, a *varying* one is an LLVM vector with an element for
each lane. An *affine* value is a varying one with a known form: lane ``i`` holds ``base + i * stride``,
with ``base`` a scalar and ``stride`` a constant, so an affine address is one contiguous access. Arithmetic in
the value's own width keeps that true modulo 2**n whatever wraps; it stops being true when a value whose lanes
wrapped is extended to a wider type. ``exact`` says at run time that this did not happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.records import dataclass

if TYPE_CHECKING:
    from .patterns import Pattern

BITS = {
    "i1": 1,
    "i8": 8,
    "i16": 16,
    "i32": 32,
    "i64": 64,
    "i128": 128,
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
}
"""Width in bits of each LLVM scalar type in use."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the lanes of an affine value may have left the line: a narrow affine value that was widened.

    Lane ``i`` holds ``base + i * (stride - scale * step) + scale * (wide(narrow + i * step) - wide(narrow))``, whether
    the narrow lanes wrapped or not. ``narrow`` is lane 0 of the narrow value, an LLVM operand of ``type``;
    ``signed`` tells how it was widened.
    """

    narrow: str
    type: str
    step: int
    scale: int
    signed: bool


@dataclass(frozen=True, slots=True)
class Affine:
    """Lane ``i`` holds ``base + i * stride`` modulo the width of the type, provided that ``exact`` is true.

    ``base`` and ``exact`` are LLVM operands: a scalar of the value's type, and an i1. When it is known how the lanes
    come off the line if ``exact`` is false, ``origin`` says so. ``whole`` says that ``base`` is a multiple of the
    number of lanes, and the stride 1.
    """

    base: str
    stride: int
    exact: str = "true"
    origin: Origin | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """An LLVM operand (a temporary or a constant), the type of one lane, and how it depends on the lane.

    ``raw_nan`` marks an f32 result in which a NaN may still have the host's bits; see :mod:`.nans`. ``pattern`` is
    there when it is known by which constants the lanes differ; see :mod:`.patterns`.
    """

    ir: str
    type: str
    vector: bool = False
    affine: Affine | None = None
    raw_nan: bool = False
    pattern: Pattern | None = None

    @property
    def uniform(self) -> bool:
        return not self.vector

    @property
    def is_constant(self) -> bool:
        """True for a literal: a uniform value that is not a temporary."""
        return not self.vector and not self.ir.startswith("%")

    @property
    def integer(self) -> int | None:
        """The signed value of an integer literal, otherwise None."""
        if self.vector or self.type not in BITS or self.type[0] != "i":
            return None
        if self.ir in ("true", "false"):
            return int(self.ir == "true")
        try:
            return int(self.ir)
        except ValueError:
            return None

    def line(self) -> Affine | None:
        """The value as a line over the lanes: uniform values have stride 0; None when it is just varying."""
        return self.affine if self.vector else Affine(self.ir, 0)


def signed(value: int, bits: int) -> int:
    """``value`` modulo 2**bits as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
