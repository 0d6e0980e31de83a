"""A warp in Python, twice: each thread on its own, and all lanes together as the engine runs them.

`alone` runs one thread after the other, straight from the statements. `Together` follows an `Analysis` the way the
engine does: blocks lowest index first with a mask for each, one scalar for a uniform register, base and stride for an
affine one. Where the analysis is wrong, lanes overwrite each other's values and the two differ; that every block which
claims to be convergent has all live lanes is checked as well.

Only what the tests need is known: ``mov add sub mul mad shl setp selp and ld.param vote shfl st bra ret bar.sync``, on
32-bit integers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from cupola.cpu.compiler.passes import Analysis, Block
from cupola.cpu.compiler.ptx import ast

MASK = 0xFFFFFFFF
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
Read = Callable[[ast.Operand], int]


class TooLong(Exception):
    """The program does not end within the steps that it was given."""


def compute(instruction: ast.Instruction, read: Read) -> int:
    """The result of an instruction that maps values to a value."""
    operands = instruction.operands[1:]
    match instruction.opcode:
        case "mov":
            return read(operands[0]) & MASK
        case "add":
            return (read(operands[0]) + read(operands[1])) & MASK
        case "sub":
            return (read(operands[0]) - read(operands[1])) & MASK
        case "mul":
            return (read(operands[0]) * read(operands[1])) & MASK
        case "mad":
            return (read(operands[0]) * read(operands[1]) + read(operands[2])) & MASK
        case "shl":
            amount = read(operands[1])
            return (read(operands[0]) << amount) & MASK if amount < 32 else 0
        case "and":
            return read(operands[0]) & read(operands[1])
        case "setp":
            return int(_COMPARE[instruction.modifiers[0]](read(operands[0]), read(operands[1])))
        case "selp":
            return read(operands[0]) if read(operands[2]) else read(operands[1])
        case "ld":
            return 7  # a kernel parameter
    raise NotImplementedError(instruction.text)


def _special(operand: ast.Special, lane: int) -> int:
    return {"tid": lane, "laneid": lane}.get(operand.name, 5)


def _reader(registers: dict[str, int], lane: int) -> Read:
    def read(operand: ast.Operand) -> int:
        match operand:
            case ast.Register(name):
                return registers.get(name, 0)
            case ast.Immediate(number):
                return number & MASK
            case ast.Special():
                return _special(operand, lane)
            case ast.Symbol():
                return 0
        raise NotImplementedError(operand)

    return read


def alone(function: ast.Function, width: int, steps: int = 4000) -> list[list[tuple[int, int]]]:
    """What each thread stores, as (address, value) in order."""
    body = function.body or []
    labels = {s.name: place for place, s in enumerate(body) if isinstance(s, ast.Label)}
    results = []
    for lane in range(width):
        registers: dict[str, int] = {}
        stored: list[tuple[int, int]] = []

        read = _reader(registers, lane)
        place = 0
        budget = steps
        while place < len(body):
            budget -= 1
            if not budget:
                raise TooLong
            statement = body[place]
            place += 1
            if isinstance(statement, ast.Label):
                continue
            guard = statement.guard
            if guard is not None and bool(read(guard.register)) == guard.negated:
                continue
            if statement.opcode == "bra":
                assert isinstance(statement.operands[0], ast.LabelRef)
                place = labels[statement.operands[0].name]
            elif statement.opcode == "ret":
                break
            elif statement.opcode == "st":
                address, value = statement.operands
                assert isinstance(address, ast.Address) and address.base is not None
                stored.append((read(address.base) + address.offset, read(value)))
            elif statement.opcode != "bar":
                target = statement.operands[0]
                assert isinstance(target, ast.Register)
                registers[target.name] = compute(statement, read)
        results.append(stored)
    return results


class Together:
    """Run the blocks of an analysis; ``stored`` is as `alone` gives it."""

    def __init__(self, analysis: Analysis, steps: int = 100_000) -> None:
        self.analysis = analysis
        self.width = analysis.width
        self.steps = steps
        self.scalars: dict[str, int] = {}
        self.vectors: dict[str, list[int]] = {}
        self.stored: list[list[tuple[int, int]]] = [[] for _ in range(self.width)]
        self.waiting: dict[int, set[int]] = {0: set(range(self.width))}
        while self.waiting:
            index = min(self.waiting)
            self._run(analysis.blocks[index], self.waiting.pop(index))

    def _read(self, operand: ast.Operand, lane: int) -> int:
        match operand:
            case ast.Register(name):
                shape = self.analysis.shape(name)
                if shape is None:
                    return self.vectors.get(name, [0] * self.width)[lane]
                return (self.scalars.get(name, 0) + shape * lane) & MASK
            case ast.Immediate(value):
                return value & MASK
            case ast.Special():
                return _special(operand, lane)
        raise NotImplementedError(operand)

    def _write(self, name: str, values: dict[int, int], guarded: bool) -> None:
        shape = self.analysis.shape(name)
        if shape is None:
            vector = self.vectors.setdefault(name, [0] * self.width)
            if not guarded and (name in self.analysis.local or name not in self.analysis.kept):
                vector[:] = [-1] * self.width  # other lanes may get anything
            for lane, value in values.items():
                vector[lane] = value
            return
        bases = {(value - shape * lane) & MASK for lane, value in values.items()}
        assert len(bases) == 1, f"{name} shall have the shape {shape}, but is {values}"
        self.scalars[name] = bases.pop()

    def _run(self, block: Block, lanes: set[int]) -> None:
        if block.convergent:
            assert not self.waiting, f"lanes {self.waiting} wait while {block!r} runs with {lanes}"
        for instruction in block.instructions:
            self._tick()
            running = self._guarded(instruction.guard, lanes)
            if not running:
                continue
            if instruction.opcode == "st":
                address, value = instruction.operands
                assert isinstance(address, ast.Address) and address.base is not None
                for lane in sorted(running):
                    place = self._read(address.base, lane) + address.offset
                    self.stored[lane].append((place, self._read(value, lane)))
            else:
                target = instruction.operands[0]
                assert isinstance(target, ast.Register)
                values = {}
                for lane in running:
                    values[lane] = compute(instruction, lambda operand, lane=lane: self._read(operand, lane))
                self._write(target.name, values, instruction.guard is not None)
        self._tick()
        terminator = block.terminator
        if terminator is None or terminator.opcode == "bar":
            self._go(block.successors[0], lanes)
        elif terminator.opcode == "ret":
            rest = lanes - self._guarded(terminator.guard, lanes)
            if rest:
                self._go(block.successors[0], rest)
        else:
            taken = self._guarded(terminator.guard, lanes)
            self._go(block.successors[0], taken)
            self._go(block.successors[1], lanes - taken)

    def _guarded(self, guard: ast.Guard | None, lanes: set[int]) -> set[int]:
        if guard is None:
            return lanes
        return {lane for lane in lanes if bool(self._read(guard.register, lane)) != guard.negated}

    def _go(self, block: Block, lanes: set[int]) -> None:
        if lanes and not block.returns_only:
            self.waiting.setdefault(block.index, set()).update(lanes)

    def _tick(self) -> None:
        self.steps -= 1
        if not self.steps:
            raise TooLong
