"""Finds out: whether threads are better run one by one, because each walks along memory by itself and looks things up.

So do the rows of a sparse matrix, or the neighbors in a graph, when each belongs to a thread: a loop loads from one
place after the other (the *walk*), from where the thread was told in memory to begin, and what it finds there says
where else to load from (the *look-ups*). Lanes gain nothing then: processors gather no faster than they load, lanes
that are done wait for the longest walk, and an access by one thread is checked in less time than one by many.

Lanes are better where there is more to compute than to load, where nothing is looked up (see runs.py), and where one
look-up leads to the next, as in lists and searches, which 32 lanes follow at once. So a kernel is taken only if all its
innermost loops are walks of one basic block, and most of it. It is about speed alone: every kernel may be run either
way, so control flow is read off the text, and registers have one fact for all their values.
"""

from __future__ import annotations

from collections.abc import Sequence

from cupola.cpu.compiler.passes.effects import effects
from cupola.cpu.compiler.ptx import ast

_MOST_WALKS = 2
"""Loads of a walk for each look-up, at most."""

_MOST_ARITHMETIC = 16
"""Other instructions for each look-up, at most."""

_MOST_OUTSIDE = 4
"""Instructions outside of the loops for each inside, at most."""

_ADDRESSES = frozenset(["add", "sub", "mul", "mad", "shl", "cvt", "mov", "and", "setp", "bra", "cvta"])
_FLOATS = frozenset(["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"])
_LONG = frozenset(["sin", "cos", "ex2", "lg2", "tanh"])  # many of the processor's instructions
_MEMORY = frozenset(["ld", "ldu"])


def walk_alone(function: ast.Function) -> bool:
    """Whether the threads of a kernel that `prepare` has made ready are better run one by one."""
    body = function.body or []
    if function.parts:
        return False
    loops = _innermost_loops(body)
    inside = sum(map(len, loops))
    if not loops or not all(map(_may_be_walk, loops)) or len(body) - inside > _MOST_OUTSIDE * inside:
        return False
    loaded = _loaded(body)
    return all(_is_walk(loop, loaded) for loop in loops)


def walk_abreast(function: ast.Function) -> bool:
    """Whether threads that are better run without lanes may walk side by side: how often is known beforehand."""
    return all(map(_is_counted, _innermost_loops(function.body or [])))


def _is_counted(loop: list[ast.Instruction]) -> bool:
    *rest, last = loop
    steps = {name for name in map(_step_of, rest) if name is not None}
    if last.guard is None or last.guard.negated:
        return False
    for instruction in rest:
        match instruction.opcode, instruction.modifiers, instruction.operands:
            case "setp", ("ne" | "lt", _), (ast.Register(into), ast.Register(name), _):
                if into == last.guard.register.name and name in steps:
                    return True
    return False


def _innermost_loops(body: Sequence[ast.Statement]) -> list[list[ast.Instruction]]:
    """The instructions of the loops that have none inside; none at all when one of these is more than a basic block."""
    places = {statement.name: place for place, statement in enumerate(body) if isinstance(statement, ast.Label)}
    found: list[list[ast.Instruction]] = []
    last = -1  # the place where a loop inside of the next ones begins
    for place, statement in enumerate(body):
        if not isinstance(statement, ast.Instruction) or statement.opcode != "bra":
            continue
        target = statement.operands[0]
        begin = places.get(target.name, place) if isinstance(target, ast.LabelRef) else place
        if begin >= place or begin < last:
            continue
        inside = body[begin + 1 : place + 1]
        instructions = [each for each in inside if isinstance(each, ast.Instruction)]
        if begin == last or len(instructions) < len(inside):
            return []
        last = begin
        found.append(instructions)
    return found


def _may_be_walk(loop: list[ast.Instruction]) -> bool:
    """What is seen at once: some loads, no other effects, and no conditions but the last."""
    *rest, last = loop
    if last.guard is None or sum(instruction.opcode in _MEMORY for instruction in rest) < 2:
        return False
    return all(i.guard is None and not _has_effects(i) and i.opcode not in _LONG for i in rest)


def _has_effects(instruction: ast.Instruction) -> bool:
    does = instruction.description
    return does.lowered == "control" or does.writes_memory or does.waits != "no" or does.may_end


def _loaded(body: Sequence[ast.Statement]) -> set[str]:
    """The registers whose values come out of memory at a different place for each thread, or by arithmetic of such."""
    pairs = [(statement, effects(statement)) for statement in body if isinstance(statement, ast.Instruction)]
    varying: set[str] = set()
    loaded: set[str] = set()
    before = -1
    while len(varying) + len(loaded) > before:
        before = len(varying) + len(loaded)
        for instruction, effect in pairs:
            is_varying = not varying.isdisjoint(effect.reads)
            if is_varying or any(isinstance(o, ast.Special) and o.name == "tid" for o in instruction.operands):
                varying.update(effect.writes)
            if not loaded.isdisjoint(effect.reads) or (is_varying and instruction.opcode in _MEMORY):
                loaded.update(effect.writes)
    return loaded


def _is_walk(loop: list[ast.Instruction], loaded: set[str]) -> bool:
    """Whether each load of a loop is of a walk or looks up what the same iteration has found, with enough of these."""
    written = [name for instruction in loop for name in effects(instruction).writes]
    steps = {name for name in map(_step_of, loop) if name is not None and written.count(name) == 1}
    carried = set(written) - steps  # from one iteration to the next, until written
    found: set[str] = set()
    walks = look_ups = arithmetic = 0
    for instruction in loop:
        effect = effects(instruction)
        if instruction.opcode in _MEMORY:
            address = instruction.operands[1]
            base = address.base if isinstance(address, ast.Address) else None
            if not isinstance(base, ast.Register) or base.name in carried or base.name not in loaded:
                return False
            if not {"global", "const"}.intersection(m.partition("::")[0] for m in instruction.modifiers):
                return False
            look_ups += base.name in found
            walks += base.name not in found
            carried.difference_update(effect.writes)
            found.update(effect.writes)
            continue
        arithmetic += instruction.opcode not in _ADDRESSES or not _FLOATS.isdisjoint(instruction.modifiers)
        for names in (carried, found):
            if names.isdisjoint(effect.reads):
                names.difference_update(effect.writes)
            else:
                names.update(effect.writes)
    end = effects(loop[-1]).reads
    if not carried.isdisjoint(end) or not found.isdisjoint(end):
        return False
    return walks <= _MOST_WALKS * look_ups and arithmetic <= _MOST_ARITHMETIC * look_ups


def _step_of(instruction: ast.Instruction) -> str | None:
    """The register to which an instruction adds a number."""
    match instruction.operands:
        case [ast.Register(name), ast.Register(other), ast.Immediate()]:
            if instruction.opcode == "add" and name == other and _FLOATS.isdisjoint(instruction.modifiers):
                return name
    return None
