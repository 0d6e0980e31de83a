"""Products of matrices in registers, against exact products of matrices laid out by the ISA's formulas."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import product as every

import pytest

from cupola.cpu.compiler.emit.bodies import problem_with
from cupola.cpu.compiler.emit.instructions.fragments import Product, products
from tests.ptx import oracle
from tests.ptx.harness import Compiled, compile_all, parse
from tests.ptx.matrices import (
    BITS,
    FORMATS,
    PLACES,
    Matrix,
    accumulator,
    by_group,
    distribute,
    number,
    pattern,
    product,
    quad_places,
    small_matrix,
    sparse_matrix,
    unpack,
)
from tests.ptx.oracle import F16, F32, F64, clamp

Types = tuple[str, str, str, str]
Place = Callable[[int, int], tuple[int, int]]
Exact = Sequence[Sequence[Fraction]]


def sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def name_of(form: object) -> str:
    return ".".join(form) if isinstance(form, tuple) else str(form)


def with_registers(name: str, counts: Sequence[int], *more: str) -> str:
    """``name {d...}, {a...}, {b...}, {c...}`` with as many registers as ``counts`` (of d, a, b, c) says."""
    vectors = [
        "{" + ", ".join(f"{letter}{i}" for i in range(count)) + "}"
        for letter, count in zip("dabc", counts, strict=True)
    ]
    return f"{name} {', '.join([*vectors, *more])}"


@cache
def compiled(text: str) -> Compiled:
    return compile_all(text, widths=(32,), mixed=False)[0]


def run(text: str, *fragments: list[list[int]]) -> list[list[int]]:
    """The registers of D of each lane, given those of the sources."""
    results = compiled(text).run(
        [[register for fragment in fragments for register in fragment[lane]] for lane in range(32)]
    )
    return [[result[lane] for result in results] for lane in range(32)]


def multiply_dense(name: str, shape: str, types: Types, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """D, put together from the fragments."""
    m, n, _ = sizes(shape)
    counts = [Product(shape, types).registers(role) for role in "dabc"]
    places = [by_group(f) for f in (*PLACES[f"{shape} {BITS[types[1]]}"], accumulator)]
    sources = [
        distribute(matrix, place, type, count)
        for matrix, place, type, count in zip((a, b, c), places, types[1:], counts[1:], strict=True)
    ]
    return gather(run(with_registers(name, counts), *sources), places[2], types[0], m, n)


def gather(lanes: list[list[int]], place: Place, type: str, m: int, n: int) -> Matrix:
    result = [[-1] * n for _ in range(m)]
    for lane, registers in enumerate(lanes):
        for i, bits in enumerate(unpack(registers, type)):
            row, column = place(lane, i)
            assert result[row][column] == -1, "two elements in one place"
            result[row][column] = bits
    return result


def dense_name(shape: str, types: Types, modifier: str = "", suffix: str = "") -> str:
    return f"mma.sync.aligned.{shape}.row.col{modifier}.{'.'.join(types)}{suffix}"


DENSE = [
    (shape, types)
    for shape, choices in products("mma").items()
    for types in sorted(choices)
    if (shape, types[1]) != ("m8n8k4", "f16")
]
SPARSE = [
    (shape, types)
    for shape, choices in products("sparse").items()
    for types in sorted(choices)
    if BITS[types[1]] > 8 or types[1] != types[2]  # the mixed ones tell what belongs to A and what to B
]


def operands(shape: str, types: Types, rng: random.Random) -> tuple[Matrix, Matrix, Matrix]:
    m, n, k = sizes(shape)
    a = small_matrix(m, k, types[1], rng)
    return a, small_matrix(k, n, types[2], rng), small_matrix(m, n, types[3], rng)


def as_patterns(exact: Exact, type: str) -> Matrix:
    return [[pattern(value, type) for value in row] for row in exact]


@pytest.mark.parametrize(("shape", "types"), DENSE, ids=name_of)
def test_dense(shape: str, types: Types) -> None:
    """Sums of whole numbers, which are exact whatever the order; integers of any size, which wrap around."""
    a, b, c = operands(shape, types, random.Random(f"{shape} {types}"))
    for bits in ("xor", "and") if types[1] == "b1" else ("",):
        expected = as_patterns(product(a, b, c, types, bits=bits), types[0])
        name = dense_name(shape, types, suffix=f".{bits}.popc" if bits else "")
        assert multiply_dense(name, shape, types, a, b, c) == expected


def random_float(type: str, rng: random.Random) -> int:
    """A finite number of any sign, of a moderate size."""
    f = FORMATS[type]
    exponent = f.bias + rng.randint(-4, 4)
    bits = rng.getrandbits(1) << (f.bits - 1) | exponent << f.mantissa | rng.getrandbits(f.mantissa)
    return bits & 0xFFFFE000 if type == "tf32" else bits


FLOATING = [(s, t) for s, t in DENSE if t[0] in ("f16", "f32")]


@pytest.mark.parametrize(("shape", "types"), FLOATING, ids=name_of)
def test_error_bound(shape: str, types: Types) -> None:
    """Exact products, added up in single precision in any order, and rounded to D."""
    m, n, k = sizes(shape)
    rng = random.Random(f"{shape} {types}")
    a, b, c = (
        [[random_float(type, rng) for _ in range(columns)] for _ in range(rows)]
        for type, rows, columns in ((types[1], m, k), (types[2], k, n), (types[3], m, n))
    )
    result = multiply_dense(dense_name(shape, types), shape, types, a, b, c)
    exact = product(a, b, c, types)
    for i, j in every(range(m), range(n)):
        size = abs(number(c[i][j], types[3]))
        size += sum(abs(number(a[i][x], types[1]) * number(b[x][j], types[2])) for x in range(k))
        bound = (k + 1) * size / 2**23
        if types[0] == "f16":
            bound += abs(exact[i][j]) / 2**10
        assert abs(number(result[i][j], types[0]) - exact[i][j]) <= bound


@pytest.mark.parametrize("mode", ["", ".rn", ".rz", ".rm", ".rp"])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k8"])
def test_double_precision(shape: str, mode: str) -> None:
    """A chain of fused multiply-adds along K."""
    m, n, k = sizes(shape)
    rng = random.Random(shape)
    a, b, c = (
        [[random_float("f64", rng) for _ in range(columns)] for _ in range(rows)]
        for rows, columns in ((m, k), (k, n), (m, n))
    )
    types = ("f64",) * 4
    result = multiply_dense(dense_name(shape, types, mode), shape, types, a, b, c)
    for i, j in every(range(m), range(n)):
        total = c[i][j]
        for x in range(k):
            total = oracle.fma(F64, a[i][x], b[x][j], total, mode[1:] or "rn")
        assert result[i][j] == total


@pytest.mark.parametrize("types", [("s32", "s8", "u8", "s32"), ("s32", "u4", "u4", "s32")], ids=name_of)
def test_saturation_of_integers(types: Types) -> None:
    a, b, c = operands("m16n8k32", types, random.Random(1))
    for i, start in enumerate((0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 0x80000100)):
        c[i] = [start] * 8
    exact = product(a, b, c, types)
    low, high = -(2**31), 2**31 - 1
    for modifier, limit in (
        (".satfinite", lambda x: clamp(int(x), low, high)),
        ("", lambda x: oracle.signed(int(x), 32)),
    ):
        expected = [[limit(value) & 0xFFFFFFFF for value in row] for row in exact]
        assert multiply_dense(dense_name("m16n8k32", types, modifier), "m16n8k32", types, a, b, c) == expected


INFINITY, ONE = 0x7C00, 0x3C00


@pytest.mark.parametrize("type", ["f16", "f32"])
def test_infinities_and_nans(type: str) -> None:
    """An infinity stays; infinity minus infinity and 0 times infinity are the hardware's NaN."""
    types = (type, "f16", "f16", type)
    a, b, c = [[0] * 8 for _ in range(16)], [[0] * 8 for _ in range(8)], [[0] * 8 for _ in range(16)]
    a[0][0], a[1][0], a[1][1], a[2][3] = INFINITY, INFINITY, INFINITY, ONE
    b[0] = [ONE] * 8
    b[1] = [ONE | 0x8000] * 8
    b[3] = [0x7E01] * 8
    result = multiply_dense(dense_name("m16n8k8", types), "m16n8k8", types, a, b, c)
    f = FORMATS[type]
    nan = oracle.nan_of(f)
    assert result[1] == [nan] * 8 and result[2] == [nan] * 8
    b[3] = [0] * 8
    result = multiply_dense(dense_name("m16n8k8", types), "m16n8k8", types, a, b, c)
    assert result[0] == [f.infinity] * 8
    assert result[3] == [0] * 8
    a[4][0], b[0] = 0, [INFINITY] * 8
    assert multiply_dense(dense_name("m16n8k8", types), "m16n8k8", types, a, b, c)[4] == [nan] * 8


