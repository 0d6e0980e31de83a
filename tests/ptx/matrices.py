"""Matrices and their fragments as the PTX ISA describes them (9.7.14), element by element, for the tests of products.

`PLACES` repeats the ISA's formulas, in which ``g`` is the group ``%laneid >> 2``, ``t`` the thread in the group
``%laneid % 4``, and ``i`` counts the elements of a thread's fragment: row and column of each in A, B, and C or D.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.ptx.oracle import BF16, F16, F32, F64, Format, signed

Matrix = list[list[int]]
"""Patterns of the elements, by row and column."""

Formula = Callable[[int, int, int], tuple[int, int]]

BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "b1": 1} | dict.fromkeys(
    ["u8", "s8", "e4m3", "e5m2"], 8
) | dict.fromkeys(["u4", "s4"], 4)  # fmt: skip


def _g8(inside: bool) -> int:
    return 0 if inside else 8


PLACES: dict[str, tuple[Formula, Formula]] = {
    "m8n8k4 64": (lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
    "m8n8k16 8": (lambda g, t, i: (g, 4 * t + i), lambda g, t, i: (4 * t + i, g)),
    "m8n8k32 4": (lambda g, t, i: (g, 8 * t + i), lambda g, t, i: (8 * t + i, g)),
    "m8n8k128 1": (lambda g, t, i: (g, 32 * t + i), lambda g, t, i: (32 * t + i, g)),
    "m16n8k4 32": (lambda g, t, i: (g + _g8(i == 0), t), lambda g, t, i: (t, g)),
    "m16n8k8 16": (lambda g, t, i: (g + _g8(i < 2), 2 * t + (i & 1)), lambda g, t, i: (2 * t + i, g)),
    "m16n8k8 32": (
        lambda g, t, i: (g + _g8(i in (0, 2)), t if i in (0, 1) else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    ),
    "m16n8k16 16": (
        lambda g, t, i: (g + _g8(0 <= i < 2 or 4 <= i < 6), 2 * t + (i & 1) + (0 if i < 4 else 8)),
        lambda g, t, i: (2 * t + (i & 1) + (0 if i < 2 else 8), g),
    ),
    "m16n8k16 64": (
        lambda g, t, i: (g + _g8(i % 2 == 0), 2 * i + t if i % 2 == 0 else 2 * i - 2 + t),
        lambda g, t, i: (t + 4 * i, g),
    ),
    "m16n8k16 8": (lambda g, t, i: (g + _g8(i < 4), 4 * t + (i & 3)), lambda g, t, i: (4 * t + i, g)),
    "m16n8k32 8": (
        lambda g, t, i: (g + _g8(0 <= i < 4 or 8 <= i < 12), 4 * t + (i & 3) + (0 if i < 8 else 16)),
        lambda g, t, i: (4 * t + (i & 3) + (0 if i < 4 else 16), g),
    ),
    "m16n8k32 4": (lambda g, t, i: (g + _g8(i < 8), 8 * t + (i & 7)), lambda g, t, i: (8 * t + i, g)),
    "m16n8k64 4": (
        lambda g, t, i: (g + _g8(0 <= i < 8 or 16 <= i < 24), 8 * t + (i & 7) + (0 if i < 16 else 32)),
        lambda g, t, i: (8 * t + (i & 7) + (0 if i < 8 else 32), g),
    ),
    "m16n8k128 1": (lambda g, t, i: (g + _g8(i < 32), 32 * t + (i & 31)), lambda g, t, i: (32 * t + i, g)),
    "m16n8k256 1": (
        lambda g, t, i: (g + _g8(0 <= i < 32 or 64 <= i < 96), 32 * t + (i & 31) + (0 if i < 64 else 128)),
        lambda g, t, i: (32 * t + (i & 31) + (0 if i < 32 else 128), g),
    ),
    # B of sparse products that is wider than that of any dense one
    "m16n8k16 32": (lambda g, t, i: (0, 0), lambda g, t, i: (t + 4 * i, g)),
    "m16n8k32 16": (lambda g, t, i: (0, 0), lambda g, t, i: (2 * t + (i & 1) + 8 * (i >> 1), g)),
    "m16n8k64 8": (lambda g, t, i: (0, 0), lambda g, t, i: (4 * t + (i & 3) + 16 * (i >> 2), g)),
    "m16n8k128 4": (lambda g, t, i: (0, 0), lambda g, t, i: (8 * t + (i & 7) + 32 * (i >> 3), g)),
}
PLACES["m16n8k4 64"] = PLACES["m16n8k4 32"]
PLACES["m16n8k8 64"] = PLACES["m16n8k8 32"]


def accumulator(g: int, t: int, i: int) -> tuple[int, int]:
    """Row and column of an element of C or D, of all shapes but m8n8k4 of f16."""
    return g + (0 if i < 2 else 8), 2 * t + (i & 1)


def quad_places(role: str, layout: str, type: str) -> Callable[[int, int], tuple[int, int]]:
    """Row and column of element ``i`` of a lane's fragment of ``mma.m8n8k4`` with f16 (9.7.14.5.1)."""

    def place(lane: int, i: int) -> tuple[int, int]:
        high = 0 if lane < 16 else 4
        if role == "a":
            return (lane % 4 + high, i) if layout == "row" else (i % 4 + high, lane % 4)
        if role == "b":
            return (lane % 4, i + high) if layout == "row" else (i, lane % 4 + high)
        if type == "f16":
            return lane % 4 + high, i
        return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)

    return place


