"""Compare two LU factorizations as mathematics: A = P L U.

Where two candidates for a pivot are equal, the rounding of the steps before decides, which differs from GPU to GPU and
from processor to processor: OpenBLAS has a kernel for each. Both answers are right if their factors multiply to the
matrix and no multiplier in L is larger than 1, which is all that partial pivoting promises.
"""

from __future__ import annotations

import re

from tools.mathlibs.bench import element

GETRF = re.compile(
    r"^cusolverDn(?:[SDCZ]getrf\(h, |Xgetrf\(h, params, )(?P<rows>\d+), (?P<columns>\d+), (?:\d+, )?(?P<row>[A-Z])"
    r"(?P<type>[sdcz]), (?P<ld>\d+), [^()]*\)$"
)
TOLERANCE = {"s": 1e-5, "c": 1e-5, "d": 1e-13, "z": 1e-13}

Matrix = list[list[complex]]


def same_product(line: str, expected: str, actual: str) -> bool:
    """Whether a line is a factorization by getrf, and two answers to it with other pivots are both right."""
    call = GETRF.match(line)
    if call is None or not (rest(expected) == rest(actual) and pivots(expected) and pivots(actual)):
        return False
    rows, columns, ld = (int(call[name]) for name in ("rows", "columns", "ld"))
    places = [[column * ld + row for column in range(columns)] for row in range(rows)]
    matrix = [[element(call["row"], call["type"], place) for place in row] for row in places]
    tolerance = TOLERANCE[call["type"]]
    for answer in (expected, actual):
        changed = changes(answer, call["row"] + call["type"])
        factors = [[changed.get(place, element(call["row"], call["type"], place)) for place in row] for row in places]
        if not is_factorization(matrix, factors, pivots(answer), tolerance):
            return False
    return True


def is_factorization(matrix: Matrix, factors: Matrix, rows: list[int], tolerance: float) -> bool:
    """Whether L and U, which share a matrix, and the exchanges of rows (from 1 on) give the matrix."""
    count, columns = len(matrix), len(matrix[0])
    if len(rows) != min(count, columns) or not all(k + 1 <= row <= count for k, row in enumerate(rows)):
        return False
    # Pivots of complex matrices are compared by |re| + |im|, so the quotient of two may be as large as the root of 2.
    largest = (2**0.5 if any(complex(value).imag for row in matrix for value in row) else 1) + tolerance
    exchanged = [list(row) for row in matrix]
    for k, row in enumerate(rows):
        exchanged[k], exchanged[row - 1] = exchanged[row - 1], exchanged[k]
    for i in range(count):
        for j in range(columns):
            if i > j and not abs(factors[i][j]) <= largest:
                return False
            lower = [factors[i][k] if k < i else 1 for k in range(min(i, j) + 1)]
            product = sum(lower[k] * factors[k][j] for k in range(min(i, j) + 1) if k < min(count, columns))
            if not abs(product - exchanged[i][j]) <= 10 * tolerance:
                return False
    return True


def rest(answer: str) -> list[str]:
    """What an answer has beside the factors and the pivots: the status, and info."""
    return [part for part in answer.split() if not re.match(r"[A-Z][sdcz]?=", part) or part.startswith("I=")]


def changes(answer: str, place: str) -> dict[int, complex]:
    """The elements of a place that an answer names."""
    for part in answer.split():
        name, _, elements = part.partition("=")
        if name == place:
            pairs = (text.split(">") for text in elements.split(","))
            return {int(index): complex(*map(float, value.split(":"))) for index, value in pairs}
    return {}


def pivots(answer: str) -> list[int]:
    """The pivots' rows. Those of 64 bits are told as two words each, the upper one 0."""
    words = changes(answer, "P")
    rows = [int(words[place].real) for place in sorted(words)]
    return [row for row in rows if row] if 0 in rows else rows
