"""What every instrument is: where the emitter calls it, and what it can write there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.memory.addresses import address_of, space_of
from cupola.cpu.compiler.emit.memory.bounds import Access
from cupola.cpu.compiler.emit.memory.memory import lane_addresses
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body, Facts
    from cupola.cpu.compiler.passes import Block

ROW_BYTES = 16
"""What each lane of ``ldmatrix`` and ``stmatrix`` names the address of: a row of a matrix."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """One place in memory for each lane that an instruction touches, while its code is written.

    Attributes
    ----------
    instruction
        With the line of the CUDA source, through inlining, in its ``location``.
    operand
        Which operand of it names the address.
    space
        ``"global"``, ``"shared"``, ``"local"``, ``"const"``, ``"param"``, ``"cluster"`` or ``"generic"``.
    size
        Bytes that a lane touches.
    reads, writes
        Both for an atomic operation.
    atomic
        An atomic operation, or an operation on an mbarrier.
    strong
        Volatile, relaxed or stronger.
    """

    instruction: ast.Instruction
    operand: int
    space: str
    size: int
    reads: bool
    writes: bool
    atomic: bool
    strong: bool


def instructions_of(facts: Facts) -> list[ast.Instruction]:
    """The instructions of a kernel by their numbers (`Instrument.number`), which are the same in both bodies."""
    return [instruction for block in facts.analysis.blocks for instruction in block.code()]


def accesses_of(instruction: ast.Instruction) -> Iterator[MemoryAccess]:
    """What an instruction accesses by addresses of its lanes.

    These are loads, stores, atomic operations, ``cp.async``, matrix loads and stores, and mbarriers. Instructions that
    touch memory in another way (bulk and tensor copies, textures, wgmma) are for `Instrument.instruction`.
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in ("ld", "ldu", "st", "atom", "red") and not {"async", "bulk"} & set(modifiers):
        atomic = opcode in ("atom", "red")
        plain = Access.of(instruction, write=opcode == "st")
        place = next(i for i, operand in enumerate(instruction.operands) if isinstance(operand, ast.Address))
        reads, writes = atomic or opcode != "st", atomic or opcode == "st"
        yield MemoryAccess(instruction, place, plain.space, plain.size, reads, writes, atomic, atomic or plain.volatile)
    elif opcode == "cp" and modifiers[0] == "async" and len(modifiers) > 1 and modifiers[1] in ("ca", "cg"):
        size = instruction.operands[2]
        if isinstance(size, ast.Immediate):
            yield MemoryAccess(instruction, 0, "shared", size.value, False, True, False, False)
            yield MemoryAccess(instruction, 1, "global", size.value, True, False, False, False)
    elif opcode in ("ldmatrix", "stmatrix"):
        place = next(i for i, operand in enumerate(instruction.operands) if isinstance(operand, ast.Address))
        space, load = space_of(instruction), opcode == "ldmatrix"
        yield MemoryAccess(instruction, place, space, ROW_BYTES, load, not load, False, False)
    elif opcode == "mbarrier":
        for place, operand in enumerate(instruction.operands):
            if isinstance(operand, ast.Address):
                yield MemoryAccess(instruction, place, space_of(instruction), 8, True, True, True, True)


