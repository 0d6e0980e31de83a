"""Asynchronous copies to shared memory (PTX ISA, "cp.async"), done at once: waiting for them is then no work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.ptx import ast

from .bounds import Access
from .builder import constant
from .memory import load_access, store_access

if TYPE_CHECKING:
    from .body import Body

_WORDS = {4: ("i32", 1), 8: ("i32", 2), 16: ("i32", 4)}


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why a copy cannot be run, or None."""
    modifiers = instruction.modifiers
    if modifiers[0] != "async" or "bulk" in modifiers or "mbarrier" in modifiers:
        return "bulk copies and copies that signal an mbarrier are not supported"
    return None


def copy_async(body: Body, instruction: ast.Instruction) -> None:
    """``cp.async``: copy 4, 8 or 16 bytes; what lies beyond the size of the source becomes zero."""
    modifiers = instruction.modifiers
    if any(modifier in ("commit_group", "wait_group", "wait_all") for modifier in modifiers):
        return
    builder = body.builder
    destination, source, size = instruction.operands[:3]
    assert isinstance(size, ast.Immediate) and isinstance(source, ast.Address)
    type, count = _WORDS[size.value]
    values = load_access(body, Access(instruction, "global", type, count, write=False, volatile=False), source)
    has_size = len(instruction.operands) > 3 and "L2::cache_hint" not in modifiers or len(instruction.operands) > 4
    if has_size:
        present = body.operand(instruction.operands[3], "i32")
        for index, value in enumerate(values):
            bytes_left = builder.binary("sub", present, constant("i32", 4 * index))
            bits = builder.binary("shl", bytes_left, constant("i32", 3))
            some = builder.compare("icmp sgt", bytes_left, constant("i32", 0))
            all_four = builder.compare("icmp sge", bytes_left, constant("i32", 4))
            shift = builder.binary("and", bits, constant("i32", 31))
            low = builder.binary("sub", builder.binary("shl", constant("i32", 1), shift), constant("i32", 1))
            kept = builder.select(all_four, constant("i32", -1), builder.select(some, low, constant("i32", 0)))
            values[index] = builder.binary("and", value, kept)
    store_access(body, Access(instruction, "shared", type, count, write=True, volatile=False), destination, values)
