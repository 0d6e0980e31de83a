"""The checks in front of memory accesses.

Each access site remembers the allocation that it touched last (abi.h), so that the usual check is one subtraction, one
rotation (which makes a misaligned offset enormous) and one comparison. When it fails a helper decides, and names
the first lane that is at fault. Only the helper knows that the end of a vector may not be wanted (`_unused_elements`).

Unrolled loops access many places at constant distances. Those of one block that use the same value of the same register
form a *group*, which is checked once, at its first access: the lowest and the highest place are inside the same
allocation, so all are. Where some of them store, the site of the first one remembers only what may be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.instructions.registry import LLVM_TYPE
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .addresses import space_of

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_COUNTS = {"v2": 2, "v4": 4, "v8": 8}
_STRONG = frozenset(["volatile", "relaxed", "acquire", "release", "mmio", "sc", "cv"])


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction does to memory.

    ``type`` is the LLVM type of an element, ``count`` the elements of one lane, ``size`` their bytes.
    """

    instruction: ast.Instruction
    space: str
    type: str
    count: int
    write: bool
    volatile: bool

    @classmethod
    def of(cls, instruction: ast.Instruction, *, write: bool) -> Access:
        """The access of a load, a store or an atomic operation."""
        modifiers = instruction.modifiers
        type = LLVM_TYPE[next(m for m in reversed(modifiers) if m in LLVM_TYPE)]
        count = next((_COUNTS[m] for m in modifiers if m in _COUNTS), 1)
        return cls(instruction, space_of(instruction), type, count, write, is_strong(instruction))

    @property
    def element(self) -> int:
        return BITS[self.type] // 8

    @property
    def size(self) -> int:
        return self.element * self.count


def is_strong(instruction: ast.Instruction) -> bool:
    """Whether other threads may be watching: an access happens as it is written, and what is behind it later."""
    return not _STRONG.isdisjoint(instruction.modifiers)


@dataclass(slots=True)
class Group:
    """Accesses of one block at constant distances from each other.

    ``verdict`` is the i1 that says that all are inside, once the first access has been written; in shared memory,
    ``pointer`` is then the place with offset 0. Where lanes are at known distances, ``lowest`` is the lowest place of
    all, and ``windows`` has what was loaded for the early ones (spans.py). ``early`` are the loads that nothing else
    that touches memory comes before, since the first access, so that they may be done together with it.
    """

    accesses: list[tuple[Access, int]] = field(default_factory=list)
    early: list[tuple[Access, int]] = field(default_factory=list)
    effects: int = 0
    stores: bool = False
    verdict: str = ""
    pointer: str = ""
    lowest: str = ""
    windows: dict[tuple[str, int, int], str] = field(default_factory=dict)

    def offset(self, access: Access) -> int:
        return next(offset for other, offset in self.accesses if other.instruction is access.instruction)


def plan_groups(block: Block) -> dict[int, Group]:
    """The group of each load and store of a block, by the instruction's ``id``."""
    versions: dict[str, int] = {}
    groups: dict[tuple[object, ...], Group] = {}
    found: dict[int, Group] = {}
    epoch = touched = 0
    for instruction, effect in zip(block.instructions, block.effects, strict=False):
        does = instruction.description
        epoch += does.may_end  # what comes behind may never happen
        touched += does.loads == "stay"
        if does.joins and instruction.guard is None:
            access = Access.of(instruction, write=does.writes_memory)
            operand = instruction.operands[0 if access.write else 1]
            if isinstance(operand, ast.Address) and isinstance(operand.base, ast.Register):
                name = operand.base.name
                key = (access.space, access.size, name, versions.get(name, 0), epoch)
                group = groups.setdefault(key, Group(effects=touched))
                group.accesses.append((access, operand.offset))
                group.stores |= access.write
                found[id(instruction)] = group
                if group.effects == touched and not access.write and not access.volatile:
                    group.early.append((access, operand.offset))
        for name in effect.writes:
            versions[name] = versions.get(name, 0) + 1
    return found


def site_of(body: Body, access: Access, *, row: bool) -> tuple[int, int]:
    """A new site: its number, and its description for the helpers."""
    number = body.new_site(access.instruction, access.space, access.size, write=access.write)
    group = body.of_block(plan_groups).get(id(access.instruction))
    return number, abi.pack_site(
        number,
        access.size,
        access.element,
        access.space,
        write=access.write,
        contiguous=row,
        for_stores=group is not None and group.stores,
        strong=access.volatile,
        unused=_unused_elements(body, access),
    )


