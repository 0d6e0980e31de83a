"""Uniform, affine and varying values, and above all when an affine value may not be trusted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import BITS, Value, signed
from tests.ptx.harness import build

WIDTH = 8
X = Value("%x", "i32")


def contiguous(b: Builder) -> Value:
    """``%x + lane`` as the emitter makes ``%tid.x``."""
    return b.binary("add", X, b.iota())


def evaluate(b: Builder, value: Value, x: int) -> tuple[list[int], int | None, bool | None]:
    """The lanes of a value, and the base and exactness of its line, for a value of the parameter ``%x``."""
    size = BITS[value.type] // 8
    assert value.affine is not None
    lines = [
        "define void @f(i32 %x, ptr %lanes, ptr %base, ptr %exact) {",
        *b.lines,
        f"  store {b.typed(value)}, ptr %lanes, align 1",
        f"  store {value.type} {value.affine.base}, ptr %base, align 1",
        f"  %flag = zext i1 {value.affine.exact} to i8",
        "  store i8 %flag, ptr %exact",
        "  ret void",
        "}",
    ]
    engine = build("\n".join([*b.declarations, *lines]))
    lanes, base, exact = (ctypes.create_string_buffer(n) for n in (size * WIDTH, size, 1))
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_uint32, *[ctypes.c_void_p] * 3)
    pointers = [ctypes.cast(p, ctypes.c_void_p) for p in (lanes, base, exact)]
    prototype(engine.get_function_address("f"))(x, *pointers)
    values = [int.from_bytes(lanes.raw[i * size : (i + 1) * size], "little") for i in range(WIDTH)]
    return values, int.from_bytes(base.raw, "little"), bool(exact.raw[0])


AFFINE: dict[str, tuple[Callable[[Builder], Value], int]] = {
    "add": (lambda b: b.binary("add", contiguous(b), constant("i32", 5)), 1),
    "add two": (lambda b: b.binary("add", contiguous(b), contiguous(b)), 2),
    "subtract from": (lambda b: b.binary("sub", X, contiguous(b)), -1),
    "multiply": (lambda b: b.binary("mul", contiguous(b), constant("i32", 12)), 12),
    "multiply by": (lambda b: b.binary("mul", constant("i32", -3), contiguous(b)), -3),
    "shift": (lambda b: b.binary("shl", contiguous(b), constant("i32", 4)), 16),
    "wide": (lambda b: b.binary("mul", b.cast("sext", contiguous(b), "i64"), constant("i64", 8)), 8),
    "wide unsigned": (lambda b: b.cast("zext", b.binary("mul", contiguous(b), constant("i32", 4)), "i64"), 4),
    "wide downwards": (lambda b: b.cast("sext", b.binary("sub", X, contiguous(b)), "i64"), -1),
    "narrow": (lambda b: b.cast("trunc", contiguous(b), "i16"), 1),
    "select": (lambda b: b.select(b.compare("icmp ugt", X, constant("i32", 9)), contiguous(b), b.iota()), 1),
}


@pytest.mark.parametrize("x", [0, 1, 100, 0x7FFFFFF5, 0x7FFFFFFD, 0x80000000, 0xFFFFFFFC, 0xFFFFFFF8, 0x3FFFFFFF])
@pytest.mark.parametrize("name", AFFINE)
def test_lanes_are_on_the_line_when_it_is_exact(name: str, x: int) -> None:
    make, stride = AFFINE[name]
    b = Builder(WIDTH)
    value = make(b)
    assert value.vector and value.affine is not None and value.affine.stride == stride
    lanes, base, exact = evaluate(b, value, x)
    assert base == lanes[0]
    bits = BITS[value.type]
    line = [(lanes[0] + i * stride) % (1 << bits) for i in range(WIDTH)]
    if exact:
        assert lanes == line
    else:
        assert lanes != line, "the flag says that lanes wrapped, but none did"


def test_extension_of_what_wrapped_is_not_exact() -> None:
    b = Builder(WIDTH)
    value = b.cast("zext", contiguous(b), "i64")
    assert evaluate(b, value, 0xFFFFFFFC)[2] is False
    b = Builder(WIDTH)
    value = b.binary("add", b.cast("sext", contiguous(b), "i64"), constant("i64", 16))
    assert evaluate(b, value, 0x7FFFFFFD)[2] is False


def test_extension_that_always_wraps_is_never_exact() -> None:
    b = Builder(WIDTH)
    value = b.cast("sext", b.binary("mul", contiguous(b), constant("i32", 0x70000000)), "i64")
    assert value.affine is not None and value.affine.exact == "false"


def test_literals_are_decided_at_once() -> None:
    b = Builder(WIDTH)
    value = b.cast("sext", b.binary("mul", b.iota(), constant("i32", 4)), "i64")
    assert value.affine is not None and value.affine.exact == "true"


@pytest.mark.parametrize("op", ["and", "or", "xor", "lshr", "udiv"])
def test_other_operations_are_varying(op: str) -> None:
    b = Builder(WIDTH)
    value = b.binary(op, contiguous(b), constant("i32", 3))
    assert value.vector and value.affine is None


def test_product_of_an_affine_and_an_unknown_value_is_varying() -> None:
    b = Builder(WIDTH)
    assert b.binary("mul", contiguous(b), X).affine is None


def test_uniform_operands_stay_scalar() -> None:
    b = Builder(WIDTH)
    for value in (
        b.binary("add", X, X),
        b.select(b.compare("icmp eq", X, X), X, constant("i32", 1)),
        b.cast("zext", X, "i64"),
        b.intrinsic("ctpop", X),
        b.binary("sub", contiguous(b), contiguous(b)),
    ):
        assert value.uniform


def test_width_one_has_no_vectors() -> None:
    b = Builder(1)
    for value in (b.iota(), b.splat(X), contiguous(b), b.spread(X), b.per_lane("i32", [7])):
        assert value.uniform
    assert "<" not in "\n".join(b.lines)


@pytest.mark.parametrize(
    ("value", "ir"),
    [
        (constant("i32", 0xFFFFFFFF), "-1"),
        (constant("i1", 1), "true"),
        (constant("float", 0x3F800000), "0x3FF0000000000000"),
        (constant("float", 0x7F800001), "bitcast (i32 2139095041 to float)"),
        (constant("double", 1 << 63), "0x8000000000000000"),
        (real("double", 1.5), "0x3FF8000000000000"),
        (real("half", 1.0), "0xH3C00"),
    ],
)
def test_literals(value: Value, ir: str) -> None:
    assert value.ir == ir and value.is_constant


def test_signed() -> None:
    assert [signed(v, 8) for v in (0, 127, 128, 255, 256, -129)] == [0, 127, -128, -1, 0, 127]
