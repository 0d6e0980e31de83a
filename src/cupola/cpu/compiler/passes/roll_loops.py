"""Establishes: a loop that a compiler has unrolled is one loop, with what was split off in front of it.

NVIDIA's compilers make of a loop that runs ``n`` times one that runs ``n % 4`` times and another in which an iteration
does the work of four. A processor that runs threads one by one foresees neither how often the first runs nor how often
the second does, where a single loop is one such surprise. So both are followed by symbols: does an iteration of the
second compute what four of the first do, with the same loads, and no other effects? Does it begin where the first ends,
and do both together run as often as a counter takes from its first value to its end? Then the first loop is written
once more, to run ``n`` times, for a counter that begins below its end; otherwise the loops run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import count

from cupola.cpu.compiler.passes.effects import effects
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

_MOST_UNROLLED = 16
_INTEGERS = frozenset(["s32", "u32", "b32", "s64", "u64", "b64"])
_STRONG = frozenset(["volatile", "relaxed", "acquire", "mmio", "sc", "cv"])
_Symbol = tuple[object, ...]


def roll_loops(function: ast.Function) -> ast.Function:
    """A function that `prepare` has made ready, with such loops rolled; the function itself where there are none."""
    body, registers = list(function.body or []), dict(function.registers)
    if function.parts or function.branch_targets:
        return function
    place, rolled = 0, 0
    while place < len(body):
        found = _find(body, place)
        if found is not None:
            text = _Rolled(found, registers, rolled, _read_outside(body, found)).text()
            if text is not None:
                body[found.branch : found.branch] = text
                place, rolled = found.end + len(text), rolled + 1
                continue
        place += 1
    return replace(function, body=body, registers=registers) if rolled else function


@dataclass(frozen=True, slots=True)
class _Loops:
    """The two loops: their statements from the branch around the first one to the end of the second."""

    branch: int
    end: int
    before: list[ast.Instruction]
    """What comes before the branch in its block."""
    condition: ast.Instruction
    """What sets the predicate of the branch: that nothing has been split off."""
    masking: ast.Instruction
    """What says how often the first loop runs."""
    around: ast.Instruction
    into_first: list[ast.Instruction]
    first: list[ast.Instruction]
    between: list[ast.Instruction]
    over: ast.Instruction
    into_second: list[ast.Instruction]
    second: list[ast.Instruction]
    behind: str


def _find(body: Sequence[ast.Statement], place: int) -> _Loops | None:
    """The loops whose branch is at a place of the text."""
    around = body[place]
    if not isinstance(around, ast.Instruction) or around.guard is None or around.guard.negated:
        return None
    parts: list[list[ast.Instruction]] = [[]]
    labels: list[str] = []
    end = place + 1
    while end < len(body) and len(parts) < 5:
        statement = body[end]
        if isinstance(statement, ast.Label):
            labels.append(statement.name)
            parts.append([])
        else:
            parts[-1].append(statement)
        end += 1
    if len(parts) != 5:
        return None
    into_first, first, middle, second, _ = parts
    over = next((i for i in middle if i.opcode == "bra"), None)
    if over is None or not first or not second:
        return None
    between, into_second = middle[: middle.index(over)], middle[middle.index(over) + 1 :]
    first_label, join, second_label, behind = labels
    targets = (around, join), (first[-1], first_label), (over, behind), (second[-1], second_label)
    if any(_target(instruction) != label for instruction, label in targets):
        return None
    if any(_named(body, label) != 1 for label in (first_label, join, second_label)):
        return None
    code = [*into_first, *first[:-1], *between, *into_second, *second[:-1]]
    if not all(map(_is_pure, code)) or any(i.opcode in ("ld", "ldu") for i in (*into_first, *between, *into_second)):
        return None
    before: list[ast.Instruction] = []
    for statement in reversed(body[:place]):
        if isinstance(statement, ast.Label) or statement.description.lowered == "control":
            break
        before.append(statement)
    before.reverse()
    condition = _writer(before, around.guard.register.name)
    match condition:
        case ast.Instruction("setp", ("eq", _), (_, ast.Register(rest), ast.Immediate(0)), None):
            masking = _writer(before, rest)
        case _:
            return None
    if masking is None:
        return None
    return _Loops(
        place,
        end - 1,
        before,
        condition,
        masking,
        around,
        into_first,
        first,
        between,
        over,
        into_second,
        second,
        behind,
    )


def _writer(code: Sequence[ast.Instruction], name: str) -> ast.Instruction | None:
    """What writes a register last."""
    return next((i for i in reversed(code) if name in effects(i).writes), None)


def _target(instruction: ast.Instruction) -> str | None:
    match instruction:
        case ast.Instruction("bra", _, (ast.LabelRef(name),), ast.Guard(_, False)):
            return name
    return None


def _named(body: Sequence[ast.Statement], label: str) -> int:
    """How many instructions name a label."""
    reference = ast.LabelRef(label)
    return sum(isinstance(statement, ast.Instruction) and reference in statement.operands for statement in body)


def _is_pure(instruction: ast.Instruction) -> bool:
    """Whether an instruction only computes, or loads what nobody else is expected to write meanwhile."""
    if instruction.guard is not None:
        return False
    if instruction.opcode in ("ld", "ldu"):
        spaces = {modifier.partition("::")[0] for modifier in instruction.modifiers}
        return _STRONG.isdisjoint(instruction.modifiers) and "global" in spaces
    if any(isinstance(operand, ast.Special) for operand in instruction.operands):
        return False
    does = instruction.description
    return instruction.opcode == "cvta" or (does.lowered == "values" and not does.warp and does.waits == "no")


def _read_outside(body: Sequence[ast.Statement], loops: _Loops) -> set[str]:
    """The registers that anything else than the two loops reads."""
    return {
        name
        for statement in (*body[: loops.branch], *body[loops.end :])
        if isinstance(statement, ast.Instruction) and statement is not loops.condition
        for name in effects(statement).reads
    }


@dataclass(slots=True)
class _Symbols:
    """What registers hold, in terms of what they held before."""

    known: dict[str, _Symbol] = field(default_factory=dict)

    def of(self, operand: ast.Operand) -> _Symbol:
        match operand:
            case ast.Register(name):
                return self.known.get(name, ("+", name, 0))
            case ast.Address(ast.Register() as base, offset):
                return _plus(self.of(base), offset)
            case ast.Vector(items):
                return ("vector", *map(self.of, items))
        return ("operand", operand)

    def add(self, instruction: ast.Instruction) -> None:
        """Go over an instruction."""
        destination, *sources = instruction.operands
        match instruction.opcode, instruction.modifiers, sources:
            case "add", (type,), (ast.Register() as source, ast.Immediate(step)) if type in _INTEGERS:
                value = _plus(self.of(source), _signed(step, type))
            case "mov", _, (ast.Register() as source,):
                value = self.of(source)
            case _:
                value = (instruction.opcode, instruction.modifiers, *map(self.of, sources))
        items = destination.items if isinstance(destination, ast.Vector) else (destination,)
        for number, item in enumerate(items):
            if isinstance(item, ast.Register):
                self.known[item.name] = value if len(items) == 1 else ("item", number, value)


def _plus(symbol: _Symbol, offset: int) -> _Symbol:
    if symbol[0] == "+" and isinstance(symbol[2], int):
        return "+", symbol[1], symbol[2] + offset
    return ("plus", symbol, offset) if offset else symbol


def _signed(number: int, type: str) -> int:
    half = 1 << int(type[1:]) - 1
    return (number + half) % (2 * half) - half


def _steps(code: Sequence[ast.Instruction]) -> dict[str, tuple[int, str]]:
    """The registers to which a loop adds a number and does nothing else, with the type of the addition."""
    written = [name for instruction in code for name in effects(instruction).writes]
    found: dict[str, tuple[int, str]] = {}
    for instruction in code:
        match instruction:
            case ast.Instruction("add", (type,), (ast.Register(name), ast.Register(other), ast.Immediate(step)), None):
                if name == other and written.count(name) == 1 and type in _INTEGERS:
                    found[name] = _signed(step, type), type
    return found


_Linear = tuple[frozenset[tuple[object, int]], int]
"""A sum: symbols with their factors, and a number."""


class _Sums:
    """What registers hold, as sums of symbols: exactly, as far as their widths go."""

    def __init__(self) -> None:
        self.known: dict[str, _Linear] = {}
        self.rest: _Linear | None = None
        """How often the first loop runs."""
        self.begin: _Linear | None = None
        """Where a counter begins, which does not wrap on its way to ``rest`` behind that."""
        self.signed = False

    def of(self, operand: ast.Operand) -> _Linear:
        match operand:
            case ast.Register(name):
                return self.known.get(name, _symbol(name))
            case ast.Immediate(value):
                return frozenset(), value
        return _symbol(operand)

    def go_over(self, code: Sequence[ast.Instruction]) -> None:
        """Follow instructions."""
        for instruction in code:
            for name in effects(instruction).writes:
                value = self._value(instruction)
                self.known[name] = _symbol((id(instruction), name)) if value is None else value

    def _value(self, instruction: ast.Instruction) -> _Linear | None:
        if instruction.guard is not None or len(effects(instruction).writes) != 1:
            return None
        _, *sources = instruction.operands
        of = [self.of(source) for source in sources]
        type = instruction.modifiers[-1] if instruction.modifiers else ""
        match instruction.opcode, instruction.modifiers, sources:
            case "mov", _, [ast.Register()]:
                return of[0]
            case "add", (_,), _ if type in _INTEGERS:
                return _sum(of[0], of[1])
            case "sub", (_,), _ if type in _INTEGERS:
                return _sum(of[0], of[1], -1)
            case "not", (("b32" | "b64"),), _:
                return _sum((frozenset(), -1), of[0], -1)
            case "mul", ("wide", ("s32" | "u32")), [_, ast.Immediate(factor)]:
                return _sum((frozenset(), 0), self._widened(of[0], type), factor)
            case "cvt", (("s64" | "u64"), ("s32" | "u32")), _:
                return self._widened(of[0], type)
            case "shl", ("b64",), [_, ast.Immediate(bits)] if bits < 32:
                return _sum((frozenset(), 0), of[0], 1 << bits)
            case "max", (_,), _ if type in _INTEGERS:
                return _symbol(("max", type, frozenset(of)))
        if instruction.opcode in ("ld", "ldu"):
            return None
        return _symbol((instruction.opcode, instruction.modifiers, *of))

    def _widened(self, value: _Linear, type: str) -> _Linear:
        counted = self.begin is not None and self.rest is not None and value == _sum(self.begin, self.rest)
        if counted and self.begin is not None and self.rest is not None and self.signed == (type[0] == "s"):
            return _sum(_symbol(("wide", type, self.begin)), self.rest)
        return _symbol(("wide", type, value))


def _symbol(symbol: object) -> _Linear:
    return frozenset([(symbol, 1)]), 0


def _sum(x: _Linear, y: _Linear, factor: int = 1) -> _Linear:
    terms = dict(x[0])
    for symbol, times in y[0]:
        terms[symbol] = terms.get(symbol, 0) + times * factor
    return frozenset((symbol, times) for symbol, times in terms.items() if times), x[1] + y[1] * factor


class _Rolled:
    """Two loops as one."""

    def __init__(self, loops: _Loops, registers: dict[str, str], number: int, outside: set[str]) -> None:
        self.loops = loops
        self.registers = registers
        self.number = number
        self.outside = outside
        self.first, self.second = loops.first[:-1], loops.second[:-1]
        self.steps, self.long_steps = _steps(self.first), _steps(self.second)
        self.fresh = count()
        self.lines: list[ast.Statement] = []
        self.equal: dict[tuple[str, str], int] = {}
        """By register of the first and the second loop: how far the second begins behind where the first ends."""

    def text(self) -> list[ast.Statement] | None:
        """What comes in front of the loops; None if they are something else."""
        match self.loops.masking:
            case ast.Instruction("and", (type,), (ast.Register(rest), ast.Register(total), ast.Immediate(mask)), None):
                times = mask + 1
            case _:
                return None
        if not 2 <= times <= _MOST_UNROLLED or times & mask or type not in ("b32", "b64"):
            return None
        if _writer(self.loops.before[self.loops.before.index(self.loops.masking) + 1 :], total) is not None:
            return None
        if not self._counts_down(rest) or not self._is_unrolled(times):
            return None
        found = self._condition(self.loops.second)
        if found is None or found[0] != "lt" or found[1] not in ("s" + type[1:], "u" + type[1:]):
            return None
        _, type, counter, limit = found
        if self.steps.get(counter, (0, ""))[0] != 1 or self.long_steps.get(counter, (0, ""))[0] != times:
            return None
        if not isinstance(limit, ast.Register) or not self._run_as_one(rest, total, times, type, counter, limit):
            return None
        return self._write(total, type, counter, limit)

    def _run_as_one(self, rest: str, total: str, times: int, type: str, counter: str, limit: ast.Register) -> bool:
        """Whether a counter that begins below its limit goes there in both loops together.

        It begins at ``begin``, and ``total`` is the distance to the limit. The first loop runs ``rest`` times, which is
        the remainder of that by ``times``; the second one, if there is more, until the counter is at the limit.
        """
        loops, sums = self.loops, _Sums()
        sums.go_over(loops.before)
        left_out = dict(sums.known)
        far = sums.of(ast.Register(total))
        sums.rest = sums.of(ast.Register(rest))
        sums.go_over(loops.into_first)
        entered = dict(sums.known)
        sums.begin, sums.signed = sums.of(ast.Register(counter)), type[0] == "s"
        end = sums.of(limit)
        longest = _symbol(("max", type, frozenset([end, _sum(sums.begin, (frozenset(), 1))])))
        if far not in (_sum(end, sums.begin, -1), _sum(longest, sums.begin, -1)):
            return False
        written = {name for i in self.first for name in effects(i).writes}
        later = [*loops.between, *loops.into_second]
        read = {name for i in (*later, *self.second) for name in effects(i).reads} | {limit.name}
        own = self._own_to([*later, *self.second])
        if (written & read) - self._results() - self.steps.keys() - own:
            return False
        if not self._results().isdisjoint(name for i in later for name in effects(i).reads):
            return False
        for name in written | set(entered):
            if name in self.steps:
                sums.known[name] = _sum(entered.get(name, _symbol(name)), sums.rest, self.steps[name][0])
                if name in read and left_out.get(name, _symbol(name)) != entered.get(name, _symbol(name)):
                    return False  # where the first loop is left out, it is something else
            elif name in read - own - self._results() and left_out.get(name) != entered.get(name):
                return False
        sums.go_over(later)
        match _writer(later, loops.over.guard.register.name if loops.over.guard else ""):
            case ast.Instruction("setp", ("lt", kind), (_, x, ast.Immediate(least)), None) if kind == "u" + type[1:]:
                if (sums.of(x), least) not in ((_sum(far, (frozenset(), -1)), times - 1), (far, times)):
                    return False
            case _:
                return False
        if sums.of(ast.Register(counter)) != _sum(sums.begin, sums.rest) or sums.of(limit) != end:
            return False
        return all(
            sums.of(ast.Register(b))
            == _sum(_sum(entered.get(a, _symbol(a)), sums.rest, self.steps[a][0]), (frozenset(), offset))
            for (a, b), offset in self.equal.items()
        )

    def _counts_down(self, rest: str) -> bool:
        """Whether the first loop runs as often as the masking says."""
        entered = _Symbols()
        for instruction in self.loops.into_first:
            entered.add(instruction)
        match self._condition(self.loops.first):
            case ("ne", _, counter, ast.Immediate(0)) if self.steps.get(counter, (0, ""))[0] == -1:
                reads = [name for i in self.first for name in effects(i).reads]
                own = counter in self.outside or any(
                    counter in effects(i).reads
                    for i in (*self.loops.between, *self.loops.into_second, *self.loops.second)
                )
                return entered.of(ast.Register(counter)) == ("+", rest, 0) and reads.count(counter) == 2 and not own
        return False

    def _condition(self, loop: Sequence[ast.Instruction]) -> tuple[str, str, str, ast.Operand] | None:
        """Comparison, type, counter and limit of what ends a loop, behind the step of the counter."""
        guard = loop[-1].guard
        assert guard is not None
        counted: set[str] = set()
        found = None
        for instruction in loop[:-1]:
            writes = effects(instruction).writes
            if guard.register.name in writes:
                if found is not None:
                    return None
                match instruction:
                    case ast.Instruction("setp", (comparison, type), (_, ast.Register(counter), limit), None):
                        if counter not in counted:
                            return None
                        found = comparison, type, counter, limit
                    case _:
                        return None
            counted.update(writes)
        if found is not None and isinstance(found[3], ast.Register) and found[3].name in counted:
            return None
        return found

    def _is_unrolled(self, times: int) -> bool:
        """Whether an iteration of the second loop computes what so many of the first do."""
        short, long = _Symbols(), _Symbols()
        for _ in range(times):
            for instruction in self.first:
                short.add(instruction)
        for instruction in self.second:
            long.add(instruction)
        all_written = {n for i in self._everything() for n in effects(i).writes}
        wanted = self._results()
        if not wanted or (all_written & self.outside) - wanted:
            return False
        written = short.known.keys() | long.known.keys()
        for name in wanted:
            if name not in short.known or name not in long.known:
                return False
            if not self._same(short.known[name], long.known[name], written):
                return False
        return all(
            self.steps[a][0] * times == self.long_steps[b][0] and self.steps[a][1][1:] == self.long_steps[b][1][1:]
            for a, b in self.equal
        )

    def _everything(self) -> list[ast.Instruction]:
        loops = self.loops
        return [*loops.into_first, *self.first, *loops.between, *loops.into_second, *self.second]

    def _results(self) -> set[str]:
        """The registers that the loops leave behind."""
        written = {name for i in (*self.first, *self.second) for name in effects(i).writes}
        return (written & self.outside) - self._written_aside() - self.steps.keys() - self.long_steps.keys()

    def _written_aside(self) -> set[str]:
        return {name for i in (*self.loops.between, *self.loops.into_second) for name in effects(i).writes}

    def _same(self, short: object, long: object, written: set[str]) -> bool:
        if not isinstance(short, tuple) or not isinstance(long, tuple):
            return bool(short == long)
        if short[:1] == long[:1] == ("+",):
            (_, a, x), (_, b, y) = short, long
            if a in self.steps and b in self.long_steps:
                offset: int = self.equal.setdefault((a, b), x - y)
                return bool(offset == x - y)
            changes = a in self.steps or b in self.long_steps or (a in written and a not in self._results())
            return a == b and x == y and not changes and a not in self._written_aside()
        return len(short) == len(long) and all(self._same(s, t, written) for s, t in zip(short, long, strict=True))

    # Writing

    def _new(self, like: str) -> str:
        name = f"%rolled{self.number}${next(self.fresh)}"
        self.registers[name] = like
        return name

    def _emit(self, opcode: str, modifiers: str, *operands: ast.Operand | str) -> None:
        named = tuple(ast.Register(o) if isinstance(o, str) else o for o in operands)
        text = f"{opcode}.{modifiers}"
        self.lines.append(
            ast.Instruction(opcode, tuple(modifiers.split(".")), named, None, self.loops.around.location, text)
        )

    def _branch(self, label: str, predicate: str = "") -> None:
        guard = ast.Guard(ast.Register(predicate)) if predicate else None
        location = self.loops.around.location
        self.lines.append(ast.Instruction("bra", (), (ast.LabelRef(label),), guard, location, "bra"))

    def _copy(self, code: Sequence[ast.Instruction], names: dict[str, str], keep: Callable[[str], bool]) -> None:
        """Write instructions once more, with registers of their own but for those to keep."""
        for instruction in code:
            operands = tuple(_renamed(operand, names) for operand in instruction.operands)
            writes = effects(instruction).writes
            for name in writes:
                if not keep(name):
                    names[name] = self._new(self.registers[name])
            destination = _renamed(instruction.operands[0], names) if writes else operands[0]
            self.lines.append(replace(instruction, operands=(destination, *operands[1:])))

    def _write(self, total: str, type: str, counter: str, limit: ast.Register) -> list[ast.Statement]:
        loops, wanted, bits = self.loops, self._results(), type[1:]
        inside: dict[str, str] = {}
        self._copy(loops.into_first, inside, lambda name: False)
        original, again = (f"$rolled{self.number}.{word}" for word in ("not", "again"))
        past = self._new("pred")
        self._emit("setp", f"ge.{type}", past, inside.get(counter, counter), _renamed(limit, inside))
        self._branch(original, past)
        assert loops.around.guard is not None
        for name in sorted(wanted & inside.keys()):  # or what it was, if the first loop is left out
            kind = f"b{bits_of(self.registers[name])}"
            self._emit("selp", kind, name, name, inside.pop(name), loops.around.guard.register.name)
        for name in sorted(self.steps.keys() - inside.keys()):
            inside[name] = self._new(self.registers[name])
            self._emit("mov", f"b{bits_of(self.registers[name])}", inside[name], name)
        left = self._new(self.registers[total])
        self._emit("mov", f"b{bits}", left, total)
        self.lines.append(ast.Label(again))
        condition, guard = self._condition(loops.first), loops.first[-1].guard
        assert condition is not None and guard is not None
        latch = condition[2], guard.register.name
        body = [i for i in self.first if not set(latch).intersection(effects(i).writes)]
        self._copy(body, inside, lambda name: name in wanted or name in self.steps)
        self._emit("add", f"s{bits}", left, left, ast.Immediate(-1))
        more = self._new("pred")
        self._emit("setp", f"ne.s{bits}", more, left, ast.Immediate(0))
        self._branch(again, more)
        self._branch(loops.behind)
        self.lines.append(ast.Label(original))
        return self.lines

    def _own_to(self, code: Sequence[ast.Instruction]) -> set[str]:
        """The registers that some code writes before it reads them."""
        read: set[str] = set()
        own: set[str] = set()
        for instruction in code:
            effect = effects(instruction)
            read.update(name for name in effect.reads if name not in own)
            own.update(name for name in effect.writes if name not in read)
        return own


def bits_of(type: str) -> str:
    """The width of a register, as in the name of a type."""
    return type.lstrip("bsuf")


def _renamed(operand: ast.Operand, names: dict[str, str]) -> ast.Operand:
    match operand:
        case ast.Register(name):
            return ast.Register(names.get(name, name))
        case ast.Address(ast.Register(name), offset):
            return ast.Address(ast.Register(names.get(name, name)), offset)
        case ast.Vector(items):
            return ast.Vector(tuple(_renamed(item, names) for item in items))
        case ast.Negated(register):
            return ast.Negated(ast.Register(names.get(register.name, register.name)))
    return operand