def pack(elements: Sequence[int], type: str) -> list[int]:
    """Patterns of elements to registers, the first one in the low bits."""
    bits = BITS[type]
    per_word = max(1, 32 // bits)
    return [
        sum(pattern << (bits * at) for at, pattern in enumerate(elements[start : start + per_word]))
        for start in range(0, len(elements), per_word)
    ]


def unpack(registers: Sequence[int], type: str) -> list[int]:
    bits = BITS[type]
    return [register >> at & ((1 << bits) - 1) for register in registers for at in range(0, max(32, bits), bits)]


def distribute(
    matrix: Matrix, place: Callable[[int, int], tuple[int, int]], type: str, registers: int
) -> list[list[int]]:
    """The registers of each lane, of a fragment whose element ``i`` in a lane is at ``place(lane, i)``."""
    count = registers * max(1, 32 // BITS[type])
    lanes = []
    for lane in range(32):
        elements = [matrix[row][column] for row, column in (place(lane, i) for i in range(count))]
        lanes.append(pack(elements, type))
    return lanes


def by_group(formula: Formula) -> Callable[[int, int], tuple[int, int]]:
    return lambda lane, i: formula(lane >> 2, lane & 3, i)


E4M3 = Format(8, 3, 0x7F)
E5M2 = Format(8, 2, 0x7F)
FORMATS = {"f16": F16, "bf16": BF16, "tf32": F32, "f32": F32, "f64": F64, "e4m3": E4M3, "e5m2": E5M2}


def number(pattern: int, type: str) -> Fraction:
    """The value of an element."""
    if type in FORMATS:
        return FORMATS[type].value(pattern)
    return Fraction(signed(pattern, BITS[type]) if type[0] == "s" else pattern)


def pattern(value: int | Fraction, type: str) -> int:
    """The element with this value, which must be exact."""
    if type not in FORMATS:
        return int(value) & ((1 << BITS[type]) - 1)
    return FORMATS[type].round(Fraction(value))


def small_matrix(rows: int, columns: int, type: str, rng: random.Random) -> Matrix:
    """Whole numbers of which all sums of products are exact; for integers any pattern."""
    if type not in FORMATS:
        return [[rng.getrandbits(BITS[type]) for _ in range(columns)] for _ in range(rows)]
    reach = 3 if BITS[type] <= 16 else 100
    return [[pattern(rng.randint(-reach, reach), type) for _ in range(columns)] for _ in range(rows)]


def product(
    a: Matrix, b: Matrix, c: Matrix, types: tuple[str, str, str, str], *, bits: str = ""
) -> list[list[Fraction]]:
    """The exact D = A * B + C; with ``bits`` ("xor", "and") the number of bits set in that combination of them."""
    _, ta, tb, tc = types
    result = []
    for row, start in zip(a, c, strict=True):
        sums = []
        for n, origin in enumerate(start):
            total = number(origin, tc)
            for k, left in enumerate(row):
                if bits:
                    total += left ^ b[k][n] if bits == "xor" else left & b[k][n]
                else:
                    total += number(left, ta) * number(b[k][n], tb)
            sums.append(total)
        result.append(sums)
    return result


@dataclass
class SparseMatrix:
    """A matrix with structured zeros (9.7.14.6): as it is meant, as it is stored, and the metadata of each lane."""

    dense: Matrix
    stored: Matrix
    metadata: list[int]


def sparse_matrix(
    rows: int, columns: int, type: str, selector: int, rng: random.Random, places: Sequence[int] | None = None
) -> SparseMatrix:
    """A matrix A for ``mma.sp``, with stored elements at random places, or always at ``places``.

    In a chunk of four elements two are stored (tf32: in one of two, one; 4-bit types: of four pairs two). Each chunk
    has four bits of metadata with the indices of the stored ones (tf32: 0b0100 for the first, 0b1110 for the second).
    Lanes that do not hold metadata for this selector hold noise.
    """
    bits = BITS[type]
    unit = 2 if bits == 4 else 1
    length, kept = (2, 1) if bits == 32 else (4, 2)
    count = columns // (length * unit)
    dense = [[0] * columns for _ in range(rows)]
    stored: Matrix = []
    fields: list[list[int]] = []
    for row in range(rows):
        line: list[int] = []
        codes: list[int] = []
        for chunk in range(count):
            chosen = sorted(places or rng.sample(range(length), kept))
            codes.append((0b0100, 0b1110)[chosen[0]] if bits == 32 else chosen[0] | chosen[1] << 2)
            for index in chosen:
                for value in small_matrix(1, unit, type, rng)[0]:
                    dense[row][(chunk * length + index) * unit + len(line) % unit] = value
                    line.append(value)
        stored.append(line)
        fields.append(codes)
    metadata = [rng.getrandbits(32) for _ in range(32)]
    for row, codes in enumerate(fields):
        group, upper = row % 8, row // 8
        for chunk, code in enumerate(codes):
            if bits >= 16:  # 16 bits for each row in a lane; the next lane goes on along the row
                lane, bit = selector * (count // 4) + chunk // 4, 16 * upper + 4 * (chunk % 4)
            elif count == 8:  # a lane for each row of a pair of lanes
                lane, bit = 2 * selector + upper, 4 * chunk
            else:
                lane, bit = upper + 2 * (chunk // 8), 4 * (chunk % 8)
            lane += 4 * group
            metadata[lane] = metadata[lane] & ~(0xF << bit) | code << bit
    return SparseMatrix(dense, stored, metadata)
