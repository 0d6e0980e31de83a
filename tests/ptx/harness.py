"""Runs one PTX instruction on tables of operands: a small LLVM function around ``lower()``, called by ctypes.

Every instruction is compiled for one lane, 8 and 32 lanes, with all sources varying, all uniform, and each
source uniform in turn, so that scalar, vector and mixed code paths are all compared with the same oracle.
Operands and results are bit patterns, as Python integers.

What a recorded form contains, with the same modifiers, is compared with a GPU in each run, and with the oracle by turns
(tests/turns.py).
"""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from cupola.cpu.compiler.emit.instructions import lower, operand_types, split_operands, supported
from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.objects.processor import processor
from cupola.cpu.compiler.ptx import ast
from tests import turns
from tests.ptx.forms import families, forms
from tests.ptx.oracle import F64, NAN, combinations
from tests.ptx.recording import pending_families


def parse(text: str) -> ast.Instruction:
    """An instruction as the tables write it: registers are plain words, ``_`` a sink, ``-a.h1`` a negated part."""
    opcode, _, rest = text.partition(" ")
    name, *modifiers = opcode.split(".")
    # As the lexer does, C++-like opcodes such as "cvt.rn.f16x2.f32" need no more than splitting at the dots.
    operands: list[ast.Operand] = []
    for part in re.findall(r"\{[^}]*\}|[^,\s]+", rest):
        operands.append(_operand(part))
    return ast.Instruction(name, tuple(modifiers), tuple(operands), None, ast.Location(1), text)


def _operand(text: str) -> ast.Operand:
    if text.startswith("{"):
        return ast.Vector(tuple(_operand(item) for item in re.findall(r"[^,\s{}]+", text)))
    if "|" in text:
        first, second = (_operand(item) for item in text.split("|"))
        assert isinstance(first, ast.Register | ast.Sink) and isinstance(second, ast.Register | ast.Sink)
        return ast.Pair(first, second)
    if text == "_":
        return ast.Sink()
    part = re.fullmatch(r"(-?)([a-z]\w*)(?:\.(\w+))?", text)
    if part and (part[1] or part[3]):  # as video instructions have them
        return ast.Selector(ast.Register("%" + part[2]), part[3] or "", bool(part[1]))
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text):
        return ast.Immediate(int(text, 0))
    return ast.Register("%" + text)


