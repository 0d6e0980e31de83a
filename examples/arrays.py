"""Compile for the device: what many examples share."""

from __future__ import annotations

from cupola import Device, ObjectCode, Program, ProgramOptions


def build(dev: Device, source: str, *name_expressions: str) -> ObjectCode:
    """Compile CUDA C++ for the device; with line information, which the CPU device's diagnostics use."""
    options = ProgramOptions(std="c++17", arch=f"sm_{dev.arch}", lineinfo=True)
    return Program(source, code_type="c++", options=options).compile("cubin", name_expressions=name_expressions)