def test_f16_sums_overflow_to_infinity() -> None:
    types = ("f16",) * 4
    a, b, c = ([[0x7BFF] * columns for _ in range(rows)] for rows, columns in ((16, 8), (8, 8), (16, 8)))
    result = multiply_dense(dense_name("m16n8k8", types), "m16n8k8", types, a, b, c)
    assert result == [[F16.infinity] * 8] * 16


def test_tf32_ignores_the_low_bits() -> None:
    types = ("f32", "tf32", "tf32", "f32")
    a, b, c = operands("m16n8k4", types, random.Random(2))
    expected = as_patterns(product(a, b, c, types), "f32")
    noisy = [[bits | 0x1FFF for bits in row] for row in a]
    assert multiply_dense(dense_name("m16n8k4", types), "m16n8k4", types, noisy, b, c) == expected


@pytest.mark.parametrize("type", ["e4m3", "e5m2"])
def test_every_8_bit_float(type: str) -> None:
    """Each of the 256 patterns times one, in single precision exactly."""
    types = ("f32", type, type, "f32")
    one = {"e4m3": 0x38, "e5m2": 0x3C}[type]
    f = FORMATS[type]
    for start in range(0, 256, 16):
        a = [[start + row] + [0] * 15 for row in range(16)]
        b = [[one] * 8] + [[0] * 8 for _ in range(15)]
        c = [[0] * 8 for _ in range(16)]
        result = multiply_dense(dense_name("m16n8k16", types), "m16n8k16", types, a, b, c)
        for row in range(16):
            bits = start + row
            if type == "e4m3":
                nan, infinite = bits & 0x7F == 0x7F, False
            else:
                nan, infinite = f.is_nan(bits), f.is_infinite(bits)
            sign = 0x80000000 if bits & 0x80 else 0
            if nan:
                expected = 0x7FFFFFFF
            elif infinite:
                expected = 0x7F800000 | sign
            else:
                expected = F32.round(eight_bit_value(bits, type))
            assert result[row] == [expected] * 8, hex(bits)


