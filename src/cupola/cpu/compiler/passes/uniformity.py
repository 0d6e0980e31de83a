"""Establishes: for each register, how its value may depend on the lane.

A register is *uniform* (every lane that runs the instruction gets the same value), *affine* (lane ``i`` holds ``base +
i * stride`` for a constant stride), or *varying*. The class is a property of the register, not of a definition: several
definitions must agree. Affine is a promise about arithmetic modulo the register's width only; whether lanes wrapped
where a value was widened is for the emitter to check at run time.

Control flow spoils it: where lanes part ways, only some run a definition, and `divergence` then forces registers to be
varying. Here is the data-flow part, a sparse propagation from unknown over a stride to varying: each register falls at
most twice, so the work is linear in the uses.
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.passes.effects import Effects, operand_kinds
from cupola.cpu.compiler.passes.warp_lines import WarpLines
from cupola.cpu.compiler.ptx import ast

UNIFORM = 0
VARYING = None

Shape = int | None
"""The stride from lane to lane: 0 is uniform, None is varying."""

_LARGEST_STRIDE = 1 << 31
_INTEGERS = frozenset(["u16", "s16", "u32", "s32", "u64", "s64", "b16", "b32", "b64"])
_LANE_MASKS = frozenset(["lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt"])


_ASKS = frozenset(["setp", "set", "vote", "match", "popc", "clz", "bfind"])
"""What gives numbers of another kind than it takes."""


class _Unknown:
    """Nothing has been found out yet."""


UNKNOWN = _Unknown()

State = Shape | _Unknown


class Uniformity:
    """The shapes of the registers of one function.

    Parameters
    ----------
    x_is_contiguous : bool
        Lanes of a warp differ in ``%tid.x`` only, by one from each to the next.
    has_local : bool
        The function has variables in local memory, so a generic address may point to a lane's own memory.
    warp_lines : WarpLines
        Registers that count up from a multiple of the width.
    """

    def __init__(self, *, x_is_contiguous: bool, has_local: bool, warp_lines: WarpLines) -> None:
        self.x_is_contiguous = x_is_contiguous
        self.has_local = has_local
        self.warp_lines = warp_lines
        self.shapes: dict[str, State] = {}
        self.constants: dict[str, int] = {}  # registers that hold one known integer
        self._instructions: list[tuple[ast.Instruction, Effects]] = []
        self._users: dict[str, list[int]] = {}
        self._waiting: list[int] = []
        self._queued: set[int] = set()
        self._reached = -1  # instructions behind this one get their first turn anyway
        self.forced: set[str] = set()
        self._watchers: dict[str, list[Callable[[], None]]] = {}

    # --- setting up -------------------------------------------------------------------------------------------

    def add(self, instruction: ast.Instruction, effect: Effects) -> None:
        """Make an instruction part of the system."""
        if not effect.writes:
            return
        index = len(self._instructions)
        self._instructions.append((instruction, effect))
        for name in effect.reads:
            self._users.setdefault(name, []).append(index)
        for name in effect.writes:
            self.shapes[name] = UNKNOWN

    def watch(self, register: str, call: Callable[[], None]) -> None:
        """Call back once, when ``register`` is found not to be uniform."""
        self._watchers.setdefault(register, []).append(call)

    # --- solving ----------------------------------------------------------------------------------------------

    def solve(self) -> None:
        """Find the shapes. Registers that depend on nothing but themselves are varying, to be safe."""
        for index in range(len(self._instructions)):
            self._reached = index
            self._run(index)
        self._propagate()
        for name, shape in self.shapes.items():
            if isinstance(shape, _Unknown):
                self._lower(name, VARYING)
        self._propagate()

    def force(self, register: str) -> None:
        """A register is varying whatever its definitions say: lanes elsewhere want the values that they have."""
        self.forced.add(register)
        if register in self.shapes:
            self._lower(register, VARYING)

    def loaded(self) -> set[str]:
        """The registers whose values come out of memory at different places for the lanes, or by arithmetic of such.

        Other varying registers may turn out to be regular at run time, for example where a loop that lanes leave one by
        one counts up.
        """
        found: set[str] = set()
        waiting = [
            name
            for instruction, effect in self._instructions
            if instruction.description.reads_memory
            for name in effect.writes
            if self.shapes[name] is VARYING
        ]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                for user in self._users.get(name, ()):
                    instruction, effect = self._instructions[user]
                    if instruction.opcode not in _ASKS:
                        waiting.extend(effect.writes)
        return found

    def _propagate(self) -> None:
        while self._waiting:
            index = self._waiting.pop()
            self._queued.discard(index)
            self._run(index)

    def _run(self, index: int) -> None:
        instruction, effect = self._instructions[index]
        shapes = self._evaluate(instruction)
        if isinstance(shapes, _Unknown):
            return
        guard = instruction.guard
        if guard is not None:
            state = self.shapes.get(guard.register.name, UNIFORM)
            if isinstance(state, _Unknown):
                return
            if state != UNIFORM:
                shapes = VARYING
        if isinstance(shapes, tuple):
            pair = instruction.operands[0]
            assert isinstance(pair, ast.Pair)
            for register, shape in zip((pair.first, pair.second), shapes, strict=True):
                if isinstance(register, ast.Register):
                    self._lower(register.name, shape)
        else:
            for name in effect.writes:
                self._lower(name, shapes)

    def _lower(self, name: str, shape: Shape) -> None:
        old = self.shapes[name]
        if not isinstance(old, _Unknown):
            if old in (VARYING, shape):
                return
            shape = VARYING
        self.shapes[name] = shape
        for user in self._users.get(name, ()):
            if user <= self._reached and user not in self._queued:
                self._queued.add(user)
                self._waiting.append(user)
        if shape != UNIFORM:
            for call in self._watchers.pop(name, ()):
                call()

    # --- what instructions do ---------------------------------------------------------------------------------

    def _evaluate(self, instruction: ast.Instruction) -> State | tuple[Shape, ...]:
        """The shape of all destinations, or of each one."""
        operands = instruction.operands
        kinds = operand_kinds(instruction.opcode, instruction.modifiers, len(operands))
        sources: list[Shape] = []
        for kind, operand in zip(kinds, operands, strict=True):
            if kind.read:
                shape = self._operand(operand)
                if isinstance(shape, _Unknown):
                    return UNKNOWN
                sources.append(shape)
        return RULES[instruction.description.lanes](self, instruction, sources)

    def _like_sources(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        return _plain(sources)

    def _operand(self, operand: ast.Operand) -> State:
        if type(operand) is ast.Register:
            if operand.name in self.constants:
                return UNIFORM
            # A register that nothing defines has no value that could differ.
            return self.shapes.get(operand.name, UNIFORM)
        match operand:
            case ast.Negated(register):
                return self._operand(register)
            case ast.Special(name, component):
                return self._special(name, component)
            case ast.Address(base):
                return self._operand(base) if isinstance(base, ast.Register) else UNIFORM
            case ast.Selector(register):
                shape = self._operand(register)
                return shape if isinstance(shape, _Unknown) or shape == UNIFORM else VARYING
            case ast.Pair(first, second):
                return self._several((first, second))
            case ast.Vector(items) | ast.AddressList(items) | ast.ArgumentList(items):
                return self._several(items)
        return UNIFORM

    def _several(self, items: tuple[ast.Operand, ...]) -> State:
        result: State = UNIFORM
        for item in items:
            shape = self._operand(item)
            if isinstance(shape, _Unknown):
                return UNKNOWN
            if shape != UNIFORM:
                result = VARYING
        return result

    def _special(self, name: str, component: str | None) -> Shape:
        if name == "tid":
            if not self.x_is_contiguous or component is None:
                return VARYING
            return 1 if component == "x" else UNIFORM
        if name == "laneid":
            return 1
        return VARYING if name in _LANE_MASKS else UNIFORM

    def _constant(self, operand: ast.Operand) -> int | None:
        if isinstance(operand, ast.Immediate) and operand.kind == "int":
            return operand.value
        return self.constants.get(operand.name) if isinstance(operand, ast.Register) else None

    # --- rules ------------------------------------------------------------------------------------------------

    def _copy(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """mov, cvta: the source itself; packing and unpacking keep only uniformity."""
        packs = isinstance(instruction.operands[0], ast.Vector) or isinstance(instruction.operands[1], ast.Vector)
        return sources[0] if sources[0] == UNIFORM or not packs else VARYING

    def _convert(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        shape = sources[0]
        if shape == UNIFORM and len(sources) == 1:
            return UNIFORM
        modifiers = instruction.modifiers
        if len(modifiers) == 2 and modifiers[0] in _INTEGERS and modifiers[1] in _INTEGERS:
            return shape
        return _plain(sources)

    def _sum(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape | tuple[Shape, ...]:
        if sources[0] == UNIFORM and sources[1] == UNIFORM and all(source == UNIFORM for source in sources[2:]):
            return UNIFORM
        first, second = sources[:2]
        modifiers = instruction.modifiers
        if first is None or second is None or modifiers[-1] not in _INTEGERS or "sat" in modifiers:
            return VARYING
        if instruction.opcode == "sub":
            second = -second
        total = _difference(first + second)
        return (total, VARYING) if isinstance(instruction.operands[0], ast.Pair) else total

    def _product(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """mul and mad: affine times a constant."""
        if all(source == UNIFORM for source in sources):
            return UNIFORM
        modifiers = instruction.modifiers
        if modifiers[-1] not in _INTEGERS or modifiers[0] not in ("lo", "wide") or "cc" in modifiers:
            return VARYING
        product = self._scaled(instruction, sources)
        if product is None or len(sources) == 2:
            return product
        if product == UNIFORM and sources[2] == UNIFORM:
            return UNIFORM
        return VARYING if sources[2] is None else _difference(product + sources[2])

    def _scaled(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        first, second = sources[:2]
        if first == UNIFORM and second == UNIFORM:
            return UNIFORM
        if first is None or second is None:
            return VARYING
        if second == UNIFORM:
            factor = self._constant(instruction.operands[2])
            stride = first
        else:
            factor = self._constant(instruction.operands[1])
            stride = second
        return VARYING if factor is None else _stride(stride * factor)

    def _shift(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        first, second = sources
        if first == UNIFORM and second == UNIFORM:
            return UNIFORM
        amount = self._constant(instruction.operands[2])
        if first is None or second != UNIFORM or amount is None:
            return VARYING
        return _stride(first << amount) if 0 <= amount < int(instruction.modifiers[-1][1:]) else VARYING

    def _shift_right(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """shr: what is left of a warp's line without the lane number is uniform."""
        amount = self.warp_lines.number(instruction.operands[2])
        leaves_warp = amount is not None and 1 << min(amount & 0xFFFFFFFF, 64) >= self.warp_lines.width
        if leaves_warp and self._is_line(instruction.operands[1], sources):
            return UNIFORM
        return _plain(sources)

    def _and(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        mask = self.warp_lines.number(instruction.operands[2])
        if mask is not None and self._is_line(instruction.operands[1], sources):
            if self.warp_lines.keeps_lane(mask):
                return 1
            if self.warp_lines.drops_lane(mask):
                return UNIFORM
        return _plain(sources)

    def _is_line(self, operand: ast.Operand, sources: list[Shape]) -> bool:
        return isinstance(operand, ast.Register) and operand.name in self.warp_lines.lines and sources[0] == 1

    def _negate(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        shape = sources[0]
        return VARYING if shape is None or (shape and instruction.modifiers[-1] not in _INTEGERS) else -shape

    def _choice(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """selp: one of two values of the same stride."""
        first, second, condition = sources
        same = condition == UNIFORM and first is not None and first == second
        return first if same and (not first or instruction.modifiers[-1] in _INTEGERS) else VARYING

    def _load(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """One access for all lanes at a uniform address gives them one value, unless each has its own memory there."""
        if any(source != UNIFORM for source in sources):
            return VARYING
        modifiers = instruction.modifiers
        if "local" in modifiers or (self.has_local and _is_generic(modifiers)):
            return VARYING
        return UNIFORM

    def _different(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """Each lane gets a value of its own (atomics), or nothing is known (calls)."""
        return VARYING

    def _together(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """bar.red: one result for the whole block."""
        return UNIFORM

    def _shuffle(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape | tuple[Shape, ...]:
        """All lanes read the same value when the source is uniform; whether the other lane exists differs."""
        value = UNIFORM if sources[0] == UNIFORM else VARYING
        return (value, VARYING) if isinstance(instruction.operands[0], ast.Pair) else value

    def _vote(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape:
        """vote and redux: one result for all lanes that give the same mask."""
        return UNIFORM if len(sources) < 2 or sources[-1] == UNIFORM else VARYING

    def _elect(self, instruction: ast.Instruction, sources: list[Shape]) -> Shape | tuple[Shape, ...]:
        leader = UNIFORM if sources[0] == UNIFORM else VARYING
        return (leader, VARYING) if isinstance(instruction.operands[0], ast.Pair) else leader


def _plain(sources: list[Shape]) -> Shape:
    """The result of an instruction without a rule of its own: the same in all lanes if its sources are."""
    return UNIFORM if all(source == UNIFORM for source in sources) else VARYING


def _stride(value: int) -> Shape:
    return value if abs(value) < _LARGEST_STRIDE else VARYING


def _difference(value: int) -> Shape:
    """The stride of a sum. Where strides cancel, lanes may still differ, as one operand may have wrapped in some."""
    return _stride(value) if value else VARYING


def _is_generic(modifiers: tuple[str, ...]) -> bool:
    return not any(modifier.partition("::")[0] in ("global", "shared", "const", "param") for modifier in modifiers)


RULES: dict[str, Callable[[Uniformity, ast.Instruction, list[Shape]], Shape | tuple[Shape, ...]]] = {
    "plain": Uniformity._like_sources,
    "copy": Uniformity._copy,
    "convert": Uniformity._convert,
    "sum": Uniformity._sum,
    "product": Uniformity._product,
    "shift": Uniformity._shift,
    "right": Uniformity._shift_right,
    "mask": Uniformity._and,
    "negate": Uniformity._negate,
    "choice": Uniformity._choice,
    "load": Uniformity._load,
    "shuffle": Uniformity._shuffle,
    "vote": Uniformity._vote,
    "elect": Uniformity._elect,
    "block": Uniformity._together,
    "differ": Uniformity._different,
    "none": Uniformity._different,
}
"""By what grammar/descriptions.py says of ``lanes``. What writes nothing by itself may write what a pass has added."""
