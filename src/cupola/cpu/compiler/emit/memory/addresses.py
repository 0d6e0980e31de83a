"""Addresses of memory operands, and the instructions about addresses (PTX ISA, "cvta", "isspacep", "mapa").

Addresses of shared and local memory are offsets in the window of the block and of the thread; a generic address of
them has the window's address added (engine.h). All others are host addresses. The space "cluster", PTX's
``shared::cluster``, is shared memory as well, in which other blocks' is found by their rank; what is addressed there
is accessed by generic addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import lowers
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_SPACES = ("global", "shared", "local", "const", "param")
_WINDOWS = {"shared": abi.SHARED_WINDOW, "local": abi.LOCAL_WINDOW}
_RANK_BITS = 0xFF << abi.RANK_SHIFT


def space_of(instruction: ast.Instruction) -> str:
    """The state space that an instruction names, or "generic"."""
    for modifier in instruction.modifiers:
        if modifier == "shared::cluster":
            return "cluster"
        space = modifier.partition("::")[0]
        if space in _SPACES:
            return space
    return "generic"


def address_of(body: Body, operand: ast.Operand, space: str) -> Value:
    """The address: an i32 for shared and local memory, where the low half of any address is the offset, else an i64.

    Of the space "cluster", the generic address.
    """
    base, offset = base_of(body, operand, space)
    return body.builder.binary("add", base, constant(base.type, offset)) if offset else base


def base_of(body: Body, operand: ast.Operand, space: str) -> tuple[Value, int]:
    """What of the address is in a register, and the constant that is added to it."""
    assert isinstance(operand, ast.Address)
    builder = body.builder
    if space == "cluster":
        place = builder.cast("zext", address_of(body, operand, "shared"), "i64")
        return builder.binary("add", place, constant("i64", abi.SHARED_WINDOW)), 0
    type = "i32" if space in _WINDOWS else "i64"
    match operand.base:
        case None:
            return constant(type, operand.offset), 0
        case ast.Symbol(name, offset):
            value = body.symbol(ast.Symbol(name, offset + operand.offset))
            return generic_of(body, name, value) if space == "generic" else builder.cast("trunc", value, type), 0
        case ast.Register(name):
            return body.registers.read_extended(name, type), operand.offset
    raise TypeError(operand)


def generic_of(body: Body, name: str, address: Value) -> Value:
    """The generic address of a variable."""
    window = _WINDOWS.get(body.layout.places[name].space, 0)
    return body.builder.binary("add", address, constant("i64", window)) if window else address


@lowers("cvta")
def convert_address(body: Body, instruction: ast.Instruction) -> None:
    """``cvta`` and ``cvta.to``."""
    builder = body.builder
    destination, source = instruction.operands
    window = _WINDOWS.get(space_of(instruction).replace("cluster", "shared"), 0)
    wide = instruction.modifiers[-1].endswith("64")
    type = "i64" if wide else "i32"
    value = body.operand(source, type)
    if window and wide:
        if "to" in instruction.modifiers:
            value = builder.binary("sub", value, constant(type, window))
        else:
            value = builder.binary("add", value, constant(type, window))
    body.write(destination, value)


@lowers("isspacep")
def is_in_space(body: Body, instruction: ast.Instruction) -> None:
    """``isspacep``: the windows are told apart by their high halves; what is not constant either is global."""
    builder = body.builder
    destination, source = instruction.operands
    space = space_of(instruction)
    high = builder.binary("lshr", body.operand(source, "i64"), constant("i64", 32))
    if space == "shared":
        result = _is_own_shared(body, body.operand(source, "i64"))
    elif space == "cluster":
        result = builder.compare("icmp eq", high, constant("i64", abi.SHARED_WINDOW >> 32))
    elif space == "local":
        result = builder.compare("icmp eq", high, constant("i64", _WINDOWS[space] >> 32))
    elif space == "param":
        offset = builder.binary("sub", body.operand(source, "i64"), body.context_field("params", "i64"))
        result = builder.compare("icmp ult", offset, constant("i64", max(1, body.layout.param_bytes)))
    elif space == "const":
        result = _is_constant(body, body.operand(source, "i64"))
    else:
        outside = builder.compare("icmp ult", high, constant("i64", abi.SHARED_WINDOW >> 32))
        is_constant = _is_constant(body, body.operand(source, "i64"))
        result = builder.select(is_constant, constant("i1", 0), outside)
    body.write(destination, result)


def _is_constant(body: Body, address: Value) -> Value:
    """Whether a generic address is in a constant variable that the kernel may name."""
    builder = body.builder
    result = constant("i1", 0)
    for name, place in body.layout.places.items():
        if place.space == "const":
            offset = builder.binary("sub", address, body.symbol(ast.Symbol(name)))
            inside = builder.compare("icmp ult", offset, constant("i64", max(1, place.size)))
            result = builder.binary("or", result, inside)
    return result


def _is_own_shared(body: Body, address: Value) -> Value:
    """Whether a generic address is in the block's own shared memory, by its rank or without one."""
    builder = body.builder
    place = builder.binary("lshr", address, constant("i64", abi.RANK_SHIFT))
    distance = builder.binary("sub", place, constant("i64", abi.SHARED_WINDOW >> abi.RANK_SHIFT))
    rank = builder.cast("zext", body.context_field("cluster_ctarank"), "i64")
    named = builder.compare("icmp eq", distance, builder.binary("add", rank, constant("i64", 1)))
    return builder.binary("or", builder.compare("icmp eq", distance, constant("i64", 0)), named)


@lowers("mapa")
def map_to_rank(body: Body, instruction: ast.Instruction) -> None:
    """``mapa``: the same place in the shared memory of the block with a rank; the block's own stays what it is."""
    builder = body.builder
    destination, source, rank = instruction.operands
    type = "i64" if instruction.modifiers[-1].endswith("64") else "i32"
    place = builder.binary("and", body.operand(source, type), constant(type, ~_RANK_BITS))
    asked = body.operand(rank, "i32")
    own = builder.compare("icmp eq", asked, body.context_field("cluster_ctarank"))
    known = builder.select(builder.compare("icmp ult", asked, constant("i32", 254)), asked, constant("i32", 254))
    named = builder.binary("add", known, constant("i32", 1))
    number = builder.select(own, constant("i32", 0), named)
    if type == "i64":
        number = builder.cast("zext", number, "i64")
    body.write(destination, builder.binary("or", place, builder.binary("shl", number, constant(type, abi.RANK_SHIFT))))


@lowers("getctarank")
def rank_of(body: Body, instruction: ast.Instruction) -> None:
    """``getctarank``."""
    builder = body.builder
    destination, source = instruction.operands
    type = "i64" if instruction.modifiers[-1].endswith("64") else "i32"
    address = body.operand(source, type)
    low = builder.cast("trunc", address, "i32") if type == "i64" else address
    number = builder.binary("and", builder.binary("lshr", low, constant("i32", abi.RANK_SHIFT)), constant("i32", 0xFF))
    own = builder.compare("icmp eq", number, constant("i32", 0))
    rank = builder.binary("sub", number, constant("i32", 1))
    body.write(destination, builder.select(own, body.context_field("cluster_ctarank"), rank))
