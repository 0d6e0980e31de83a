"""From a parsed kernel to what the emitter needs: a file per pass, each named for what it establishes.

`prepare` makes a kernel self-contained (calls inlined, carry explicit); `analyze` takes it apart.
"""

from cupola.cpu.compiler.passes.analysis import UNIFORM, VARYING, Analysis, Shape, analyze
from cupola.cpu.compiler.passes.control_flow import Block, waits_for_warps
from cupola.cpu.compiler.passes.effects import CARRY, Effects, effects
from cupola.cpu.compiler.passes.loops import Loop
from cupola.cpu.compiler.passes.mark_lines import mark_lines
from cupola.cpu.compiler.passes.prepare import prepare
from cupola.cpu.compiler.passes.roll_loops import roll_loops
from cupola.cpu.compiler.passes.walks import walk_abreast, walk_alone

__all__ = [
    "CARRY",
    "UNIFORM",
    "VARYING",
    "Analysis",
    "Block",
    "Effects",
    "Loop",
    "Shape",
    "analyze",
    "effects",
    "mark_lines",
    "prepare",
    "roll_loops",
    "waits_for_warps",
    "walk_abreast",
    "walk_alone",
]
