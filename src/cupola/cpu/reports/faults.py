"""Faults of kernels, in words: what happened, in which thread, where in the source, and next to which memory."""

from __future__ import annotations

import struct
from enum import IntEnum
from itertools import groupby
from typing import Protocol

from cupola._counted import counted
from cupola.cpu import _driver
from cupola.cpu.compiler.emit.control.body import Site
from cupola.cpu.compiler.modules import Variant
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.reports.names import readable
from cupola.cpu.reports.texts import text_of

Dim3 = tuple[int, int, int]

_UNKNOWN = 0xFFFFFFFF


class Kind(IntEnum):
    """``enum cpu_fault_kind`` of engine/engine.h."""

    NONE = 0
    OUT_OF_BOUNDS = 1
    MISALIGNED = 2
    ASSERT = 3
    TRAP = 4
    BARRIER = 5
    STACK = 6
    INTERNAL = 7
    NO_ACCESS = 8
    INSTRUCTION = 9
    CALL = 10
    HEAP = 11
    OBJECT = 12
    SURFACE = 13
    STOPPED = 14
    LAUNCH = 15


_SPACES = ("global", "shared", "local", "constant", "parameter")

_GONE = ("", "freed", "unmapped", "unregistered")  # by a number of nearest_allocation() in engine/fault/fault.c

_SUMMARIES = {
    Kind.ASSERT: "an assertion failed",
    Kind.TRAP: "the kernel executed a trap",
    Kind.BARRIER: "the block cannot go on: threads wait for each other forever",
    Kind.STACK: "the kernel ran out of stack",
    Kind.INSTRUCTION: "an instruction was used in a way that its specification leaves undefined",
    Kind.OBJECT: "the kernel used a texture or surface that it cannot use",
    Kind.SURFACE: "the kernel accessed a surface outside of its bounds",
    Kind.CALL: "the kernel called a function through a wrong pointer",
    Kind.STOPPED: "the kernel was stopped",
    Kind.LAUNCH: "a wrong launch by the kernel",
    Kind.INTERNAL: "the CPU device could not go on",
}


class _Compiled(Protocol):
    @property
    def sites(self) -> list[Site]: ...


def describe(
    variant: Variant,
    kind: int,
    site: int,
    address: int,
    size: int,
    is_write: int,
    space: int,
    block: Dim3,
    thread: Dim3,
    dynamic_shared: int,
    message: str,
    allocation: tuple[int, int, int] | None,
    calls: tuple[int, tuple[int, ...]] = (0, ()),
) -> str:
    """Explain a fault.

    Parameters
    ----------
    variant
        The compiled kernel.
    kind, site, address, size, is_write, space, block, thread, message
        The fields of ``cpu_fault``.
    dynamic_shared
        Bytes of dynamic shared memory of the launch.
    allocation
        Address, size and how it has gone (0: it has not, otherwise an index of ``_GONE``), of the allocation nearest to
        the address.
    calls
        How many calls of functions the thread is in, and the numbers of the innermost ones, the last one first.
    """
    info = variant.info
    where = _site(variant, site)
    if kind in (Kind.OUT_OF_BOUNDS, Kind.MISALIGNED, Kind.NO_ACCESS):
        summary = _access(Kind(kind), address, size, is_write, space)
        if kind == Kind.MISALIGNED:
            neighbour = f"a {size}-byte access needs an address that is a multiple of {size}"
        elif kind == Kind.NO_ACCESS and not message:
            neighbour = (
                f"{nearest(address, size, allocation)}, to which this device has no such access: a memory pool "
                f"grants it with cuMemPoolSetAccess (DeviceMemoryResource.peer_accessible_by), memory from another "
                f"device's cuMemAlloc needs cuCtxEnablePeerAccess"
            )
        elif message:
            neighbour = message
        elif space == 1:
            neighbour = _shared_memory(address, info.static_shared, dynamic_shared)
        elif space == 2:
            neighbour = f"a thread of this kernel has {_bytes(info.local_bytes)} of local memory"
        elif where is None:
            neighbour = "no check covers this access: memory was freed while the kernel ran, or this is a bug in cupola"
        else:
            neighbour = nearest(address, size, allocation)
        details = [neighbour, *_origins(allocation if space == 0 else None)]
    elif kind == Kind.HEAP:
        summary = f"free() of {address:#x}, which malloc() in a kernel of this context did not return"
        if allocation is not None and allocation[0] == address and allocation[2]:
            summary = f"free() of {address:#x}, which was freed already"
        details = [nearest(address, 0, allocation)]
    else:
        summary = _SUMMARIES.get(Kind(kind), "the kernel failed")
        details = [message] if message else []
    lines = [f"kernel '{readable(info.name)}': {summary}"]
    if thread[0] != _UNKNOWN:
        lines.append(f"in thread {thread} of block {block}")
    else:
        lines.append(f"in block {block}")
    if where is not None:
        at, *rest = place(where.instruction)
        lines += [at, *_text_of(where.instruction.location, variant.module.text), *rest]
    lines += call_chain(variant.call_sites if calls[0] else (), *calls)
    return "\n  ".join(lines + [line for line in details if line])