class Instrument:
    """Something that observes a kernel; one object for each body that is written.

    The emitter calls the methods below where it writes the code in question, and what they write runs there, with the
    threads in `lanes`. They must not change registers, masks or control flow: straight code, calls of helpers with
    `call`, and `count` do not. A body with instruments has units of 32 threads, warps as the hardware has them, and
    one call of it runs one unit (``whole_blocks`` is false), so ``%warp`` is the unit's own and ``%context`` tells its
    block. Instructions come block by block, each once in each body; a body may be written several times, and the last
    one counts.

    The *convergent* body runs an instruction once for all threads that are there together. If threads of a warp wait
    for each other inside divergent code, the warp goes on in the *independent* body (engine/abi.h), in which groups of
    threads run ahead in turn. Numbers are the same in both.

    Parameters
    ----------
    body
        The body that is being written.
    first
        The first of its counters in the table of all instruments of the body.

    Attributes
    ----------
    body : Body
    builder : Builder
        Of the body: writes LLVM IR.
    numbers : dict of int to int
        The number of each instruction by its ``id``; see `number`.
    """

    def __init__(self, body: Body, first: int) -> None:
        self.body = body
        self.builder = body.builder
        self._first = first
        self.frame_offset = 0
        self.numbers = {id(instruction): i for i, instruction in enumerate(instructions_of(body.facts))}

    # For the class to say

    of_any_width = False
    """Whether units may have less than 32 threads, and one call of the body may run several units (`OF_ANY_WIDTH`)."""

    keeps_registers = False
    """Whether all registers have a place in the frame, and the independent body alone is written."""

    asks_for_pointers = False
    """Whether `Body.pointers` is wanted."""

    @classmethod
    def observes(cls, facts: Facts) -> bool:
        """Whether a kernel has anything for it; if not, the code is as if it were off."""
        return True

    @classmethod
    def counters_of(cls, facts: Facts) -> int:
        """How many counters of 64 bits it needs for a kernel: from the kernel alone, so that both bodies agree.

        Each launch starts with zeros. When it is over, also after a fault, its counters are added to those of earlier
        launches with the same grid and blocks; `cupola.cpu.compiler.modules.take_counts` returns them.
        """
        return 0

    @classmethod
    def frame_bytes_of(cls, facts: Facts) -> int:
        """How many bytes it needs for each warp of a block that runs (`memory`), from the kernel alone, too."""
        return 0

    # Where the emitter calls it

    def enter(self, lanes: Value) -> None:
        """A unit begins to run the kernel; ``lanes``: the threads that it has."""

    def leave(self, lanes: Value) -> None:
        """Threads exit."""

    def block(self, block: Block) -> None:
        """A basic block begins; `lanes` are the threads that run it."""

    def instruction(self, instruction: ast.Instruction) -> None:
        """An instruction comes next; for the threads that run it see `lanes_of`.

        Barriers, warp operations, branches and exits are told here, too, when threads arrive there; those that have
        to wait for others have not yet waited. For meetings of a warp see also `met`.
        """

    def access(self, access: MemoryAccess) -> None:
        """An instruction is about to touch memory (see `accesses_of`), for the threads in `lanes`.

        Those have passed the guard of the instruction, but not yet the check of its address.
        """

    def met(self, instruction: ast.Instruction, members: Value | None = None) -> None:
        """The threads of a warp that an instruction names in its mask are all there; `lanes` are those.

        This is for ``shfl.sync`` and the like, and ``bar.warp.sync`` in convergent code. Where threads have come along
        different paths to several instructions with the same qualifiers (`gatherings`), ``instruction`` is one of
        these, and ``members`` the masks that they have named; else it is None, and the mask is the last operand. It is
        not called for ``bar.warp.sync`` in the independent body (``cupola_warp_park``), nor for barriers of a block:
        the scheduler completes these.
        """

    def branch(self, block: Block, way: int, lanes: Value) -> None:
        """Threads go one of the ways of the conditional branch at the end of a block.

        ``way`` is 0 for the threads for which the condition holds and 1 for the others; of ``brx.idx``, the place of
        the target. Called for each of the ways; ``lanes`` may be none of them.
        """

    def accesses(self, instruction: ast.Instruction) -> None:
        """Call `access` for each of an instruction's."""
        for access in accesses_of(instruction):
            self.access(access)

    # What it can write

    @property
    def lanes(self) -> Value:
        """The threads that run what is being written, an i32."""
        return self.body.control.lanes()

    def lanes_of(self, instruction: ast.Instruction) -> Value:
        """In `instruction`: the threads that run it, an i32; those that its guard keeps away are not among them."""
        control, builder = self.body.control, self.builder
        if instruction.guard is None or control.is_guarded:
            return control.lanes()
        condition = self.body.guard(instruction.guard)
        if condition.vector:
            return builder.binary("and", control.lanes(), builder.ballot(condition))
        return builder.select(condition, control.lanes(), constant("i32", 0))

    def number(self, instruction: ast.Instruction) -> int:
        """The number of an instruction: what helpers are told, and what `instructions_of` finds it by again."""
        return self.numbers[id(instruction)]

    def population(self, lanes: Value) -> Value:
        """How many threads a mask has, an i64."""
        self.builder.declarations["declare i32 @llvm.ctpop.i32(i32)"] = None
        count = Value(self.builder.emit(f"call i32 @llvm.ctpop.i32(i32 {lanes.ir})"), "i32")
        return self.builder.cast("zext", count, "i64")

    def any(self, lanes: Value) -> Value:
        """1 if a mask has any threads, else 0, an i64."""
        return self.builder.cast("zext", self.builder.compare("icmp ne", lanes, constant("i32", 0)), "i64")

    def counter(self, number: int) -> str:
        """The pointer to one of its counters; each worker thread has its own, so plain loads and stores will do."""
        table = self.body.context_field("counters", "ptr")
        return self.builder.emit(f"getelementptr i64, ptr {table.ir}, i64 {self._first + number}")

    def memory(self, offset: int) -> str:
        """A pointer into its bytes of the warp, which both bodies share; what is in them when `enter` is called is
        whatever was there."""
        return self.builder.emit(f"getelementptr i8, ptr %frame, i64 {self.frame_offset + offset}")

    def count(self, number: int, amount: Value) -> None:
        """Add an i64 to one of its counters."""
        place = self.counter(number)
        before = Value(self.builder.emit(f"load i64, ptr {place}"), "i64")
        self.builder.line(f"store i64 {self.builder.binary('add', before, amount).ir}, ptr {place}")

    def addresses(self, access: MemoryAccess) -> str:
        """A pointer to the address of each lane, 32 times 64 bits; those of lanes that do not run mean nothing.

        In shared and local memory these are offsets in the windows of the block and of the thread, 32 bits that were
        widened; generic addresses have the window's address added (engine.h).
        """
        operand = access.instruction.operands[access.operand]
        address = address_of(self.body, operand, access.space)
        return lane_addresses(self.body, address, "instrument.addresses")

    def call(self, helper: str, *arguments: str) -> None:
        """Call ``void helper(cpu_context *, cpu_warp *, uint32_t lanes, ...)`` with further typed arguments."""
        types = "".join(f", {argument.split()[0]}" for argument in arguments)
        self.builder.declarations[f"declare void @{helper}(ptr, ptr, i32{types})"] = None
        given = "".join(f", {argument}" for argument in arguments)
        self.builder.line(f"call void @{helper}(ptr %context, ptr %warp, i32 {self.lanes.ir}{given})")