def _storage(type: str) -> tuple[int, str]:
    """Bytes of a lane in memory, and the LLVM integer type of that size."""
    size = max(1, BITS[type] // 8)
    return size, f"i{8 * size}"


@dataclass
class Compiled:
    """One instruction compiled for one width and one choice of uniform sources."""

    instruction: ast.Instruction
    width: int
    uniform: tuple[bool, ...]
    call: Callable[..., None]
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    engine: llvm.ExecutionEngine

    def run(self, rows: Sequence[Sequence[int]], active: Sequence[bool] | None = None) -> list[list[int]]:
        """Results of up to ``width`` rows of operand patterns, by destination."""
        width = self.width
        padded = list(rows) + [rows[-1]] * (width - len(rows))
        buffers = []
        for index, type in enumerate(self.sources):
            size, _ = _storage(type)
            mask = (1 << BITS[type]) - 1
            buffers.append(b"".join((int(row[index]) & mask).to_bytes(size, "little") for row in padded))
        lanes = bytes((list(active) if active is not None else [True] * len(rows)) + [False] * width)[:width]
        results = [ctypes.create_string_buffer(_storage(type)[0] * width) for type in (*self.destinations,)]
        self.call(
            *(ctypes.cast(ctypes.c_char_p(x), ctypes.c_void_p) for x in buffers),
            ctypes.cast(ctypes.c_char_p(lanes), ctypes.c_void_p),
            *(ctypes.cast(x, ctypes.c_void_p) for x in results),
        )
        out = []
        for type, result in zip(self.destinations, results, strict=True):
            size, _ = _storage(type)
            raw = result.raw
            out.append([int.from_bytes(raw[i * size : (i + 1) * size], "little") for i in range(len(rows))])
        return out


def write_function(
    instruction: ast.Instruction, width: int, uniform: Sequence[bool], name: str, canonical: bool = True
) -> tuple[Builder, str]:
    """The builder and the text of ``void name(sources..., active, destinations...)``, all pointers."""
    types = operand_types(instruction)
    b = Builder(width)
    b.canonical_nans = canonical
    operands = split_operands(instruction)[1]
    sources: list[Value] = []
    for index, type in enumerate(types.sources):
        operand = operands[index]
        if isinstance(operand, ast.Immediate):
            sources.append(b.constant(type, operand.value))
            continue
        _, stored = _storage(type)
        vector = width > 1 and not uniform[index]
        shape = b.vector_type(stored) if vector else stored
        raw = Value(b.emit(f"load {shape}, ptr %s{index}, align 1"), stored, vector)
        sources.append(_from_storage(b, raw, type))
    if width > 1:
        mask = Value(b.emit(f"load {b.vector_type('i8')}, ptr %active, align 1"), "i8", True)
        b.active = b.cast("trunc", mask, "i1")
    results = lower(b, instruction, sources)
    assert len(results) == len(types.destinations), "number of results"
    for index, (type, result) in enumerate(zip(types.destinations, results, strict=True)):
        assert result.type == type, f"result {index} is {result.type}, declared {type}"
        size, stored = _storage(type)
        value = b.splat(result)
        value = b.cast("zext", value, "i8") if type == "i1" else b.bitcast(value, stored)
        b.line(f"store {b.typed(value)}, ptr %d{index}, align 1")
    parameters = [f"ptr %s{i}" for i in range(len(types.sources))] + ["ptr %active"]
    parameters += [f"ptr %d{i}" for i in range(len(types.destinations))]
    text = f"define void @{name}({', '.join(parameters)}) {{\nentry:\n"
    text += "\n".join(b.allocas + b.lines) + "\n  ret void\n}\n"
    return b, text


def _from_storage(b: Builder, raw: Value, type: str) -> Value:
    return b.cast("trunc", raw, "i1") if type == "i1" else b.bitcast(raw, type)


@cache
def _target() -> llvm.Target:
    machine.llvm()
    machine.link_half_conversions()
    return llvm.Target.from_default_triple()


def target_machine() -> llvm.TargetMachine:
    """A new one each time: an execution engine owns the machine that it was made with."""
    chosen = processor(machine.llvm())
    return _target().create_target_machine(cpu=chosen.name, features=chosen.features, opt=2, jit=True)


def module_text(functions: Sequence[tuple[Builder, str]]) -> str:
    declarations: dict[str, None] = {}
    definitions: dict[str, str] = {}
    for builder, _ in functions:
        declarations |= builder.declarations
        definitions |= builder.functions
    return "\n".join([*declarations, *definitions.values(), *(text for _, text in functions)])


def build(text: str, *, optimise: bool = True) -> llvm.ExecutionEngine:
    module = llvm.parse_assembly(text)
    module.verify()
    machine = target_machine()
    if optimise:
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        options.loop_vectorization = options.slp_vectorization = False
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def compile_all(text: str, widths: Sequence[int] = (1, 8, 32), mixed: bool = True) -> list[Compiled]:
    """The instruction compiled in every shape worth testing."""
    instruction = parse(text)
    reason = supported(instruction)
    assert reason is None, reason
    types = operand_types(instruction)
    count = len(types.sources)
    shapes: list[tuple[int, tuple[bool, ...]]] = []
    for width in widths:
        shapes.append((width, (False,) * count))
        if width == 32 and mixed:
            if count > 1:
                shapes += [(width, tuple(i == j for j in range(count))) for i in range(count)]
            shapes.append((width, (True,) * count))
    functions = [write_function(instruction, width, uniform, f"f{i}") for i, (width, uniform) in enumerate(shapes)]
    engine = build(module_text(functions))
    arguments = (ctypes.c_void_p,) * (count + 1 + len(types.destinations))
    prototype = ctypes.CFUNCTYPE(None, *arguments)
    return [
        Compiled(
            instruction,
            width,
            uniform,
            prototype(engine.get_function_address(f"f{i}")),
            types.sources,
            types.destinations,
            engine,
        )
        for i, (width, uniform) in enumerate(shapes)
    ]


def check(text: str, rows: Sequence[Sequence[int]], agrees: Callable[[Sequence[int], list[int]], str | None]) -> None:
    """Run ``text`` on every row in every shape; ``agrees(row, results)`` returns a complaint or None."""
    for compiled in compile_all(text):
        width = compiled.width
        if any(compiled.uniform):
            # Rows of one call must share the uniform operands: take a few rows as leaders.
            step = max(1, len(rows) // 5)
            groups = []
            for leader in rows[::step]:
                group = [
                    [lead if u else value for lead, value, u in zip(leader, row, compiled.uniform, strict=True)]
                    for row in rows[:width]
                ]
                groups.append(group)
        else:
            groups = [list(rows[i : i + width]) for i in range(0, len(rows), width)]
        for group in groups:
            results = compiled.run(group)
            for lane, row in enumerate(group):
                complaint = agrees(row, [r[lane] for r in results])
                if complaint:
                    shown = ", ".join(hex(x) for x in row)
                    raise AssertionError(f"{text} (width {width}, uniform {compiled.uniform}) on {shown}: {complaint}")


PARTS = 4  # of the instructions that forms contain; each run has one


@cache
def recorded_opcodes() -> frozenset[str]:
    """Opcodes with their modifiers, as the recorded forms have them."""
    compared = set(families()) - set(pending_families())
    statements = (statement for family in compared for form in forms(family) for statement in form.code.split(";"))
    return frozenset(re.sub(r"^[\s{]*(@!?%\w+\s+)?", "", statement).partition(" ")[0] for statement in statements)


def is_for_this_run(text: str) -> bool:
    return text.partition(" ")[0] not in recorded_opcodes() or turns.is_now(zlib.crc32(text.encode()), PARTS)


def verify(
    text: str, columns: Sequence[Sequence[int]], oracle: Callable[..., int | Iterable[int]], *, limit: int = 128
) -> None:
    """Compare an instruction with ``oracle(*operands)`` on combinations of operands out of ``columns``.

    The oracle returns the pattern of the result or one for each destination; `oracle.NAN` admits any NaN of f64.
    """
    verify_rows(text, combinations(*columns, limit=limit) if columns else [()], oracle)


def verify_rows(text: str, rows: Sequence[Sequence[int]], oracle: Callable[..., int | Iterable[int]]) -> None:
    """:func:`verify` on the given rows of operands."""
    if not is_for_this_run(text):
        return
    bits = [BITS[type] for type in operand_types(parse(text)).destinations]
    known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        key = tuple(row)
        if key not in known:
            answer = oracle(*key)
            known[key] = (answer,) if isinstance(answer, int) else tuple(answer)
        for result, expected, width in zip(results, known[key], bits, strict=True):
            if expected == NAN and width == 64 and F64.is_nan(result):
                continue
            if result != expected & ((1 << width) - 1):
                return f"got {result:#x}, expected {expected & ((1 << width) - 1):#x}"
        return None

    check(text, rows, agrees)
