"""Functions of the device runtime that are PTX themselves (device_runtime.ptx), for modules that call them.

A module declares such a function as external, as NVIDIA's ``libcudadevrt`` would define it; NVIDIA's driver links that
by itself. Here the function's body takes the place of the declaration.
"""

from __future__ import annotations

import functools
from pathlib import Path

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.ptx import ast

FUNCTIONS = (
    "cudaGraphKernelNodeSetEnabled",
    "cudaGraphKernelNodeSetGridDim",
    "cudaGraphKernelNodeSetParam",
    "cudaGraphKernelNodeUpdatesApply",  # which calls the others
    "cudaCGGetIntrinsicHandle",
    "cudaCGSynchronize",
)

_CALLS = {"cudaGraphKernelNodeUpdatesApply": FUNCTIONS[:3]}


@functools.cache
def _library() -> dict[str, ast.Function]:
    return ptx.parse((Path(__file__).parent / "device_runtime.ptx").read_text()).functions


def link_device_runtime(module: ast.Module) -> None:
    """Give the functions of the device runtime that a module declares, and does not define, their bodies."""
    functions = module.functions
    wanted = {name for name in FUNCTIONS if name in functions and functions[name].body is None}
    for name, called in _CALLS.items():
        if name in wanted:
            wanted.update(other for other in called if other not in functions or functions[other].body is None)
    for name in sorted(wanted):
        functions[name] = _library()[name]
