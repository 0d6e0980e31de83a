"""Races, reads of what nobody has written, and wrong use of what synchronizes: helpers are told what threads do.

The helpers are in ``engine/checks``, which says what is checked. What they cannot see of accesses by helpers of the
engine, such as bulk copies, those tell themselves.
"""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.memory.addresses import address_of, space_of
from cupola.cpu.compiler.emit.memory.copies import is_partial
from cupola.cpu.compiler.emit.memory.mbarriers import shared_address
from cupola.cpu.compiler.emit.memory.memory import lane_addresses
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes.intervals import calm_loads
from cupola.cpu.compiler.ptx import ast

from .instrument import Instrument, MemoryAccess, instructions_of
from .padding import padding_loads

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from cupola.cpu.compiler.emit.control.body import Facts

PLAIN, STRONG, ATOMIC, COPY = range(4)
ACQUIRES, RELEASES, ORDERS, COPIES = 4, 8, 16, 32
"""``enum cpu_access_kind`` and the bits beside it (engine/checks/access.h)."""

_ACQUIRING, _RELEASING = frozenset(["acquire", "acq_rel", "sc"]), frozenset(["release", "acq_rel", "sc"])
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
_MEETS = frozenset(["bar", "barrier", "mbarrier", "call"])
_STRONG = frozenset(["acquire", "acq_rel", "sc", "relaxed", "volatile", "mmio"])
_LEARNS = frozenset(["atom", "mbarrier", "barrier"])
_ORDERS_NOTHING = frozenset(["proxy", "mbarrier_init"])


