"""Which parameters the addresses of a kernel come from: what lets checks pass over memory that a launch only reads.

An address comes from a parameter of 64 bits by arithmetic. What is loaded from memory, put together of halves, or
returned by a function may point anywhere; then nothing is said about the access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from cupola.cpu.compiler.ptx import ast

MOST = 63
"""Sets of parameters for one kernel: they are bits of a number."""

_WIDE = frozenset(["b64", "u64", "s64", "f64"])
_FOLLOWED = frozenset(["ld", "ldu", "st", "atom", "red"])
_TELLING = frozenset(["st", "atom", "red", "membar", "fence"])
_SILENT = frozenset(["vprintf", "__assertfail", "malloc", "free"])
"""Functions outside of the program."""
_IN_SHARED = frozenset(["stmatrix", "mbarrier"])

_Sources = frozenset[int] | None
_NOTHING: frozenset[int] = frozenset()


@dataclass(slots=True)
class Pointers:
    """What is known of a kernel's accesses to global memory.

    Attributes
    ----------
    groups
        For accesses whose addresses come from parameters alone, by ``id``: a number of `sets`.
    sets
        Whether accesses write, and the offsets of the parameters that their addresses come from.
    is_complete
        All writes to global memory are among them.
    tells_host
        There are stores or fences by which the host may learn of something while the kernel runs.
    """

    groups: dict[int, int] = field(default_factory=dict)
    sets: list[tuple[bool, tuple[int, ...]]] = field(default_factory=list)
    is_complete: bool = True
    tells_host: bool = False

    def flat(self) -> tuple[int, ...]:
        """For the engine: whether all writes are known, the host is told; of each set if it writes, length, offsets."""
        numbers = [self.is_complete | self.tells_host << 1]
        for writes, offsets in self.sets:
            numbers += [int(writes), len(offsets), *offsets]
        return tuple(numbers)


def pointers(code: Iterable[ast.Instruction], offset_of: Callable[[str], int | None]) -> Pointers:
    """Follow pointers from parameters to accesses, whatever the order of the blocks.

    Parameters
    ----------
    code
        The instructions of a kernel.
    offset_of
        Where a parameter is among the parameters; None for what is none.
    """
    instructions = list(code)
    sources = _sources(instructions, offset_of)
    found = Pointers()
    known: dict[tuple[bool, tuple[int, ...]], int] = {}
    for instruction in instructions:
        found.tells_host |= _tells_host(instruction)
        if instruction.opcode == "call":
            found.is_complete = False
        if instruction.opcode not in _FOLLOWED or "async" in instruction.modifiers:
            if instruction.description.writes_memory and not _stays_in_shared(instruction):
                found.is_complete = False
            continue
        if not {"shared", "local", "const", "param"}.isdisjoint(m.partition("::")[0] for m in instruction.modifiers):
            continue
        writes = instruction.opcode not in ("ld", "ldu")
        address = next((o for o in instruction.operands if isinstance(o, ast.Address)), None)
        base = address.base if address is not None else None
        offsets = sources.get(base.name, _NOTHING) if isinstance(base, ast.Register) else None
        if not offsets:
            found.is_complete &= not writes
            continue
        key = writes, tuple(sorted(offsets))
        if key not in known:
            if len(known) == MOST:
                found.is_complete &= not writes
                continue
            known[key] = len(known)
            found.sets.append(key)
        found.groups[id(instruction)] = known[key]
    return found


def _tells_host(instruction: ast.Instruction) -> bool:
    words = instruction.modifiers
    if instruction.opcode == "call":
        return not any(isinstance(o, ast.Symbol) and o.name in _SILENT for o in instruction.operands)
    if instruction.opcode not in _TELLING or any(word.startswith("shared") for word in words):
        return False
    return "sys" in words or "mmio" in words or (instruction.opcode == "st" and "volatile" in words)


def _stays_in_shared(instruction: ast.Instruction) -> bool:
    words = instruction.modifiers
    if instruction.opcode in _IN_SHARED or (instruction.opcode == "cp" and {"ca", "cg"} & set(words)):
        return True
    spaces = [word.partition("::")[0] for word in words]
    return next((space for space in spaces if space in ("shared", "global")), "global") == "shared"


def _registers(operand: object) -> Iterator[str]:
    if isinstance(operand, ast.Register):
        yield operand.name
    elif isinstance(operand, ast.Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, ast.Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)


def _sources(code: list[ast.Instruction], offset_of: Callable[[str], int | None]) -> dict[str, _Sources]:
    """For each register the parameters that its value may be an address from; None: it may be any address."""
    sources: dict[str, _Sources] = {}
    steps = [step for step in map(lambda i: _step(i, offset_of), code) if step is not None]
    changed = True
    while changed:
        changed = False
        for targets, start, given in steps:
            value = start
            for name in given:
                more = sources.get(name, _NOTHING)
                value = None if value is None or more is None else value | more
            for name in targets:
                before = sources.get(name, _NOTHING)
                if before is None or (value is not None and value <= before):
                    continue
                sources[name] = None if value is None else before | value
                changed = True
    return sources


def _step(
    instruction: ast.Instruction, offset_of: Callable[[str], int | None]
) -> tuple[list[str], _Sources, list[str]] | None:
    """What an instruction writes, what it adds to that itself, and the registers whose sources go there."""
    operands, words = instruction.operands, instruction.modifiers
    if not operands or instruction.opcode in ("st", "red", "bra", "bar", "ret", "exit"):
        return None
    if instruction.opcode == "call":
        returned = operands[0]
        items = returned.items if isinstance(returned, ast.ArgumentList) else ()
        return [name for item in items for name in _registers(item)], None, []
    targets = list(_registers(operands[0]))
    if not targets:
        return None
    wide = bool(words) and words[-1] in _WIDE
    if instruction.description.reads_memory or instruction.description.writes_memory:
        address = next((o for o in operands if isinstance(o, ast.Address)), None)
        if instruction.opcode == "ld" and words[0] == "param" and address is not None and len(targets) == 1:
            base = address.base
            offset = offset_of(base.name) if isinstance(base, ast.Symbol) else None
            if offset is not None and isinstance(base, ast.Symbol):
                return targets, frozenset([offset + base.offset + address.offset]) if wide else _NOTHING, []
        return targets, None if wide else _NOTHING, []
    given = [name for operand in operands[1:] for name in _registers(operand)]
    if wide and instruction.opcode == "mov" and isinstance(operands[1], ast.Vector):
        return targets, None, []  # of two halves
    if any(isinstance(operand, (ast.Symbol, ast.LabelRef)) for operand in operands[1:]):
        return targets, None, []
    return targets, _NOTHING, given
