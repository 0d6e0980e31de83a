"""Operations between the lanes of a warp, at widths 1, 8 and 32 and with parts of the warp inactive."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from tests.ptx import oracle
from tests.ptx.harness import compile_all
from tests.ptx.oracle import F32, floats, signed, unsigned

FULL = 0xFFFFFFFF
ACTIVES = [FULL, 0x0000FFFF, 0x80000001, 0x55555555, 0x00000080]

Expected = Callable[[int, Sequence[tuple[int, ...]], list[int]], Sequence[int | None]]
"""``expected(lane, rows, active lanes)``: a result for each destination; None where it is not defined."""


def verify_warps(
    text: str, rows: Sequence[Sequence[int]], expected: Expected, *, actives: Sequence[int] = ACTIVES
) -> None:
    """Compare executing lanes of one warp, whose lane i has the operands ``rows[i]``, with the oracle."""
    for compiled in compile_all(text):
        width = compiled.width
        for mask in actives:
            lanes = [lane for lane in range(width) if mask >> lane & 1]
            if not lanes:
                continue
            shared = [
                tuple(lead if u else v for lead, v, u in zip(rows[0], row, compiled.uniform, strict=True))
                for row in rows[:width]
            ]
            results = compiled.run(shared, [bool(mask >> lane & 1) for lane in range(width)])
            for lane in lanes:
                for result, want in zip(results, expected(lane, shared, lanes), strict=True):
                    if want is not None:
                        shape = f"width {width}, uniform {compiled.uniform}, active {mask:#x}"
                        assert result[lane] == want, (
                            f"{text} ({shape}): lane {lane} got {result[lane]:#x}, not {want:#x}"
                        )


def source_lane(mode: str, lane: int, offset: int, clamp: int) -> tuple[int, bool]:
    """The ISA's pseudo-code of shfl."""
    offset, bound, segment = offset & 31, clamp & 31, clamp >> 8 & 31
    maximum = (lane & segment) | (bound & ~segment & 31)
    minimum = lane & segment
    if mode == "up":
        source = lane - offset
        inside = source >= maximum
    elif mode == "idx":
        source = minimum | (offset & ~segment & 31)
        inside = source <= maximum
    else:
        source = lane + offset if mode == "down" else lane ^ offset
        inside = source <= maximum
    return (source, True) if inside else (lane, False)


def shuffled(mode: str, lane: int, rows: Sequence[tuple[int, ...]]) -> tuple[int | None, int]:
    source, inside = source_lane(mode, lane, rows[lane][1], rows[lane][2])
    return (rows[source][0] if source < len(rows) else None), int(inside)


CLAMPS = [0x1F, 0x0, 0x181F, 0x1C03, 0x1C1F, 0x1000]


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode: str) -> None:
    rng = random.Random(1)
    for clamp in CLAMPS:
        rows = [(rng.getrandbits(32), rng.getrandbits(6), clamp, FULL) for _ in range(32)]
        verify_warps(f"shfl.sync.{mode}.b32 d|p, a, b, c, m", rows, lambda lane, rows, _: shuffled(mode, lane, rows))
    rows = [(rng.getrandbits(32), rng.getrandbits(6), rng.choice(CLAMPS)) for _ in range(32)]
    verify_warps(f"shfl.{mode}.b32 d, a, b, c", rows, lambda lane, rows, _: shuffled(mode, lane, rows)[:1])


@pytest.mark.parametrize("offset", [0, 1, 2, 16, 31])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl_by_a_constant(mode: str, offset: int) -> None:
    for clamp in CLAMPS:
        rows = [(1000 + lane, offset, clamp, FULL) for lane in range(32)]
        verify_warps(
            f"shfl.sync.{mode}.b32 d|p, a, {offset}, {clamp}, -1",
            rows,
            lambda lane, rows, _: shuffled(mode, lane, rows),
        )


def together(lane: int, rows: Sequence[tuple[int, ...]], lanes: list[int], at: int) -> list[int]:
    """The executing lanes of this lane's mask operand."""
    return [other for other in lanes if rows[lane][at] >> other & 1]


def mixed_masks(lane: int) -> int:
    """Even and odd lanes vote apart."""
    return 0x55555555 if lane % 2 == 0 else 0xAAAAAAAA


VOTES: dict[str, Callable[[list[int]], int]] = {
    "all.pred": lambda votes: int(all(votes)),
    "any.pred": lambda votes: int(any(votes)),
    "uni.pred": lambda votes: int(len(set(votes)) < 2),
}


