"""Establishes: a thread that calls a function again before it has returned finds everything as it was.

Registers and local variables are one for all calls of a function. Of one that is recursive, a thread may be in several
calls, so its local variables live in the frame that ``.enter`` begins on the thread's stack, and what it still wants
after a call of a recursive function is kept there meanwhile. A frame is in local memory, at addresses that go up::

    0   the frame of the caller
    4   the number of the call
    16  local variables, then room for registers (only of recursive functions)
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.passes.control_flow import build_blocks, call_targets
from cupola.cpu.compiler.passes.effects import CARRY
from cupola.cpu.compiler.passes.liveness import Liveness
from cupola.cpu.compiler.passes.operands import rewrite
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.names import TYPE_BITS

_HEAD = 16
_SHARED = (".argument", ".result", "%.site", CARRY.name)  # registers that belong to no function


def make_frames(function: ast.Function) -> ast.Function:
    """The kernel with the frames of its parts laid out; the same object when it uses no stack."""
    body = function.body or []
    allocates = any(isinstance(s, ast.Instruction) and s.description.stack for s in body)
    if not function.parts:
        return replace(function, stack_grows=True) if allocates else function
    return _Framer(function, allocates).result()


class _Framer:
    def __init__(self, function: ast.Function, allocates: bool) -> None:
        self.function = function
        self.grows = allocates or any(part.recursive for part in function.parts.values())
        self.registers = dict(function.registers)
        self.body: list[ast.Statement] = []
        self.slots: dict[str, int] = {}  # local variables of the current part in its frame
        self.base: ast.Register | None = None
        self.frames: dict[str, int] = {}
        self.part: ast.Part | None = None
        self.kept: dict[int, list[str]] = {}
        self.in_frames: set[str] = set()
        self.laid_out: dict[str, ast.Part] = {}

    def result(self) -> ast.Function:
        function = self.function
        if any(part.recursive for part in function.parts.values()):
            self._find_kept()
        for statement in function.body or ():
            if isinstance(statement, ast.Label):
                part = function.parts.get(statement.name)
                if part is not None:
                    self._begin(part)
                self.body.append(statement)
            else:
                self._instruction(statement)
        sizes = {label: -(-size // 16) * 16 for label, size in self.frames.items()}
        label = ""
        body: list[ast.Statement] = []
        for statement in self.body:
            if isinstance(statement, ast.Label) and statement.name in sizes:
                label = statement.name
            if isinstance(statement, ast.Instruction) and statement.opcode == ".enter":
                size = ast.Immediate(sizes[label])
                statement = replace(statement, operands=(statement.operands[0], size))
            body.append(statement)
        variables = [variable for variable in function.variables if variable.name not in self.in_frames]
        return replace(
            function,
            body=body,
            registers=self.registers,
            variables=variables,
            parts={**function.parts, **self.laid_out},
            stack_bytes=self._stack_bytes(sizes),
            stack_grows=self.grows,
        )

    def _find_kept(self) -> None:
        """What is wanted after calls that may come back to the function that they are in."""
        parts = self.function.parts
        blocks = build_blocks(self.function)
        liveness = Liveness(blocks)
        for block in blocks:
            end = block.terminator
            if end is None or end.opcode != ".call":
                continue
            here = parts.get(block.part)
            if here is None or not here.recursive:
                continue
            if any(parts[target].recursive for target in call_targets(self.function, end)):
                wanted = liveness.names(liveness.live_in[block.successors[0].index])
                self.kept[id(end)] = [name for name in wanted if not name.startswith(_SHARED)]

    def _stack_bytes(self, sizes: dict[str, int]) -> int:
        """What the deepest calls take when each function is called once."""
        label = ""
        depth: dict[str, int] = dict(sizes)
        deepest: dict[str, int] = {}  # below each function
        calls: dict[str, set[str]] = {}
        for statement in self.body:
            if isinstance(statement, ast.Label):
                label = statement.name if statement.name in sizes else label
            elif statement.opcode == ".call":
                calls.setdefault(label, set()).update(call_targets(self.function, statement))
        for name in [*sizes, ""]:  # callees before callers
            below = max((depth.get(t, 0) for t in calls.get(name, ()) if t in deepest), default=0)
            deepest[name] = below
            depth[name] = sizes.get(name, 0) + below
        return depth[""]

    # --- parts ----------------------------------------------------------------------------------------------

    def _begin(self, part: ast.Part) -> None:
        self.part = part
        self.slots = {}
        self.base = None
        self.frames[part.label] = _HEAD
        if not part.recursive:
            return
        suffix = part.label.removeprefix(".part")
        offset, alignment = _HEAD, 16
        for variable in self.function.variables:
            mine = variable.name.endswith(suffix) and not variable.name.startswith(_SHARED)
            if variable.space == "local" and mine:
                offset = -(-offset // variable.align) * variable.align
                self.slots[variable.name] = offset
                self.in_frames.add(variable.name)
                offset += variable.size
                alignment = max(alignment, variable.align)
        self.base = ast.Register(f"%.frame{suffix}")
        self.laid_out[part.label] = replace(part, frame=self.base.name, slots=tuple(self.slots.items()))
        self.registers[self.base.name] = "u32"
        self.alignment = alignment
        # A frame begins at a multiple of 16; what needs more begins where the next such address is.
        self.locals_end = -(-offset // 8) * 8 + (alignment - 16)
        self.frames[part.label] = self.locals_end

    def _emit(self, near: ast.Instruction, opcode: str, modifiers: tuple[str, ...], *operands: ast.Operand) -> None:
        self.body.append(ast.Instruction(opcode, modifiers, operands, None, near.location, near.text))

    def _find_frame(self, near: ast.Instruction) -> None:
        """Set the register that holds where the frame begins."""
        if self.base is None:
            return
        self._emit(near, ".frame", (), self.base)
        if self.alignment > 16:
            self._emit(near, "add", ("u32",), self.base, self.base, ast.Immediate(self.alignment - 16))
            self._emit(near, "and", ("b32",), self.base, self.base, ast.Immediate(-self.alignment))

    def _instruction(self, instruction: ast.Instruction) -> None:
        if instruction.opcode == ".enter":
            self.body.append(instruction)
            self._find_frame(instruction)
        elif instruction.opcode == ".call":
            self._call(instruction)
        elif self.slots:
            self._in_frame(instruction)
        else:
            self.body.append(instruction)

    def _call(self, call: ast.Instruction) -> None:
        """Keep what is wanted behind the call. The label behind a call comes next."""
        assert self.part is None or self.base is None or self.part.recursive
        kept = self.kept.get(id(call), [])
        if self.base is None or not any(self.function.parts[t].recursive for t in call_targets(self.function, call)):
            self.body.append(call)
            return
        assert self.part is not None
        offset = self.locals_end
        places: list[tuple[str, int]] = []
        for name in kept:
            if name == self.base.name:
                continue
            size = max(4, TYPE_BITS[self.registers[name]] // 8)
            offset = -(-offset // size) * size
            places.append((name, offset))
            offset += size
        self.frames[self.part.label] = max(self.frames[self.part.label], offset)
        for name, place in places:
            self._keep(call, name, ast.Address(self.base, place), store=True)
        self.body.append(call)
        self.body.append(ast.Label(f"{self.part.label}.again{len(self.body)}"))
        self._find_frame(call)
        for name, place in places:
            self._keep(call, name, ast.Address(self.base, place), store=False)

    def _keep(self, call: ast.Instruction, name: str, place: ast.Address, *, store: bool) -> None:
        register, kind = ast.Register(name), self.registers[name]
        if kind == "pred":
            number = ast.Register(f"%.truth{len(self.body)}")
            self.registers[number.name] = "b32"
            if store:
                self._emit(call, "selp", ("b32",), number, ast.Immediate(1), ast.Immediate(0), register)
                self._emit(call, "st", ("local", "b32"), place, number)
            else:
                self._emit(call, "ld", ("local", "b32"), number, place)
                self._emit(call, "setp", ("ne", "b32"), register, number, ast.Immediate(0))
        elif store:
            self._emit(call, "st", ("local", f"b{TYPE_BITS[kind]}"), place, register)
        else:
            self._emit(call, "ld", ("local", f"b{TYPE_BITS[kind]}"), register, place)

    def _in_frame(self, instruction: ast.Instruction) -> None:
        """Replace the names of local variables."""
        assert self.base is not None
        operands: list[ast.Operand] = []
        modifiers = instruction.modifiers
        changed = False
        for operand in instruction.operands:
            base = operand.base if isinstance(operand, ast.Address) else None
            if isinstance(operand, ast.Address) and isinstance(base, ast.Symbol) and base.name in self.slots:
                if not any(modifier.startswith("local") for modifier in modifiers):
                    modifiers = ("local", *modifiers)
                operands.append(ast.Address(self.base, self.slots[base.name] + base.offset + operand.offset))
                changed = True
                continue
            new = rewrite(operand, lambda leaf: self._address(instruction, leaf))
            changed |= new is not operand and new != operand
            operands.append(new)
        if changed:
            instruction = replace(instruction, operands=tuple(operands), modifiers=modifiers)
        self.body.append(instruction)

    def _address(self, near: ast.Instruction, operand: ast.Operand) -> ast.Operand:
        """A register with the address of a local variable; other operands stay."""
        if not isinstance(operand, ast.Symbol) or operand.name not in self.slots:
            return operand
        assert self.base is not None
        wide = TYPE_BITS.get(near.modifiers[-1] if near.modifiers else "", 64) == 64
        number = ast.Register(f"%.address{len(self.body)}")
        self.registers[number.name] = "u64" if wide else "u32"
        offset = ast.Immediate(self.slots[operand.name] + operand.offset)
        if wide:
            self._emit(near, "cvt", ("u64", "u32"), number, self.base)
            self._emit(near, "add", ("u64",), number, number, offset)
        else:
            self._emit(near, "add", ("u32",), number, self.base, offset)
        return number
