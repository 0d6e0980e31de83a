"""How the matrices of a warp are spread over its registers (PTX ISA 9.7.14, "Warp Level Matrix Instructions").

One picture describes the fragments of nearly all matrix instructions. A register of all lanes is an 8 by 4 array of
words (of 32 bits; of 64 for f64): lane ``4 * g + t`` holds word ``t`` of line ``g``. The lines of multiplicand A are
rows, those of B columns, and the words of a line hold its elements along K, the first one in the low bits. So a
register is a *tile* of 8 lines by 16 bytes, and a fragment is a grid of such tiles: first the tiles that lie beside
each other along the lines (rows 0 to 7, rows 8 to 15), then those with the next elements along K for A, the other
way round for B. An accumulator of words is a tile of 8 by 8 elements in two registers, the even columns and the odd
ones; one of f16 has both in one register. The fragments of ``wmma``, whose layout the ISA leaves open, are the same
tiles. The exception is ``mma.m8n8k4`` on f16, four small products in one warp (see matrix.py).

What the modeled GPU (sm_90) has is listed here as ``shape  d.a.b.c ...``, where ``{x|y}`` stands for either.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product

from cupola.cpu.compiler.records import dataclass

ELEMENT_BITS = {
    **dict.fromkeys(("f64",), 64),
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("u8", "s8", "e4m3", "e5m2"), 8),
    **dict.fromkeys(("u4", "s4"), 4),
    "b1": 1,
}

_MMA = """
m8n8k4    f64.f64.f64.f64 f16.f16.f16.f16 f32.f16.f16.{f16|f32}
m16n8k4   f32.tf32.tf32.f32 f64.f64.f64.f64
m16n8k8   f16.f16.f16.f16 f32.f16.f16.f32 f32.bf16.bf16.f32 f32.tf32.tf32.f32 f64.f64.f64.f64
m16n8k16  f16.f16.f16.f16 f32.f16.f16.f32 f32.bf16.bf16.f32 f64.f64.f64.f64
m16n8k16  s32.{u8|s8}.{u8|s8}.s32 f16.{e4m3|e5m2}.{e4m3|e5m2}.f16 f32.{e4m3|e5m2}.{e4m3|e5m2}.f32
m16n8k32  s32.{u8|s8}.{u8|s8}.s32 f16.{e4m3|e5m2}.{e4m3|e5m2}.f16 f32.{e4m3|e5m2}.{e4m3|e5m2}.f32
m16n8k32  s32.{u4|s4}.{u4|s4}.s32
m8n8k16   s32.{u8|s8}.{u8|s8}.s32
m8n8k32   s32.{u4|s4}.{u4|s4}.s32
m16n8k64  s32.{u4|s4}.{u4|s4}.s32
m8n8k128  s32.b1.b1.s32
m16n8k128 s32.b1.b1.s32
m16n8k256 s32.b1.b1.s32
"""

_SPARSE = """
m16n8k8   f32.tf32.tf32.f32
m16n8k16  f16.f16.f16.f16 f32.f16.f16.f32 f32.bf16.bf16.f32 f32.tf32.tf32.f32
m16n8k32  f16.f16.f16.f16 f32.f16.f16.f32 f32.bf16.bf16.f32 s32.{u8|s8}.{u8|s8}.s32
m16n8k64  s32.{u8|s8}.{u8|s8}.s32 s32.{u4|s4}.{u4|s4}.s32
m16n8k64  f32.{e4m3|e5m2}.{e4m3|e5m2}.f32
m16n8k128 s32.{u4|s4}.{u4|s4}.s32
"""

_WMMA = """
m16n16k16 {f16|f32}.f16.f16.{f16|f32} f32.bf16.bf16.f32 s32.u8.u8.s32 s32.s8.s8.s32
m8n32k16  {f16|f32}.f16.f16.{f16|f32} f32.bf16.bf16.f32 s32.u8.u8.s32 s32.s8.s8.s32
m32n8k16  {f16|f32}.f16.f16.{f16|f32} f32.bf16.bf16.f32 s32.u8.u8.s32 s32.s8.s8.s32
m16n16k8  f32.tf32.tf32.f32
m8n8k4    f64.f64.f64.f64
m8n8k32   s32.u4.u4.s32 s32.s4.s4.s32
m8n8k128  s32.b1.b1.s32
"""


@cache
def products(kind: str) -> dict[str, frozenset[tuple[str, ...]]]:
    """By shape, the types (d, a, b, c) that an instruction ("mma", "sparse", "wmma") multiplies."""
    found: dict[str, frozenset[tuple[str, ...]]] = {}
    for line in {"mma": _MMA, "sparse": _SPARSE, "wmma": _WMMA}[kind].strip().splitlines():
        shape, *choices = line.split()
        types = {t for choice in choices for t in product(*(p.strip("{}").split("|") for p in choice.split(".")))}
        found[shape] = found.get(shape, frozenset()) | types
    return found


@dataclass(frozen=True, slots=True)
class Fragment:
    """The tiles of one matrix in registers.

    Attributes
    ----------
    type
        Of the elements.
    lines, across
        Tiles in the direction of the lines (rows; columns for B), and along them.
    lines_first
        Whether registers count through the tiles of one ``across`` first.
    registers
        How many there are. ``wmma`` has more than hold the matrix for f16; the others repeat these.
    pairs
        Whether each tile takes two registers (accumulators of words).
    """

    type: str
    lines: int
    across: int
    lines_first: bool
    registers: int
    pairs: bool = False

    @property
    def word_bits(self) -> int:
        return 64 if self.type == "f64" else 32

    @property
    def distinct(self) -> int:
        """The registers that are not repetitions."""
        return self.lines * self.across * (2 if self.pairs else 1)

    def tile(self, line: int, across: int) -> int:
        """The number of a tile: its register, or with ``pairs`` half of the even one."""
        return across * self.lines + line if self.lines_first else line * self.across + across


@dataclass(frozen=True, slots=True)
class Product:
    """One matrix instruction: its shape, and the types of D, A, B, and C."""

    shape: str
    types: tuple[str, ...]
    sparse: bool = False
    is_wmma: bool = False

    @property
    def size(self) -> tuple[int, int, int]:
        """M, N, K."""
        m, n, k = map(int, re.findall(r"\d+", self.shape))
        return m, n, k

    def type(self, role: str) -> str:
        """The element type of the matrix ``a``, ``b``, ``c`` or ``d``."""
        return self.types["dabc".index(role)]

    @property
    def is_quad(self) -> bool:
        """Whether this is ``mma.m8n8k4`` on f16."""
        return self.shape == "m8n8k4" and self.type("a") == "f16"

    def fragment(self, role: str) -> Fragment:
        """The fragment of the matrix ``a``, ``b``, ``c`` or ``d``."""
        m, n, k = self.size
        type = self.type(role)
        if role in "cd":
            pairs = type != "f16"
            tiles = m // 8 * (n // 8)
            return Fragment(type, m // 8, n // 8, True, tiles * (2 if pairs else 1), pairs)
        bits = ELEMENT_BITS[type]
        held = k // 2 if role == "a" and self.sparse else k
        across = held * bits // (256 if type == "f64" else 128)
        lines = (m if role == "a" else n) // 8
        registers = 8 if self.is_wmma and type == "f16" else lines * across
        return Fragment(type, lines, across, role == "a", registers)

    def registers(self, role: str) -> int:
        """How many registers a fragment has."""
        if self.is_quad:
            return 2 if role in "ab" else 4 if self.type(role) == "f16" else 8
        return self.fragment(role).registers
