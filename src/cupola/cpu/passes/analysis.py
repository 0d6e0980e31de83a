"""What the emitter knows about a kernel before it writes a line: the result of all analyses in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cupola.cpu.passes.control_flow import Block, build_blocks, waits_for_warps
from cupola.cpu.passes.divergence import Divergence
from cupola.cpu.passes.liveness import Liveness
from cupola.cpu.passes.loops import Loop, order_blocks
from cupola.cpu.passes.uniformity import UNIFORM, VARYING, Shape, Uniformity, _Unknown
from cupola.cpu.passes.warp_lines import WarpLines
from cupola.cpu.ptx import ast

__all__ = ["UNIFORM", "VARYING", "Analysis", "Shape", "analyse"]


@dataclass(slots=True)
class Analysis:
    """A kernel taken apart for a warp of ``width`` lanes.

    Attributes
    ----------
    function : ast.Function
    width : int
    blocks : list of Block
        In the order of execution, ``blocks[i].index == i``, the entry first. The order and ``Block.convergent``
        hold if lanes that wait at several blocks are run lowest index first. Blocks that only return come last.
    loops : list of Loop
        Outer ones first. ``loop.waits`` marks those in which a thread may wait for another one.
    registers : dict
        The types of the registers that reachable instructions name, in order of first appearance.
    shapes : dict
        By register: `UNIFORM` (0), a stride other than 0, or `VARYING` (None). See `shape`.
    constants : dict
        Registers with one definition, an unguarded ``mov`` of a number: the `ast.Immediate`.
    local : set of str
        Registers that never carry a value from one block to another (nor around a loop): they are written before
        they are read in every run of the block, so an unguarded write need not keep the old value of lanes that
        do not run.
    warp_lines : set of str
        Registers that are a multiple of the width plus the lane number, wherever they are affine with stride 1.
    liveness : Liveness
    """

    function: ast.Function
    width: int
    blocks: list[Block]
    loops: list[Loop]
    registers: dict[str, str]
    shapes: dict[str, Shape]
    constants: dict[str, ast.Immediate]
    local: set[str]
    warp_lines: set[str]
    liveness: Liveness

    def shape(self, register: str) -> Shape:
        """How a register depends on the lane.

        Returns
        -------
        int or None
            0 (`UNIFORM`): in every block, all lanes that run it see the same value; one scalar is enough. (Instructions
            may still produce it as a vector, then any running lane has it.)

            Another integer, the stride: lane ``i`` holds ``base + i * stride``, modulo the register's width, unless an
            instruction widened a value whose lanes had wrapped. That must be tested at run time.

            None (`VARYING`): nothing is known.
        """
        return self.shapes.get(register, UNIFORM)

    def live_in(self, block: Block) -> list[str]:
        """The registers whose value may be read in or after ``block`` before it is written, in a fixed order.

        What to keep when a warp is suspended in front of the block.
        """
        return list(self.liveness.names(self.liveness.live_in[block.index]))


def analyse(
    function: ast.Function,
    *,
    width: int,
    x_is_contiguous: bool,
    rows_are_whole: bool = False,
    suspends: Callable[[ast.Instruction], bool] = waits_for_warps,
) -> Analysis:
    """Analyse a function that `prepare` has made ready.

    Parameters
    ----------
    function : ast.Function
        With calls inlined and the carry explicit.
    width : int
        Lanes of a warp; with 1 every register is uniform and every block convergent.
    x_is_contiguous : bool
        All lanes of a warp have the same ``%tid.y`` and ``%tid.z``, and ``%tid.x`` goes up by one from lane to lane:
        blockDim.x is a multiple of the width, or the block has one row only.
    rows_are_whole : bool
        blockDim.x is a multiple of the width.
    suspends : callable, optional
        Which instructions end a block because the warp may be suspended there; barriers by default.

    Returns
    -------
    Analysis

    Raises
    ------
    PtxUnsupportedError
        For a branch that does not go to a label.

    Notes
    -----
    Registers are typed by their declaration, values by the instruction: a ``.b32`` register may hold a float. The
    address of a local variable counts as uniform (all lanes have the same offset in their own local memory); what
    is loaded from there never does.
    """
    blocks = build_blocks(function, suspends)
    order = order_blocks(blocks)
    liveness = Liveness(order.blocks)
    registers = {name: function.registers[name] for name in liveness.bit}
    local, constants, single = _definitions(order.blocks, liveness)
    shapes: dict[str, Shape] = {}
    numbers = {name: immediate.value for name, immediate in constants.items() if immediate.kind == "int"}
    lines = WarpLines(width, numbers, x_is_contiguous=x_is_contiguous, rows_are_whole=rows_are_whole)
    if width > 1:
        lines.find((instruction for block in order.blocks for instruction in block.code()), single)
        uniformity = Uniformity(
            x_is_contiguous=x_is_contiguous,
            has_local=any(variable.space == "local" for variable in function.variables),
            warp_lines=lines,
        )
        uniformity.constants = numbers
        for block in order.blocks:
            for instruction, effect in zip(block.code(), block.effects, strict=True):
                uniformity.add(instruction, effect)
        Divergence(order, liveness, uniformity)
        uniformity.solve()
        shapes = {name: shape for name, shape in uniformity.shapes.items() if not isinstance(shape, _Unknown)}
    return Analysis(
        function, width, order.blocks, order.loops, registers, shapes, constants, local, lines.lines, liveness
    )


def _definitions(blocks: list[Block], liveness: Liveness) -> tuple[set[str], dict[str, ast.Immediate], set[str]]:
    """Registers that stay within a block, those that hold a constant, and those with one definition."""
    home: dict[str, Block | None] = {}
    count: dict[str, int] = {}
    constants: dict[str, ast.Immediate] = {}
    across = 0
    for bits in liveness.live_in:
        across |= bits
    for block in blocks:
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            for name in effect.writes:
                home[name] = block if home.setdefault(name, block) is block else None
                count[name] = count.get(name, 0) + 1
            if instruction.opcode == "mov" and instruction.guard is None:
                target, source = instruction.operands
                if isinstance(target, ast.Register) and isinstance(source, ast.Immediate):
                    constants[target.name] = source
    local = {name for name, block in home.items() if block is not None and not liveness.bit[name] & across}
    single = {name for name, number in count.items() if number == 1}
    return local, {name: value for name, value in constants.items() if name in single}, single