class Accesses(Instrument):
    """What races and reads of unset memory have in common: they see each access."""

    of_any_width = True
    sees_all = True
    asks_for_pointers = True

    def access(self, access: MemoryAccess) -> None:
        instruction = access.instruction
        words = instruction.modifiers
        if access.space in ("const", "param") or instruction.opcode == "mbarrier" or not self._is_first():
            return
        is_fetch = instruction.opcode == "cp" and access.reads
        if is_fetch and is_partial(instruction):
            return  # how much is read is not known here: the copy itself tells (engine/instructions/bulk.c)
        if id(instruction) in self._calm:
            return
        lanes = self.lanes
        if instruction.opcode in ("ldmatrix", "stmatrix"):
            rows = next(8 * _COUNTS[word] for word in words if word in _COUNTS)
            lanes = self.builder.binary("and", lanes, constant("i32", (1 << rows) - 1))
        # NVRTC drops volatile from accesses to other blocks' shared memory, so each of them may be meant as one.
        is_strong = access.strong or access.space == "cluster"
        kind = ATOMIC if access.atomic else STRONG if is_strong else PLAIN
        if instruction.opcode == "cp" and access.writes:
            kind = COPY
        if kind == ATOMIC and self._orders:
            kind |= ORDERS
        kind |= COPIES * (is_fetch or id(instruction) in self._padding)
        kind |= ACQUIRES * (not _ACQUIRING.isdisjoint(words)) | RELEASES * (not _RELEASING.isdisjoint(words))
        address = address_of(self.body, instruction.operands[access.operand], access.space)
        with self._unless_quiet(instruction):
            self._tell_place(access, address, f"i64 {self._packed(access)}", f"i32 {lanes.ir}", f"i32 {kind}")
        if kind & 3 == COPY:
            self._tell("copy", f"i32 {lanes.ir}", f"i32 {access.size}", f"ptr {self.addresses(access)}")
        if is_fetch and any(isinstance(each, Init) for each in self.body.instruments):
            target = address_of(self.body, instruction.operands[0], "shared")
            to = lane_addresses(self.body, target, "instrument.targets")
            where = (f"ptr {to}", f"ptr {self.addresses(access)}")
            self._tell("spread", f"i32 {lanes.ir}", f"i32 {access.size}", *where)

    @contextlib.contextmanager
    def _unless(self, test: Value) -> Iterator[None]:
        """What is written inside runs unless an i1 is true."""
        builder = self.builder
        told, silent = builder.new_label("told"), builder.new_label("silent")
        builder.line(f"br i1 {test.ir}, label %{silent}, label %{told}")
        builder.label(told)
        yield
        builder.line(f"br label %{silent}")
        builder.label(silent)

    @contextlib.contextmanager
    def _unless_quiet(self, instruction: ast.Instruction) -> Iterator[None]:
        """What is written inside runs unless the launch says that nothing can be wrong with an access."""
        pointers, builder = self.body.pointers, self.builder
        group = pointers.groups.get(id(instruction)) if pointers is not None else None
        if group is None:
            yield
            return
        bit = builder.binary("and", self.body.context_field("quiet", "i64"), constant("i64", 1 << group))
        with self._unless(builder.compare("icmp ne", bit, constant("i64", 0))):
            yield

    @cached_property
    def _calm(self) -> Container[int]:
        """Loads that cannot be races, where nothing else is checked."""
        if any(isinstance(each, Init) for each in self.body.instruments):
            return ()
        return calm_loads(self.body.blocks, self.body.pointers.groups if self.body.pointers is not None else ())

    @cached_property
    def _padding(self) -> Container[int]:
        """Loads of what lies between the members of structures, which nobody writes."""
        is_asked = any(isinstance(each, Init) for each in self.body.instruments)
        return padding_loads(self.body.blocks) if is_asked else ()

    @cached_property
    def _orders(self) -> bool:
        """Whether the kernel has anything by which an atomic operation tells others of what came before it."""
        code = (i for block in self.body.blocks for i in block.code())
        return any(i.opcode in ("fence", "membar") or not _RELEASING.isdisjoint(i.modifiers) for i in code)

    def _tell_place(self, access: MemoryAccess, address: Value, *what: str) -> None:
        """Tell an access, by the first address and the step where the lanes are on a line."""
        builder, line = self.builder, address.affine
        if not address.vector:
            first = builder.cast("zext", address, "i64")
            self._tell("line", *what, builder.typed(first), "i64 0")
        elif line is not None and (line.exact == "true" or access.space in ("shared", "local")):
            first = builder.cast("sext", Value(line.base, address.type), "i64")
            self._tell("line", *what, builder.typed(first), f"i64 {line.stride}")
        elif line is not None and line.origin is not None:
            origin = line.origin
            narrow = builder.cast("sext" if origin.signed else "zext", Value(origin.narrow, origin.type), "i64")
            kind = origin.step & 0xFFFFFFFF | BITS[origin.type] << 32 | origin.signed << 40
            first = builder.cast("sext", Value(line.base, address.type), "i64")
            more = (builder.typed(first), f"i64 {line.stride}", builder.typed(narrow), f"i64 {kind}")
            self._tell("wrapping", *what, *more, f"i64 {origin.scale}")
        else:
            buffer = lane_addresses(self.body, address, "instrument.addresses")
            self._tell("access", *what, f"ptr {buffer}")

    def _is_first(self) -> bool:
        """Whether this is the one of the body's instruments that tells accesses, for all of them."""
        return self is next(each for each in self.body.instruments if isinstance(each, Accesses) and each.sees_all)

    def _packed(self, access: MemoryAccess) -> int:
        element = min(access.size, self._element(access))
        return abi.pack_site(
            min(self.number(access.instruction), 0x7FFE),
            access.size,
            element,
            access.space,
            write=access.writes,
            contiguous=False,
            unused=self._unused(access.instruction),
        )

    @staticmethod
    def _element(access: MemoryAccess) -> int:
        value = next((o for o in access.instruction.operands if isinstance(o, ast.Vector)), None)
        is_plain = access.instruction.opcode in ("ld", "ldu", "st", "atom", "red")
        return access.size // len(value.items) if value is not None and is_plain else min(access.size, 16)

    def _unused(self, instruction: ast.Instruction) -> int:
        destination = instruction.operands[0] if instruction.operands else None
        if instruction.opcode not in ("ld", "ldu") or not isinstance(destination, ast.Vector):
            return 0
        unused = 0
        for item in reversed(destination.items[1:]):
            if isinstance(item, ast.Register) and item.name in self.body.read_registers:
                break
            unused += 1
        return unused

    def _tell(self, what: str, *arguments: str) -> None:
        types = "".join(f", {argument.split()[0]}" for argument in arguments)
        self.builder.declarations[f"declare void @cupola_watch_{what}(ptr, ptr{types})"] = None
        self.builder.line(f"call void @cupola_watch_{what}(ptr %context, ptr %warp, {', '.join(arguments)})")