def eight_bit_value(bits: int, type: str) -> Fraction:
    mantissa, bias = (3, 7) if type == "e4m3" else (2, 15)
    exponent, fraction = bits >> mantissa & (0x7F >> mantissa), bits & ((1 << mantissa) - 1)
    size = Fraction(fraction + (1 << mantissa if exponent else 0)) * Fraction(2) ** (max(exponent, 1) - bias - mantissa)
    return -size if bits & 0x80 else size


# mma.m8n8k4 on f16


@pytest.mark.parametrize("layouts", ["row.col", "row.row", "col.row", "col.col"])
@pytest.mark.parametrize("types", [("f16", "f16"), ("f32", "f32"), ("f32", "f16")], ids=name_of)
def test_four_small_products(types: tuple[str, str], layouts: str) -> None:
    rng = random.Random(f"{types} {layouts}")
    td, tc = types
    four = [operands("m8n8k4", (td, "f16", "f16", tc), rng) for _ in range(4)]

    def fragments(which: int, type: str, place: Place, count: int) -> list[list[int]]:
        each = [distribute(four[q][which], place, type, count) for q in range(4)]
        return [each[lane >> 2 & 3][lane] for lane in range(32)]

    row, column = layouts.split(".")
    sources = [
        fragments(0, "f16", quad_places("a", row, "f16"), 2),
        fragments(1, "f16", quad_places("b", column, "f16"), 2),
        fragments(2, tc, quad_places("c", "", tc), 4 if tc == "f16" else 8),
    ]
    counts = [4 if td == "f16" else 8, 2, 2, 4 if tc == "f16" else 8]
    results = run(with_registers(f"mma.sync.aligned.m8n8k4.{layouts}.{td}.f16.f16.{tc}", counts), *sources)
    place = quad_places("d", "", td)
    expected = [as_patterns(product(*four[q], (td, "f16", "f16", tc)), td) for q in range(4)]
    for lane, registers in enumerate(results):
        for i, bits in enumerate(unpack(registers, td)):
            r, c = place(lane, i)
            assert bits == expected[lane >> 2 & 3][r][c], (lane, i)


# Sparse products


