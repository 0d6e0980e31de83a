"""The comparison of LU factorizations as mathematics (tools/mathlibs/factors.py)."""

from __future__ import annotations

import pytest

from tools.mathlibs.bench import element
from tools.mathlibs.factors import is_factorization, same_product

# A = P L U, by hand: the two rows of the second column tie after the first step.
MATRIX = [[4, 1], [2, 2.5], [-2, 1.5]]
FIRST = [[4, 1], [0.5, 2], [-0.5, 1]]  # pivots 1, 2
SECOND = [[4, 1], [-0.5, 2], [0.5, 1]]  # pivots 1, 3


@pytest.mark.parametrize(
    ("factors", "pivots", "right"),
    [
        pytest.param(FIRST, [1, 2], True, id="the upper of two equal pivots"),
        pytest.param(SECOND, [1, 3], True, id="the lower one"),
        pytest.param(FIRST, [1, 3], False, id="pivots of other factors"),
        pytest.param([[4, 1], [0.5, 2], [-0.5, 1.5]], [1, 2], False, id="another product"),
        pytest.param(FIRST, [1], False, id="a pivot too few"),
        pytest.param(FIRST, [1, 4], False, id="a row that there is not"),
        pytest.param([[2, 2.5], [2, -4], [-1, -1]], [2, 2], False, id="a pivot that is not the largest"),
        pytest.param([[4, 1], [0.5, float("nan")], [-0.5, 1]], [1, 2], False, id="not a number"),
    ],
)
def test_factors(factors: list[list[complex]], pivots: list[int], right: bool) -> None:
    assert is_factorization([list(map(complex, row)) for row in MATRIX], factors, pivots, 1e-12) is right


def answer(columns: int, pivots: str = "P=0>2,1>2", info: int = 0) -> str:
    """An answer with the factors of the bench's matrix A of doubles, 2 by `columns`, whose rows are exchanged."""
    lower, upper = ([element("A", "d", 2 * j + i).real for j in range(columns)] for i in range(2))
    factor = lower[0] / upper[0]
    changed = {2 * j: upper[j] for j in range(columns)}
    changed |= {2 * j + 1: lower[j] - factor * upper[j] for j in range(1, columns)} | {1: factor}
    return f"0 Ad={','.join(f'{i}>{v!r}' for i, v in sorted(changed.items()))} {pivots} I=0>{info}"


GETRF = "cusolverDnDgetrf(h, 2, 2, Ad, 2, work, P, I)"


@pytest.mark.parametrize(
    ("line", "other", "same"),
    [
        pytest.param(GETRF, answer(2), True, id="equal"),
        pytest.param("cusolverDnDpotrf(h, 2, 2, Ad, 2, work, 4, I)", answer(2), False, id="another function"),
        pytest.param(GETRF, answer(2).replace("0 Ad", "7 Ad"), False, id="another status"),
        pytest.param(GETRF, answer(2, info=2), False, id="another info"),
        pytest.param(GETRF, answer(2, pivots=""), False, id="no pivots"),
        pytest.param(GETRF, "0 Ad=0>nan P=0>2,1>2 I=0>0", False, id="not a number"),
    ],
)
def test_two_answers(line: str, other: str, same: bool) -> None:
    assert same_product(line, answer(2), other) is same


def test_pivots_of_64_bits() -> None:
    """As Xgetrf has them, word by word."""
    from tools.mathlibs.factors import pivots

    assert pivots("0 P=0>2,1>0,2>5,3>0 I=0>0") == [2, 5]
    assert pivots("0 P=0>2,1>5 I=0>0") == [2, 5]
