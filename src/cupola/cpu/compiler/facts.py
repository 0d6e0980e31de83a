"""Facts about kernels and variables of a module, for the driver and the engine."""

from __future__ import annotations

import re

from cupola.cpu.compiler.records import dataclass


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What the driver and the engine want to know about a kernel.

    ``params`` are (name, offset, size, alignment), sizes are in bytes. ``whole_warps`` says that its threads meet by
    warps, so that units must be such, ``walkers`` how many of them are better run at a time, 0 if that is a warp's;
    ``largest_compared`` is the largest number that ``%tid.x`` is compared with; ``is_tile_kernel`` says that launches
    need not know its
    ``required_block``; ``has_stack``, ``stack_bytes`` and ``stack_grows`` say whether
    threads have a stack, what the frames of called functions take there, and whether that may not be all.
    ``ptx_version`` is the virtual architecture (90 for sm_90) of its PTX, ``binary_version`` the architecture of the
    cubin that it is from, 0 when it came as PTX, which is compiled for the device that loads it. ``code`` is the
    kernel's address for kernels that launch it, as a distance from where functions are; ``launches`` says what it asks
    of the device runtime, as bits: 1 to launch graphs, 2 dynamic parallelism, 4 which graph it runs in, 8 to update
    nodes of graphs; ``system_calls`` whether it prints, 1, and whether it uses the heap, 2.
    """

    name: str
    params: tuple[tuple[str, int, int, int], ...]
    param_bytes: int
    static_shared: int
    reserved_shared: int
    local_bytes: int
    const_bytes: int
    registers: int
    max_threads: int
    required_block: tuple[int, int, int] | None
    max_block: tuple[int, int, int] | None
    required_cluster: tuple[int, int, int] | None
    max_cluster: int
    must_have_cluster: bool
    blocks_are_clusters: bool
    is_tile_kernel: bool
    ptx_version: int
    binary_version: int
    whole_warps: bool
    walkers: int
    largest_compared: int
    has_stack: bool
    stack_bytes: int
    stack_grows: bool
    code: int
    launches: int
    system_calls: int


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A variable that the driver allocates when it loads the module.

    ``space`` is ``"global"`` or ``"const"``, or ``"texref"`` or ``"surfref"`` for memory that holds an object; ``init``
    the initial bytes (the rest, or all when None, is zero); ``relocations`` are (offset, bytes, symbol, addend,
    generic): the symbol's address plus the addend goes there.
    """

    name: str
    space: str
    size: int
    align: int
    init: bytes | None
    relocations: tuple[tuple[int, int, str, int, bool], ...]
    managed: bool


FOR_DEBUGGER = "\n// cupola: for a debugger\n"
"""The end of the PTX of modules that are loaded while there is a debugger: lines are marked (passes/mark_lines.py)."""

QUICK_FIRST = "\n// cupola: quick first\n"
"""The end of PTX whose kernels are to run soon, in code made in the simplest way until better code is there."""

OWN = "\n// cupola: a kernel of its own\n"
"""The end of PTX that this package has made for the device, with a compiler that may be newer than the modelled driver:
the version of the PTX does not matter. `QUICK_FIRST` may follow."""


def counts_lines(ptx: str) -> bool:
    """Whether a program was compiled without optimization, to have its lines counted (driver/module/observed.c)."""
    return "\n// cupola: the source is " in ptx[-200:] and re.search(r"^\.target .*\bdebug$", ptx, re.M) is not None