def _unused_elements(body: Body, access: Access) -> int:
    """How many elements at the end of a vector load go to registers which nothing reads.

    NVIDIA's compilers load an aligned vector where a program reads only its beginning. The rest may be outside of the
    allocation, which is not a fault on a GPU.
    """
    destination = access.instruction.operands[0]
    if access.write or not isinstance(destination, ast.Vector):
        return 0
    unused = 0
    for item in reversed(destination.items[1:]):
        if isinstance(item, ast.Register) and item.name in body.read_registers:
            break
        unused += 1
    return unused


def check(body: Body, access: Access, site: int, first: Value, *, row: bool) -> str:
    """Whether the access, or the row of accesses of all lanes, that begins at a uniform address is inside (an i1)."""
    group = body.of_block(plan_groups).get(id(access.instruction))
    if group is None or len(group.accesses) == 1 or body.control.is_guarded:
        return inside(body, access, site, first, row=row)
    if not group.verdict:
        here = group.offset(access)
        offsets = [offset for _, offset in group.accesses]
        tests = [
            inside(body, access, site, _moved(body, first, place - here), row=row)
            for place in sorted({min(offsets), max(offsets)})
        ]
        group.verdict = tests[0]
        for test in tests[1:]:
            group.verdict = body.builder.both(group.verdict, test)
    return group.verdict


def pointer_in_shared(body: Body, access: Access, first: Value, *, row: bool) -> str:
    """Check an access of shared memory; the pointer to its first place.

    All lanes that run are inside then. Others may be outside, but there is room around shared memory for a row.
    """
    builder, control = body.builder, body.control
    group = None if control.is_guarded else body.of_block(plan_groups).get(id(access.instruction))
    if group is None:
        group = Group([(access, 0)])
    here = group.offset(access)
    if not group.pointer:
        start = builder.binary("sub", first, constant(first.type, here)) if here else first
        size = access.size
        _check_group(body, access, group, start, size * body.width if row else size, step=row * size)
        # Signed, because lane 0 of a row may be in front of shared memory when it does not run.
        distance = builder.cast("sext", start, "i64")
        group.pointer = builder.emit(f"getelementptr i8, ptr %shared, i64 {distance.ir}")
    return builder.emit(f"getelementptr i8, ptr {group.pointer}, i64 {here}") if here else group.pointer


def lowest_in_shared(
    body: Body, access: Access, first: Value, distances: Sequence[int], reach: int
) -> tuple[str, int, Group]:
    """Check an access of shared memory whose lanes are ``distances`` behind ``first``, the lowest place.

    ``reach`` is how many bytes there are from there to the end of the last place. Returns the pointer to the lowest
    place of the group, how far behind it this access begins, and the group. For lanes that do not run see
    `pointer_in_shared`.
    """
    builder, control = body.builder, body.control
    group = None if control.is_guarded else body.of_block(plan_groups).get(id(access.instruction))
    if group is None:
        group = Group([(access, 0)])
    here, lowest = group.offset(access), min(offset for _, offset in group.accesses)
    if not group.lowest:
        start = _moved(body, first, -here)
        _check_group(body, access, group, start, reach, distances=distances)
        distance = builder.cast("sext", _moved(body, start, lowest), "i64")
        group.lowest = builder.emit(f"getelementptr i8, ptr %shared, i64 {distance.ir}")
    return group.lowest, here - lowest, group


def _moved(body: Body, address: Value, offset: int) -> Value:
    return body.builder.binary("add", address, constant(address.type, offset)) if offset else address