@pytest.mark.parametrize("masks", ["same", "mixed"])
def test_vote(masks: str) -> None:
    rng = random.Random(2)
    chances: list[Callable[[int], int]] = [
        lambda _: 0,
        lambda _: 1,
        lambda _: rng.getrandbits(1),
        lambda lane: int(lane != 7),
    ]
    for chance in chances:
        rows = [(chance(lane), FULL if masks == "same" else mixed_masks(lane)) for lane in range(32)]
        for name, vote in VOTES.items():
            verify_warps(
                f"vote.sync.{name} p, a, m",
                rows,
                lambda lane, rows, lanes, vote=vote: [vote([rows[o][0] for o in together(lane, rows, lanes, 1)])],
            )
        verify_warps(
            "vote.sync.ballot.b32 d, a, m",
            rows,
            lambda lane, rows, lanes: [sum(rows[o][0] << o for o in together(lane, rows, lanes, 1))],
        )


def test_vote_without_sync() -> None:
    rows = [(lane % 3 == 0,) for lane in range(32)]
    verify_warps("vote.ballot.b32 d, a", rows, lambda lane, rows, lanes: [sum(rows[o][0] << o for o in lanes)])
    verify_warps("vote.all.pred p, a", rows, lambda lane, rows, lanes: [int(all(rows[o][0] for o in lanes))])


def test_activemask() -> None:
    verify_warps("activemask.b32 d", [()] * 32, lambda lane, rows, lanes: [sum(1 << o for o in lanes)])


@pytest.mark.parametrize("bits", [32, 64])
def test_match(bits: int) -> None:
    rng = random.Random(3)
    choices = [rng.getrandbits(bits) for _ in range(4)]
    for masks in (lambda lane: FULL, mixed_masks):
        for values in (choices, choices[:1]):
            rows = [(rng.choice(values), masks(lane)) for lane in range(32)]

            def equal(lane: int, rows: Sequence[tuple[int, ...]], lanes: list[int]) -> list[int]:
                return [o for o in together(lane, rows, lanes, 1) if rows[o][0] == rows[lane][0]]

            def every(lane: int, rows: Sequence[tuple[int, ...]], lanes: list[int]) -> tuple[int, int]:
                same, present = equal(lane, rows, lanes), together(lane, rows, lanes, 1)
                return (sum(1 << o for o in present), 1) if same == present else (0, 0)

            verify_warps(
                f"match.any.sync.b{bits} d, a, m",
                rows,
                lambda lane, rows, lanes: [sum(1 << o for o in equal(lane, rows, lanes))],
                actives=ACTIVES if masks is not mixed_masks else [FULL],
            )
            verify_warps(
                f"match.all.sync.b{bits} d|p, a, m",
                rows,
                every,
                actives=ACTIVES if masks is not mixed_masks else [FULL],
            )


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "add.u32": sum,
    "add.s32": sum,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda values: min(signed(v, 32) for v in values),
    "max.s32": lambda values: max(signed(v, 32) for v in values),
    "and.b32": lambda values: fold(lambda x, y: x & y, values),
    "or.b32": lambda values: fold(lambda x, y: x | y, values),
    "xor.b32": lambda values: fold(lambda x, y: x ^ y, values),
}


def fold(function: Callable[[int, int], int], values: list[int]) -> int:
    result = values[0]
    for v in values[1:]:
        result = function(result, v)
    return result


@pytest.mark.parametrize("name", REDUCTIONS)
def test_redux(name: str) -> None:
    rng = random.Random(4)
    for masks in (lambda lane: FULL, mixed_masks):
        rows = [(rng.getrandbits(32), masks(lane)) for lane in range(32)]

        def expected(lane: int, rows: Sequence[tuple[int, ...]], lanes: list[int]) -> list[int | None]:
            values = [rows[o][0] for o in together(lane, rows, lanes, 1)]
            return [unsigned(REDUCTIONS[name](values), 32) if values else None]

        verify_warps(f"redux.sync.{name} d, a, m", rows, expected)


@pytest.mark.parametrize("modifiers", ["", ".abs", ".NaN", ".abs.NaN"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_redux_of_floats(name: str, modifiers: str) -> None:
    rng = random.Random(5)
    largest = name == "max"
    for values in (floats(F32), [v for v in floats(F32) if not F32.is_nan(v)], [0x7FC00001]):
        rows = [(rng.choice(values), FULL) for _ in range(32)]

        def expected(lane: int, rows: Sequence[tuple[int, ...]], lanes: list[int]) -> list[int]:
            chosen = [rows[o][0] & (0x7FFFFFFF if "abs" in modifiers else FULL) for o in lanes]
            result = fold(lambda x, y: oracle.minimum(F32, x, y, largest=largest, propagate="NaN" in modifiers), chosen)
            return [oracle.nan_of(F32) if F32.is_nan(result) else result]

        verify_warps(f"redux.sync.{name}{modifiers}.f32 d, a, m", rows, expected)


def test_elect() -> None:
    rows = [(FULL,)] * 32
    verify_warps("elect.sync d|p, m", rows, lambda lane, rows, lanes: (lanes[0], int(lane == lanes[0])))
    verify_warps("elect.sync _|p, m", rows, lambda lane, rows, lanes: (None, int(lane == lanes[0])))