class Init(Accesses):
    """Reads of what nobody has written."""


class Race(Accesses):
    """Accesses that nothing orders."""

    def instruction(self, instruction: ast.Instruction) -> None:
        lanes, words = self.lanes_of(instruction), instruction.modifiers
        if instruction.opcode in ("membar", "fence"):
            if _ORDERS_NOTHING.isdisjoint(word.partition("::")[0] for word in words):
                self._tell("fence", f"i32 {lanes.ir}")
        elif instruction.opcode == "cp" and "bulk" not in words:
            self._copies(instruction, lanes, words)
        elif instruction.opcode == "cp" and "commit_group" in words:
            self._tell("bulk_commit", f"i32 {lanes.ir}")
        elif instruction.opcode == "cp" and "wait_group" in words:
            count = instruction.operands[0]
            assert isinstance(count, ast.Immediate)
            self._tell("bulk_group", f"i32 {lanes.ir}", f"i32 {count.value}", f"i32 {int('read' in words)}")

    def _copies(self, instruction: ast.Instruction, lanes: Value, words: Iterable[str]) -> None:
        if "commit_group" in words:
            self._tell("commit", f"i32 {lanes.ir}")
        elif "wait_all" in words:
            self._tell("group", f"i32 {lanes.ir}", "i32 -1")
        elif "wait_group" in words:
            count = instruction.operands[0]
            assert isinstance(count, ast.Immediate)
            self._tell("group", f"i32 {lanes.ir}", f"i32 {count.value}")
        elif "mbarrier" in words:
            address = shared_address(self.body, instruction.operands[0], space_of(instruction))
            buffer = lane_addresses(self.body, address, "instrument.addresses")
            self._tell("follow", f"i32 {lanes.ir}", f"ptr {buffer}")

    def met(self, instruction: ast.Instruction, members: Value | None = None) -> None:
        if instruction.opcode == "bar" or (self._acquires and not instruction.description.whole_warp):
            _meet(self, instruction, members)

    @cached_property
    def _acquires(self) -> bool:
        """Whether a thread can learn of what others have done, other than by a barrier of all, to hand it on."""
        code = (i for block in self.body.blocks for i in block.code())
        return any(i.opcode in _LEARNS or not _STRONG.isdisjoint(i.modifiers) for i in code)


class Sync(Accesses):
    """Operations of warps whose masks name other threads than there are; the scheduler sees barriers."""

    sees_all = False

    @classmethod
    def observes(cls, facts: Facts) -> bool:
        code = instructions_of(facts)
        return any(i.description.waits != "no" or "sync" in i.modifiers or i.opcode in _MEETS for i in code)

    def access(self, access: MemoryAccess) -> None:
        pass

    def leave(self, lanes: Value) -> None:
        if self.body.independent:
            self._tell("leave", f"i32 {lanes.ir}")

    def met(self, instruction: ast.Instruction, members: Value | None = None) -> None:
        race = next((each for each in self.body.instruments if isinstance(each, Race)), None)
        told = race is not None and (instruction.opcode == "bar" or race._acquires)
        if not told and not instruction.description.whole_warp:
            _meet(self, instruction, members)


def _meet(self: Accesses, instruction: ast.Instruction, members: Value | None) -> None:
    named = self.body.operand(instruction.operands[-1], "i32") if members is None else members
    orders = 0 if not isinstance(self, Race) else 1 if instruction.opcode == "bar" else 2
    number, lanes = self.number(instruction), self.lanes
    # Where all are there whom all of them name, as nearly always, there is nothing to tell.
    is_fine = self.builder.compare("icmp eq", named, lanes) if named.uniform and not orders else constant("i1", 0)
    with self._unless(is_fine) if not is_fine.is_constant else contextlib.nullcontext():
        buffer = self.body.spill("instrument.members", named)
        self._tell("met", f"i32 {lanes.ir}", f"ptr {buffer}", f"i32 {number}", f"i32 {orders}")
