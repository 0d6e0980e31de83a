"""Accesses of elements of an array that is a pointer parameter: at the pointer plus an index times their size.

When threads run one by one (passes/walks.py), most of what they do is to look up such elements, and to check that they
may. How large an index may be is known once for each call of the body, by the allocation that the first such site
remembers from the calls before; then one comparison is the check. Where that fails, the usual check follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.threads.pointers import is_wide
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .bounds import Access, plan_groups

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body


@dataclass(frozen=True, slots=True)
class Element:
    """The registers with the pointer and the index, what widens the index, and the distance of two elements."""

    pointer: str
    index: str
    widening: str
    bytes: int


def plan_elements(block: Block) -> dict[int, Element]:
    """What each access of a block accesses, by the instruction's ``id``; the registers still hold it there."""
    products: dict[str, tuple[str, str, int]] = {}
    elements: dict[str, Element] = {}
    found: dict[int, Element] = {}
    for instruction, effect in zip(block.instructions, block.effects, strict=False):
        if instruction.guard is None:
            for operand in instruction.operands:
                if isinstance(operand, ast.Address) and isinstance(operand.base, ast.Register):
                    known = elements.get(operand.base.name)
                    if known is not None:
                        found[id(instruction)] = known
        for name in effect.writes:
            products = {into: parts for into, parts in products.items() if name not in (into, parts[0])}
            elements = {into: e for into, e in elements.items() if name not in (into, e.pointer, e.index)}
        if instruction.guard is not None:
            continue
        match instruction.opcode, instruction.operands:
            case "mul", (ast.Register(into), ast.Register(index), ast.Immediate(factor)) if into != index:
                widening = {"s32": "sext", "u32": "zext"}.get(instruction.modifiers[-1])
                if widening and "wide" in instruction.modifiers:
                    products[into] = index, widening, factor
            case "shl", (ast.Register(into), ast.Register(index), ast.Immediate(bits)) if into != index and bits < 16:
                if "b64" in instruction.modifiers:
                    products[into] = index, "", 1 << bits
            case "add", (ast.Register(into), ast.Register(x), ast.Register(y)) if is_wide(instruction):
                for pointer, product in ((x, y), (y, x)):
                    if product in products and into not in (pointer, products[product][0]):
                        elements[into] = Element(pointer, *products[product])
    return found


def is_within_reach(body: Body, access: Access, number: int, *, together: bool = False) -> str | None:
    """The i1 that says that an access of the only lane is inside, or that it has to be checked as usual.

    None when it accesses no such element, or is checked with others, unless all of them are asked for, ``together``.
    ``number`` is the site's.
    """
    if body.width > 1 or not body.whole_blocks or access.space not in ("global", "generic"):
        return None
    element = body.of_block(plan_elements).get(id(access.instruction))
    if element is None or element.pointer not in body.pointer_parameters or element.bytes != access.size:
        return None
    group = body.of_block(plan_groups).get(id(access.instruction))
    source = access.instruction.operands[0 if access.write else 1]
    assert isinstance(source, ast.Address)
    offsets = [offset for _, offset in group.accesses] if group is not None else [source.offset]
    if len(offsets) > 1 and (not together or group is None or len(group.early) < len(offsets)):
        return None
    if any(offset % access.size for offset in offsets):
        return None
    low, high = min(offsets) // access.size, max(offsets) // access.size
    builder = body.builder
    limit = within_reach(body, body.pointer_parameters[element.pointer], access, number, high - low)
    index = index_of(body, element)
    if low:
        index = builder.binary("add", index, constant("i64", low))
    return builder.compare("icmp ult", index, limit).ir


def index_of(body: Body, element: Element) -> Value:
    """The index of an element, as an i64."""
    index = body.registers.read(element.index, "i32" if element.widening else "i64")
    return body.builder.cast(element.widening, index, "i64") if element.widening else index


def within_reach(body: Body, place: int, access: Access, number: int, more: int = 0) -> Value:
    """How many elements there are behind the pointer at a place of the parameters that have so many behind them."""
    what = f"reach {place} {access.size} {access.write}"
    reach = body.at_entry(what, lambda b: _reach(body, b, place, access.size, number))
    if not more:
        return reach
    return body.at_entry(f"{what} {more}", lambda b: b.intrinsic("usub.sat", reach, constant("i64", more)))


def _reach(body: Body, b: Builder, place: int, size: int, number: int) -> Value:
    """How many elements there are behind a pointer in the allocation that a site remembers; 0 if it is not in there."""
    entry = b.emit(f"getelementptr i8, ptr %sites, i64 {number * abi.SITE_CACHE_BYTES}")
    low = body.load_field(b, entry, 0, "i64")
    limit = body.load_field(b, entry, 8, "i64")
    distance = b.binary("sub", body.parameter(place, "i64", 8), low)
    index = b.intrinsic("fshr", distance, distance, constant("i64", size.bit_length() - 1)) if size > 1 else distance
    return b.intrinsic("usub.sat", limit, index)
