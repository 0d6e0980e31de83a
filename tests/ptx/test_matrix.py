"""Products of matrices in registers, against exact products of matrices laid out by the ISA's formulas."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import pytest

from cupola.cpu.codegen.instructions.fragments import Product, products
from tests.ptx.harness import compile_all
from tests.ptx.matrices import (
    BITS,
    PLACES,
    Matrix,
    accumulator,
    by_group,
    distribute,
    pattern,
    product,
    small_matrix,
    unpack,
)

Types = tuple[str, str, str, str]
Place = Callable[[int, int], tuple[int, int]]


def sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def instruction(name: str, counts: Sequence[int], *more: str) -> str:
    """``name {d...}, {a...}, {b...}, {c...}`` with as many registers as ``counts`` (of d, a, b, c) says."""
    vectors = [
        "{" + ", ".join(f"{letter}{i}" for i in range(count)) + "}"
        for letter, count in zip("dabc", counts, strict=True)
    ]
    return f"{name} {', '.join([*vectors, *more])}"


def run(text: str, *lanes: list[list[int]]) -> list[list[int]]:
    """The registers of D of each lane, given those of the sources."""
    (compiled,) = compile_all(text, widths=(32,), mixed=False)
    rows = [[register for fragment in lanes for register in fragment[lane]] for lane in range(32)]
    results = compiled.run(rows)
    return [[result[lane] for result in results] for lane in range(32)]


def dense_forms() -> list[tuple[str, Types]]:
    return [
        (shape, types)
        for shape, choices in products("mma").items()
        for types in sorted(choices)
        if not (shape == "m8n8k4" and types[1] == "f16")
    ]


def name_of(form: object) -> str:
    return ".".join(form) if isinstance(form, tuple) else str(form)


def verify_dense(
    name: str, shape: str, types: Types, a: Matrix, b: Matrix, c: Matrix, expected: list[list[int]]
) -> None:
    m, n, k = sizes(shape)
    place_a, place_b = (by_group(f) for f in PLACES[f"{shape} {BITS[types[1]]}"])
    p = Product(shape, types)
    counts = [p.registers(role) for role in "dabc"]
    place = by_group(accumulator)
    results = run(
        instruction(name, counts),
        distribute(a, place_a, types[1], counts[1]),
        distribute(b, place_b, types[2], counts[2]),
        distribute(c, place, types[3], counts[3]),
    )
    for lane, registers in enumerate(results):
        for i, result in enumerate(unpack(registers, types[0])):
            row, column = place(lane, i)
            assert result == expected[row][column], f"{name}: lane {lane}, element {i} (row {row}, column {column})"


@pytest.mark.parametrize(("shape", "types"), dense_forms(), ids=name_of)
def test_dense(shape: str, types: Types) -> None:
    rng = random.Random(f"{shape} {types}")
    m, n, k = sizes(shape)
    a, b, c = (small_matrix(*s, t, rng) for s, t in (((m, k), types[1]), ((k, n), types[2]), ((m, n), types[3])))
    for bits in ("xor", "and") if types[1] == "b1" else ("",):
        suffix = f".{bits}.popc" if bits else ""
        exact = product(a, b, c, types, bits=bits)
        expected = [[pattern(value, types[0]) for value in row] for row in exact]
        verify_dense(f"mma.sync.aligned.{shape}.row.col.{'.'.join(types)}{suffix}", shape, types, a, b, c, expected)
