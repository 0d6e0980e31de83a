"""Comparisons and choices."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.ptx import oracle
from tests.ptx.harness import verify
from tests.ptx.oracle import F32, FORMATS, Format, floats, integers, signed

ORDER: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
ALIASES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINE: dict[str, Callable[[int, int], int]] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}


def compare_integers(name: str, type: str, x: int, y: int) -> int:
    if type[0] == "s":
        x, y = signed(x, int(type[1:])), signed(y, int(type[1:]))
    return int(ORDER[ALIASES.get(name, name)](x, y))


def compare_floats(name: str, f: Format, x: int, y: int) -> int:
    unordered = f.is_nan(x) or f.is_nan(y)
    if name in ("num", "nan"):
        return int(unordered == (name == "nan"))
    if unordered:
        return int(name.endswith("u"))

    def key(v: int) -> int:
        return -(v & ~f.sign_bit) if v & f.sign_bit else v

    return int(ORDER[name.removesuffix("u")](key(x), key(y)))


FLOAT_NAMES = [*ORDER, *(f"{name}u" for name in ORDER), "num", "nan"]
INTEGER_FORMS = [(name, type) for type in ("s16", "u16", "s32", "u32", "s64", "u64") for name in ORDER]
INTEGER_FORMS += [(name, type) for type in ("u16", "u32", "u64") for name in ALIASES]
INTEGER_FORMS += [(name, type) for type in ("b16", "b32", "b64") for name in ("eq", "ne")]


@pytest.mark.parametrize(("name", "type"), INTEGER_FORMS)
def test_setp_of_integers(name: str, type: str) -> None:
    values = integers(int(type[1:]))
    verify(f"setp.{name}.{type} p, a, b", [values, values], lambda x, y: compare_integers(name, type, x, y))


@pytest.mark.parametrize("name", FLOAT_NAMES)
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_setp_of_floats(name: str, type: str) -> None:
    f = FORMATS[type]
    verify(f"setp.{name}.{type} p, a, b", [floats(f)] * 2, lambda x, y: compare_floats(name, f, x, y), limit=300)


@pytest.mark.parametrize("combination", COMBINE)
def test_setp_with_two_results_and_a_predicate(combination: str) -> None:
    values = integers(32)
    join = COMBINE[combination]

    def expected(x: int, y: int, c: int) -> tuple[int, int]:
        t = compare_integers("lt", "s32", x, y)
        return join(t, c), join(1 - t, c)

    verify("setp.lt.s32 p|q, a, b", [values] * 2, lambda x, y: expected(x, y, int(combination == "and")))
    verify(f"setp.lt.{combination}.s32 p|q, a, b, c", [values, values, [0, 1]], expected)
    verify(f"setp.lt.{combination}.s32 p, a, b, c", [values, values, [0, 1]], lambda x, y, c: expected(x, y, c)[0])
    verify(
        f"setp.ltu.{combination}.f32 p|q, a, b, c",
        [floats(F32), floats(F32), [0, 1]],
        lambda x, y, c: [join(v ^ compare_floats("ltu", F32, x, y), c) for v in (0, 1)],
    )


def test_setp_ftz() -> None:
    def expected(x: int, y: int) -> int:
        return compare_floats("eq", F32, oracle.flush(F32, x), oracle.flush(F32, y))

    verify("setp.eq.ftz.f32 p, a, b", [[0, 1, 5, 0x80000001, 0x00800000, 0x007FFFFF]] * 2, expected)


@pytest.mark.parametrize("to", ["u32", "s32", "f32"])
@pytest.mark.parametrize("form", ["lt.s32", "hi.u16", "gtu.f32", "nan.f64", "ne.b64"])
def test_set(to: str, form: str) -> None:
    name, type = form.split(".")
    f = FORMATS.get(type)
    values = floats(f) if f else integers(int(type[1:]))
    true = 0x3F800000 if to == "f32" else 0xFFFFFFFF

    def outcome(x: int, y: int) -> int:
        return compare_floats(name, f, x, y) if f else compare_integers(name, type, x, y)

    verify(f"set.{name}.{to}.{type} d, a, b", [values] * 2, lambda x, y: true * outcome(x, y), limit=300)
    verify(
        f"set.{name}.xor.{to}.{type} d, a, b, c",
        [values, values, [0, 1]],
        lambda x, y, c: true * (outcome(x, y) ^ c),
        limit=300,
    )


@pytest.mark.parametrize("type", ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"])
def test_selp(type: str) -> None:
    values = integers(int(type[1:]))
    verify(f"selp.{type} d, a, b, p", [values, values, [0, 1]], lambda x, y, p: x if p else y)


@pytest.mark.parametrize("type", ["b32", "u16", "s64", "f32", "f64"])
def test_slct(type: str) -> None:
    values = integers(int(type[1:]))
    verify(
        f"slct.{type}.s32 d, a, b, c", [values, values, integers(32)], lambda x, y, c: x if signed(c, 32) >= 0 else y
    )

    def chosen(x: int, y: int, c: int) -> int:
        return x if compare_floats("ge", F32, c, 0) else y

    verify(f"slct.{type}.f32 d, a, b, c", [values, values, floats(F32)], chosen)
    verify(
        f"slct.ftz.{type}.f32 d, a, b, c",
        [values, values, floats(F32)],
        lambda x, y, c: chosen(x, y, oracle.flush(F32, c)),
    )


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("property", ["finite", "infinite", "number", "notanumber", "normal", "subnormal"])
def test_testp(property: str, type: str) -> None:
    f = FORMATS[type]

    def expected(x: int) -> bool:
        nan, infinite = f.is_nan(x), f.is_infinite(x)
        return {
            "finite": not (nan or infinite),
            "infinite": infinite,
            "number": not nan,
            "notanumber": nan,
            "normal": not (nan or infinite or f.is_subnormal(x)),
            "subnormal": f.is_subnormal(x),
        }[property]

    verify(f"testp.{property}.{type} p, a", [floats(f)], lambda x: int(expected(x)))


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_copysign(type: str) -> None:
    f = FORMATS[type]
    verify(f"copysign.{type} d, a, b", [floats(f)] * 2, lambda x, y: x & f.sign_bit | y & ~f.sign_bit, limit=300)


TRUE = {"u16": 0xFFFF, "s16": 0xFFFF, "u32": -1, "s32": -1, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
INTEGER_TYPES = [f"{kind}{bits}" for kind in "bus" for bits in (16, 32, 64)]


@pytest.mark.parametrize("type", [*INTEGER_TYPES, "f32", "f64", "f16", "bf16"])
def test_any_comparison_of_a_type(type: str) -> None:
    """Comparisons drawn at random, with all that may be combined: a third operand, flushing, the type of the result."""
    rng = random.Random(type)
    f = FORMATS.get(type)
    values = floats(f) if f else integers(int(type[1:]))
    names = FLOAT_NAMES if f else ["eq", "ne"] if type[0] == "b" else list(ORDER)
    results = ["u16", "s16", "u32", "s32", type] if type in ("f16", "bf16") else ["u32", "s32", "f32"]
    for to in results:
        name, combination = rng.choice(names), rng.choice(sorted(COMBINE))
        ftz = ".ftz" if type in ("f32", "f16") and rng.random() < 0.5 else ""
        join = COMBINE[combination]

        def outcome(x: int, y: int, name: str = name, ftz: str = ftz) -> int:
            if f is None:
                return compare_integers(name, type, x, y)
            return compare_floats(name, f, *(oracle.flush(f, v) if ftz else v for v in (x, y)))

        columns = [values, values, [0, 1]]
        verify(
            f"setp.{name}.{combination}{ftz}.{type} p|q, a, b, c",
            columns,
            lambda x, y, c, outcome=outcome, join=join: (join(outcome(x, y), c), join(1 - outcome(x, y), c)),
        )
        verify(
            f"set.{name}.{combination}{ftz}.{to}.{type} d, a, b, c",
            columns,
            lambda x, y, c, outcome=outcome, join=join, to=to: TRUE[to] * join(outcome(x, y), c),
        )