@pytest.mark.parametrize(("shape", "types"), SPARSE, ids=name_of)
def test_sparse(shape: str, types: Types) -> None:
    m, n, k = sizes(shape)
    rng = random.Random(f"{shape} {types}")
    counts = [Product(shape, types, sparse=True).registers(role) for role in "dabc"]
    stored_shape = f"m16n8k{k // 2} {BITS[types[1]]}"
    place_a, place_b = by_group(PLACES[stored_shape][0]), by_group(PLACES[f"{shape} {BITS[types[1]]}"][1])
    for selector in range(16 // (k // {4: 8, 8: 4, 16: 4, 32: 2}[BITS[types[1]]])):
        a = sparse_matrix(m, k, types[1], selector, rng)
        b, c = small_matrix(k, n, types[2], rng), small_matrix(m, n, types[3], rng)
        modifier = ".satfinite" if types[2][0] == "u" else ""
        if modifier:
            c = [[rng.getrandbits(16) for _ in range(n)] for _ in range(m)]
        sources = [
            distribute(a.stored, place_a, types[1], counts[1]),
            distribute(b, place_b, types[2], counts[2]),
            distribute(c, by_group(accumulator), types[3], counts[3]),
            [[word, selector] for word in a.metadata],
        ]
        ordered = "sp::ordered_metadata" if selector == 0 else "sp"
        name = f"mma.{ordered}.sync.aligned.{shape}.row.col{modifier}.{'.'.join(types)}"
        lanes = run(with_registers(name, counts, "e", str(selector)), *sources)
        result = gather(lanes, by_group(accumulator), types[0], m, n)
        assert result == as_patterns(product(a.dense, b, c, types), types[0]), f"selector {selector}"


def test_what_is_not_stored_is_not_multiplied() -> None:
    types, shape = ("f32", "f16", "f16", "f32"), "m16n8k16"
    a = sparse_matrix(16, 16, "f16", 0, random.Random(5), places=(0, 1))
    b = [[INFINITY if k % 4 >= 2 else ONE] * 8 for k in range(16)]
    c = [[0] * 8 for _ in range(16)]
    counts = [Product(shape, types, sparse=True).registers(role) for role in "dabc"]
    lanes = run(
        with_registers(f"mma.sp.sync.aligned.{shape}.row.col.{'.'.join(types)}", counts, "e", "0"),
        distribute(a.stored, by_group(PLACES["m16n8k8 16"][0]), "f16", counts[1]),
        distribute(b, by_group(PLACES["m16n8k16 16"][1]), "f16", counts[2]),
        distribute(c, by_group(accumulator), "f32", counts[3]),
        [[word, 0] for word in a.metadata],
    )
    result = gather(lanes, by_group(accumulator), "f32", 16, 8)
    sums = [sum((number(x, "f16") for x in row), Fraction()) for row in a.dense]
    assert result == [[pattern(total, "f32")] * 8 for total in sums]


# movmatrix


def test_movmatrix() -> None:
    matrix = [[16 * row + column + 1 for column in range(8)] for row in range(8)]
    transposed = [list(row) for row in zip(*matrix, strict=True)]
    place = by_group(lambda g, t, i: (g, 2 * t + i))
    result = run("movmatrix.sync.aligned.m8n8.trans.b16 d, a", distribute(matrix, place, "f16", 1))
    assert result == distribute(transposed, place, "f16", 1)


# What cannot be run

NEWER = " needs compute capability 10.0a, which the CPU device does not have"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {b0,b1}, "
            "{c0,c1,c2,c3}",
            "'.kind::f8f6f4' needs compute capability 12.0a, which the CPU device does not have",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {d0,d1,d2,d3}, {a0,a1}, {b0}, {c0,c1}",
            "there is no such product of shape '.m16n8k8' with the types 'f32.f16.f16.f16'",
        ),
        (
            "mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1}, {b0}, {c0,c1,c2,c3}",
            "'.m16n8k8' with '.f16' takes A by rows and B by columns ('.row.col')",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0}, {b0}, {c0,c1,c2,c3}",
            "the fragments must have these numbers of registers: d 4, a 2, b 1, c 4",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.rz.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1}, {b0}, {c0,c1,c2,c3}",
            "only products in double precision have a rounding mode",
        ),
        (
            "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite {d0,d1,d2,d3}, {a0,a1,a2,a3,a4,a5,a6,a7}, "
            "{b0,b1,b2,b3,b4,b5,b6,b7}, {c0,c1,c2,c3}",
            "'.satfinite' is for sums of integers",
        ),
        (
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {d0,d1}, {a0}, {b0}, {c0,c1}",
            "'.xor.popc' and '.and.popc' are required for products of bits, and for no others",
        ),
        (
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {b0,b1,b2,b3}, "
            "{c0,c1,c2,c3}, e, 2",
            "the selector must be a number below 2",
        ),
        (
            "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {b0,b1,b2,b3}, "
            "{c0,c1,c2,c3}, e, s",
            "the selector must be 0",
        ),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {d0,d1}, [a]", "'.m16n16'" + NEWER),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [a], {b0}", "'.m16n8'" + NEWER),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d0,d1}, [a]", "'.x4' takes 4 registers, not 2"),
        ("wmma.load.a.sync.aligned.row.m16n16k8.f16 {d0,d1,d2,d3}, [a]", "shape '.m16n16k8' has no matrix A of '.f16'"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {d0,d1,d2,d3}, [a]", "the fragment has 8 registers, not 4"),
        ("wmma.load.b.sync.aligned.row.m8n8k32.s4 {d0}, [a]", "a matrix B of '.s4' is stored by columns"),
    ],
)  # fmt: skip
def test_reasons(text: str, reason: str) -> None:
    assert problem_with(parse(text)) == reason
