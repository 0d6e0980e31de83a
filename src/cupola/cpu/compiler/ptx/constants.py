"""Constant expressions (PTX ISA 4.5.4 to 4.5.6): precedence climbing over 64-bit integers and doubles.

Integers are 64 bits wide, signed unless an operand is a ``U`` literal or a cast says otherwise. The depth of
nesting is limited, so that no input can exhaust Python's stack.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.cursor import Cursor, parse_float, parse_integer

_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_DEPTH = 30

Number = int | float


def constant(cursor: Cursor) -> ast.Immediate:
    """Read a constant expression."""
    word = cursor.words[cursor.index]
    exact = parse_float(word)
    if exact is not None and cursor.words[cursor.index + 1] in (",", ";", "}", ")", "]"):
        cursor.index += 1  # the bits as written, so that the payload of a NaN survives
        return ast.Immediate(*exact)
    value = _ternary(cursor, _DEPTH)
    if isinstance(value, float):
        return ast.Immediate(struct.unpack("<Q", struct.pack("<d", value))[0], "f64")
    return ast.Immediate(value)


def constant_integer(cursor: Cursor) -> int:
    """Read a constant expression that must be a whole number."""
    at = cursor.index
    value = _ternary(cursor, _DEPTH)
    if isinstance(value, float):
        cursor.unexpected("a whole number", at)
    return value


def _ternary(cursor: Cursor, depth: int) -> Number:
    condition = _binary(cursor, 1, depth)
    if not cursor.accept("?"):
        return condition
    if depth <= 0:
        cursor.fail("the expression is nested too deeply")
    first = _ternary(cursor, depth - 1)
    cursor.expect(":")
    second = _ternary(cursor, depth - 1)
    return first if condition else second


def _binary(cursor: Cursor, least: int, depth: int) -> Number:
    left = _unary(cursor, depth)
    while (level := _PRECEDENCE.get(sign := cursor.words[cursor.index], 0)) >= least:
        at = cursor.index
        cursor.index += 1
        right = _binary(cursor, level + 1, depth)
        if sign in "/%":
            left = _divide(cursor, sign, left, right, at)
        elif (isinstance(left, float) or isinstance(right, float)) and sign in ("|", "^", "&", "<<", ">>"):
            cursor.fail(f"{sign!r} takes whole numbers", at=at)
        else:
            left = _OPERATORS[sign](left, right)
        left = _wrap(left)
    return left


def _divide(cursor: Cursor, sign: str, left: Number, right: Number, at: int) -> Number:
    if right == 0:
        cursor.fail("division by zero in a constant", at=at)
    if isinstance(left, float) or isinstance(right, float):
        if sign == "%":
            cursor.fail("'%' takes whole numbers", at=at)
        return left / right
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient if sign == "/" else left - right * quotient


def _unary(cursor: Cursor, depth: int) -> Number:
    signs = []
    while cursor.words[cursor.index] in ("-", "+", "~", "!"):
        signs.append(cursor.take())
    value = _primary(cursor, depth)
    for sign in reversed(signs):
        if sign == "-":
            value = -value
        elif sign == "!":
            value = int(not value)
        elif sign == "~":
            if isinstance(value, float):
                cursor.fail("'~' takes a whole number")
            value = ~value
    return value


def _primary(cursor: Cursor, depth: int) -> Number:
    word = cursor.words[cursor.index]
    if word == "(":
        if depth <= 0:
            cursor.fail("the expression is nested too deeply")
        cursor.index += 1
        cast = cursor.words[cursor.index]
        if cast in (".s64", ".u64"):
            cursor.index += 1
            cursor.expect(")")
            at = cursor.index
            value = _unary(cursor, depth - 1)
            if isinstance(value, float) and not abs(value) < 2.0**64:
                cursor.fail("the number does not fit 64 bits", at=at)
            return _wrap(int(value)) if cast == ".s64" else int(value) & 0xFFFF_FFFF_FFFF_FFFF
        value = _ternary(cursor, depth - 1)
        cursor.expect(")")
        return value
    if word == "WARP_SZ":
        cursor.index += 1
        return 32
    if word[:1] == "-" and len(word) > 1:  # a negative number behind a comma is one word
        integer = parse_integer(word[1:])
        if integer is not None:
            cursor.index += 1
            return -integer
    integer = parse_integer(word)
    if integer is not None:
        cursor.index += 1
        return integer
    bits = parse_float(word)
    if bits is None:
        cursor.unexpected("a constant")
    cursor.index += 1
    value, kind = bits
    form, width = ("<f", 4) if kind == "f32" else ("<d", 8)
    return float(struct.unpack(form, value.to_bytes(width, "little"))[0])


def _wrap(value: Number) -> Number:
    """Keep the integers of an expression in 64 bits; unsigned values stay as they are."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        value &= 0xFFFF_FFFF_FFFF_FFFF
        return value - (1 << 64) if value >> 63 else value
    return value
