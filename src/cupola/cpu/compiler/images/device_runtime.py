"""Functions of the device runtime that are PTX themselves, for modules that call them.

A module declares such a function as external, as NVIDIA's ``libcudadevrt`` would define it. Here the function's body
takes the place of the declaration, whether or not that library was linked: one of device_runtime.ptx, or one that asks
the driver (`device_calls`).
"""

from __future__ import annotations

import functools
from pathlib import Path

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.objects import device_calls
from cupola.cpu.compiler.ptx import ast

UPDATES = (
    "cudaGraphKernelNodeSetEnabled",
    "cudaGraphKernelNodeSetGridDim",
    "cudaGraphKernelNodeSetParam",
    "cudaGraphKernelNodeUpdatesApply",  # which calls the others
)
"""Those that change nodes of graphs."""

FUNCTIONS = (
    *UPDATES,
    "cudaCGGetIntrinsicHandle",
    "cudaCGSynchronize",
    *device_calls.SPELLINGS,
)

_CALLS = {"cudaGraphKernelNodeUpdatesApply": UPDATES[:3]}


@functools.cache
def _library() -> dict[str, ast.Function]:
    own = (Path(__file__).parent / "device_runtime.ptx").read_text()
    return ptx.parse(own + device_calls.as_ptx()).functions


def link_device_runtime(module: ast.Module) -> None:
    """Give the functions of the device runtime that a module declares, and does not define, their bodies."""
    functions = module.functions
    wanted = {name for name in FUNCTIONS if name in functions and functions[name].body is None}
    for name, called in _CALLS.items():
        if name in wanted:
            wanted.update(other for other in called if other not in functions or functions[other].body is None)
    for name in sorted(wanted):
        functions[name] = _library()[name]
        if name in device_calls.SPELLINGS:
            external = device_calls.asked(device_calls.SPELLINGS[name])
            functions[external] = _library()[external]
