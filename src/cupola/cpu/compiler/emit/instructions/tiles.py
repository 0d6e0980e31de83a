"""Tiles of fragments: their elements as vectors, the sums of a product, and which lane has what (fragments.py)."""

from __future__ import annotations

from collections.abc import Sequence

from cupola.cpu.compiler.emit.values.builder import Builder, constant, real
from cupola.cpu.compiler.emit.values.values import Value

from .floating import arithmetic
from .formats import canonical, narrow, settle_nans, widen
from .fragments import ELEMENT_BITS, Product
from .registry import Operation

LANES = 32
FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2")

Vectors = Sequence[Value]


# Words to elements


def pick(b: Builder, x: Value, lanes: Sequence[int]) -> Value:
    """Lane ``i`` of the result is lane ``lanes[i]`` of ``x``."""
    vector = b.type_of(x)
    indices = ", ".join(f"i32 {lane}" for lane in lanes)
    return Value(b.emit(f"shufflevector {vector} {x.ir}, {vector} poison, <{LANES} x i32> <{indices}>"), x.type, True)


def elements(b: Builder, word: Value, type: str) -> list[Value]:
    """The elements in a word, as floats, doubles or i32; a word of bits stays as it is."""
    bits = ELEMENT_BITS[type]
    if type in ("f64", "b1"):
        return [word]
    if type == "tf32":  # the lower bits do not count
        return [b.bitcast(b.binary("and", word, constant("i32", 0xFFFFE000)), "float")]
    return [element(b, word, type, at) for at in range(0, 32, bits)]


def element(b: Builder, word: Value, type: str, at: int) -> Value:
    """One element of a word, ``at`` bits from its end."""
    bits = ELEMENT_BITS[type]
    if type in ("u8", "s8", "u4", "s4"):
        up = b.binary("shl", word, constant("i32", 32 - bits - at)) if at + bits < 32 else word
        return b.binary("ashr" if type[0] == "s" else "lshr", up, constant("i32", 32 - bits))
    low = b.binary("lshr", word, constant("i32", at)) if at else word
    if type in ("f16", "bf16"):
        return widen(b, b.cast("trunc", low, "i16"), type)
    return eight_to_float(b, b.binary("and", low, constant("i32", 0xFF)), type)


def eight_to_float(b: Builder, byte: Value, type: str) -> Value:
    """An 8-bit float, in the low bits of an i32, as a float."""
    sign = b.binary("shl", b.binary("and", byte, constant("i32", 0x80)), constant("i32", 24))
    size = b.binary("and", byte, constant("i32", 0x7F))
    mantissa, bias = (3, 7) if type == "e4m3" else (2, 15)
    # As a float with too small an exponent, which one exact multiplication sets right, subnormals included.
    small = b.bitcast(b.binary("shl", size, constant("i32", 23 - mantissa)), "float")
    scaled = b.bitcast(b.binary("fmul", small, real("float", 2.0 ** (127 - bias))), "i32")
    if type == "e4m3":
        special = b.compare("icmp eq", size, constant("i32", 0x7F))
        scaled = b.select(special, constant("i32", 0x7FFFFFFF), scaled)
    else:
        special = b.compare("icmp uge", size, constant("i32", 0x7C))
        pattern = b.binary("or", b.bitcast(small, "i32"), constant("i32", 0x7F800000))
        scaled = b.select(special, pattern, scaled)
    return b.bitcast(b.binary("or", scaled, sign), "float")


def multiply_add(b: Builder, op: Operation, type: str, x: Value, y: Value, total: Value) -> Value:
    """``total`` plus the product of two elements, or of two words of bits."""
    if type == "f64":
        return arithmetic(b, "fma", op.one_of("rz", "rm", "rp", default="rn"), x, y, total)
    if type in FLOATS:
        return b.intrinsic("fmuladd", x, y, total)
    if type == "b1":
        counted = b.intrinsic("ctpop", b.binary("xor" if op.has("xor") else "and", x, y))
        return b.binary("add", total, counted)
    return b.binary("add", total, b.binary("mul", x, y))


# Accumulators


def begin(b: Builder, op: Operation, p: Product, c: Vectors) -> list[Value]:
    """The sums at the beginning: a float, double or i32 vector for each column parity of each tile."""
    if op.has("satfinite"):
        return [b.splat(constant("i32", 0))] * len(c)  # C is added at the end
    if p.type("c") != "f16":
        return list(c)
    return [element(b, word, "f16", at) for word in c for at in (0, 16)]


def finish(b: Builder, op: Operation, p: Product, sums: Vectors, c: Vectors) -> Vectors:
    """The registers of D."""
    if op.has("satfinite"):
        return [b.intrinsic("sadd.sat", total, start) for total, start in zip(sums, c, strict=True)]
    if p.type("d") == "f32":
        return [settle_nans(b, canonical(b, total)) for total in sums]
    if p.type("d") != "f16":
        return sums
    halves = [b.cast("zext", narrow(b, total, "f16"), "i32") for total in sums]
    return [
        b.binary("or", low, b.binary("shl", high, constant("i32", 16)))
        for low, high in zip(halves[::2], halves[1::2], strict=True)
    ]


# Tiles


def along_rows(word: int) -> list[int]:
    """Where each lane finds a word of its row of A."""
    return [lane & ~3 | word for lane in range(LANES)]


def along_columns(word: int, odd: int) -> list[int]:
    """Where each lane finds a word of its column of B."""
    return [4 * (2 * (lane & 3) + odd) + word for lane in range(LANES)]