def _origins(allocation: tuple[int, int, int] | None) -> list[str]:
    """The lines of Python that allocated memory and freed it."""
    if allocation is None:
        return []
    allocated, freed = _driver.lines_of_memory(allocation[0])
    lines = [("allocated", allocated), (_GONE[allocation[2]], freed if allocation[2] else None)]
    return [f"{what} at {line}" for what, line in lines if line]


def _site(variant: _Compiled, site: int) -> Site | None:
    return variant.sites[site] if site < len(variant.sites) else None


def _access(kind: Kind, address: int, size: int, is_write: int, space: int) -> str:
    wrong = {Kind.MISALIGNED: "misaligned", Kind.NO_ACCESS: "forbidden"}.get(kind, "out-of-bounds")
    what = "write" if is_write else "read"
    amount = f" of {size} byte{'s' if size > 1 else ''}" if size else ""
    at = f"offset {address}" if space in (1, 2) else f"address {address:#x}"
    return f"{wrong} {what}{amount} in {_SPACES[space]} memory at {at}"


def place(instruction: ast.Instruction) -> list[str]:
    """The source lines of an instruction, from the innermost inlined function outwards, and its PTX."""
    lines: list[str] = []
    location: ast.Location | None = instruction.location
    while location is not None and location.file is not None:
        function = f" in {readable(location.function)}" if location.function else ""
        word = "inlined at" if lines else "at"
        lines.append(f"{word} {location.file}:{location.line}{function}")
        location = location.inlined_at
    if not lines:
        lines.append("(compile with -lineinfo, ProgramOptions(lineinfo=True), to see the line of the CUDA source)")
    return [*lines, f"PTX line {instruction.location.ptx_line}: {instruction.text.strip()}"]


def _text_of(location: ast.Location, ptx: str) -> list[str]:
    """The text of a line, in a line of its own."""
    text = text_of(location.file, location.line, ptx)
    return [f"  {text}"] if text.text else []


def call_chain(sites: tuple[ast.Instruction, ...], count: int, numbers: tuple[int, ...]) -> list[str]:
    """The calls that a thread is in, the innermost first; the same ones again and again are counted."""
    lines: list[str] = []
    said = 0
    known = [_call(sites[number - 1]) for number in numbers if 0 < number <= len(sites)]
    for call, same in groupby(known):
        times = len(list(same))
        lines.append(call if times == 1 else f"{call}, {times} times")
        said += times
    if count > said:
        lines.append(f"and {counted(count - said, 'call')} more")
    return lines


def _call(instruction: ast.Instruction) -> str:
    location = instruction.location
    if location.file is None:
        return f"called at PTX line {location.ptx_line}: {instruction.text.strip()}"
    function = f" in {readable(location.function)}" if location.function else ""
    return f"called at {location.file}:{location.line}{function}"


def _shared_memory(offset: int, static: int, dynamic: int) -> str:
    parts = f"{static} static and {dynamic} dynamic" if static and dynamic else "static" if static else "dynamic"
    if not static + dynamic:
        return "the block has no shared memory: pass its size at the launch"
    return f"the block has {_bytes(static + dynamic)} of shared memory ({parts})"


def nearest(address: int, size: int, allocation: tuple[int, int, int] | None) -> str:
    """Where an address lies with respect to the allocation nearest to it."""
    if address < 4096:
        return "the address is (nearly) zero: a null pointer"
    if allocation is None:
        return "there is no allocation near it" + (_as_number(address) or _of_the_host(address))
    base, length, freed = allocation
    end = base + length
    which = f"a {length}-byte allocation at {base:#x}" + (f" that was {_GONE[freed]}" if freed else "")
    if address < base:
        return f"{_bytes(base - address)} before {which}"
    if address >= end:
        return f"{_bytes(address - end)} past the end of {which}" if address > end else f"just past the end of {which}"
    if address + size > end:
        return f"{_bytes(end - address)} before the end of {which}, so only a part is inside"
    return f"{_bytes(address - base)} inside {which}" if address > base else f"at the start of {which}"


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _of_the_host(address: int) -> str:
    """Memory of the process that CUDA knows nothing of, such as that of an array of NumPy."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            places, access = line.split()[:2]
            begin, end = (int(place, 16) for place in places.split("-"))
            if begin <= address < end and access.startswith("r"):  # the CPU device's own free addresses cannot be read
                return ": it is memory of the host, such as a NumPy array's; copy that to a Buffer"
    return ""


def _as_number(address: int) -> str:
    """Beyond what an address can be, it often is a float64 that was passed for a pointer."""
    number: float = struct.unpack("<d", struct.pack("<Q", address))[0]
    if address < 1 << 48 or not 1e-9 < abs(number) < 1e12:
        return ""
    return f"; as a float64 it is {number:.6g}: was a number passed where the kernel takes a pointer?"
