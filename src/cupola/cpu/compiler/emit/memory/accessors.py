"""Calls of the helpers that access memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body


def call_accessor(body: Body, name: str, result: str, packed: int, *arguments: str) -> str:
    """Call a helper that accesses memory for the lanes that run (CPU_ACCESS_ARGUMENTS in instructions/access.h)."""
    types = "".join(f", {argument.split()[0]}" for argument in arguments)
    body.builder.declarations[f"declare {result} @{name}(ptr, ptr, ptr, ptr, i64, i32{types})"] = None
    return body.builder.emit(
        f"call {result} @{name}(ptr %context, ptr %warp, ptr %shared, ptr %sites, i64 {packed}, "
        f"i32 {body.control.lanes().ir}, {', '.join(arguments)})"
    )


def fault_unless_zero(body: Body, status: str) -> None:
    """Leave the body when a helper has raised a fault."""
    body.control.fault_if(body.builder.emit(f"icmp ne i32 {status}, 0"))