def _check_group(
    body: Body,
    access: Access,
    group: Group,
    start: Value,
    reach: int,
    *,
    step: int = 0,
    distances: Sequence[int] = (),
) -> None:
    """Check all accesses of a group in shared memory.

    Each one's bytes, ``reach`` of them, begin at its offset from ``start``; the lanes are ``step`` apart or at
    ``distances``.
    """
    builder, control = body.builder, body.control
    offsets = [offset for _, offset in group.accesses]
    verdict = "true"
    for offset in sorted({min(offsets), max(offsets)}):
        verdict = builder.both(verdict, shared_fits(body, access, _moved(body, start, offset), reach))
    careful, go_on = builder.new_label("careful"), builder.new_label("inside")
    builder.line(f"br i1 {verdict}, label %{go_on}, label %{careful}, !prof !1")
    builder.label(careful)
    checks = [(site_of(body, member, row=bool(step))[1], offset) for member, offset in group.accesses]
    if distances:
        table = body.table("i64", [number for check in checks for number in check])
        lanes = body.table("i32", distances)
        builder.declarations["declare i32 @cupola_check_places(ptr, ptr, i32, i32, ptr, ptr, i32)"] = None
        status = builder.emit(
            f"call i32 @cupola_check_places(ptr %context, ptr %warp, i32 {control.lanes().ir}, {builder.typed(start)}, "
            f"ptr {lanes}, ptr {table}, i32 {len(checks)})"
        )
    elif len(checks) == 1:
        ((packed, _),) = checks
        builder.declarations["declare i32 @cupola_check(ptr, ptr, i64, i32, i32, i32)"] = None
        status = builder.emit(
            f"call i32 @cupola_check(ptr %context, ptr %warp, i64 {packed}, i32 {control.lanes().ir}, "
            f"{builder.typed(_moved(body, start, checks[0][1]))}, i32 {step})"
        )
    else:
        table = body.table("i64", [number for check in checks for number in check])
        builder.declarations["declare i32 @cupola_check_all(ptr, ptr, i32, i32, i32, ptr, i32)"] = None
        status = builder.emit(
            f"call i32 @cupola_check_all(ptr %context, ptr %warp, i32 {control.lanes().ir}, {builder.typed(start)}, "
            f"i32 {step}, ptr {table}, i32 {len(checks)})"
        )
    control.fault_if(builder.emit(f"icmp ne i32 {status}, 0"))
    builder.line(f"br label %{go_on}")
    builder.label(go_on)


def inside(body: Body, access: Access, site: int, address: Value, *, row: bool) -> str:
    """Whether one access, or a row of them, that begins at a uniform address is inside (an i1)."""
    builder, size = body.builder, access.size
    if access.space == "shared":
        return shared_fits(body, access, address, size * body.width if row else size)
    if access.space == "local":
        aligned = builder.compare(
            "icmp eq", builder.binary("and", address, constant("i32", size - 1)), constant("i32", 0)
        )
        limit = constant("i32", max(0, body.layout.local_bytes - size + 1))
        if body.layout.has_stack:
            beyond = body.context_field("local_size")
            limit = body.at_entry(
                f"local limit {size}",
                lambda b: b.intrinsic("usub.sat", beyond, constant("i32", size - 1)),
            )
        return builder.both(builder.compare("icmp ult", address, limit).ir, aligned.ir)
    entry = builder.emit(f"getelementptr i8, ptr %sites, i64 {site * abi.SITE_CACHE_BYTES}")
    return in_allocation(builder, entry, address, size)


def in_allocation(builder: Builder, entry: str, address: Value, size: int) -> str:
    """Whether an access, or a row, is in the allocation that an entry of the site caches remembers (an i1)."""
    low = Value(builder.emit(f"load i64, ptr {entry}"), "i64")
    second = builder.emit(f"getelementptr i8, ptr {entry}, i64 8")
    limit = Value(builder.emit(f"load i64, ptr {second}"), "i64")
    offset = rotated(builder, builder.binary("sub", address, low), size)
    return builder.compare("icmp ult", offset, limit).ir


def shared_fits(body: Body, access: Access, first: Value, span: int) -> str:
    """Whether ``span`` bytes from a uniform offset on, a multiple of the size, are inside shared memory (an i1)."""
    size = access.size
    limit = body.at_entry(
        f"shared limit {size} {span}",
        lambda b: shared_limit(b, body.context_field("shared_size"), size, span),
    )
    return in_shared(body.builder, first, limit, size)


def in_shared(builder: Builder, offset: Value, limit: Value, size: int) -> str:
    """Whether an access at an offset in shared memory is inside (an i1); the limit is `shared_limit`'s."""
    return builder.compare("icmp ult", rotated(builder, offset, size), limit).ir


def shared_limit(builder: Builder, shared_size: Value, size: int, span: int) -> Value:
    """How many multiples of ``size`` are offsets at which ``span`` bytes are inside shared memory."""
    beyond = builder.binary("add", shared_size, constant("i32", size))
    room = builder.intrinsic("usub.sat", beyond, constant("i32", span))
    return builder.binary("lshr", room, constant("i32", size.bit_length() - 1))


def rotated(builder: Builder, offset: Value, size: int) -> Value:
    """An offset as the number of an element of the size: enormous, if it is not aligned."""
    if size == 1:
        return offset
    return builder.intrinsic("fshr", offset, offset, constant(offset.type, size.bit_length() - 1))
