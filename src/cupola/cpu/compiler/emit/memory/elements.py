"""The elements of all lanes between memory and vectors: in rows, and in the buffers that helpers take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.values import Value

if TYPE_CHECKING:
    from .bounds import Access


def element_pointer(builder: Builder, pointer: str, offset: int) -> str:
    """The pointer so many bytes further on."""
    return builder.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer


def load_row(builder: Builder, access: Access, pointer: str) -> list[str]:
    """One vector load; a vector for each element of the lanes."""
    width, count = builder.width, access.count
    volatile = "volatile " if access.volatile else ""
    vector = f"<{width * count} x {access.type}>"
    row = builder.emit(f"load {volatile}{vector}, ptr {pointer}, align {access.element}")
    if count == 1:
        return [row]
    return [
        builder.emit(f"shufflevector {vector} {row}, {vector} poison, {_picks(range(i, width * count, count))}")
        for i in range(count)
    ]


def store_row(builder: Builder, access: Access, pointer: str, values: Sequence[Value]) -> None:
    """One vector store of a vector for each element of the lanes."""
    volatile = "volatile " if access.volatile else ""
    builder.line(
        f"store {volatile}<{builder.width * access.count} x {access.type}> "
        f"{_interleave(builder, access.type, values)}, ptr {pointer}, align {access.element}"
    )


def _interleave(builder: Builder, type: str, values: Sequence[Value]) -> str:
    """One vector with the elements of lane 0, those of lane 1 and so on."""
    width = builder.width
    parts, length = [value.ir for value in values], width
    while len(parts) > 1:  # append the second half of the elements to the first
        vector = f"<{length} x {type}>"
        parts = [
            builder.emit(f"shufflevector {vector} {a}, {vector} {b}, {_picks(range(2 * length))}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        length *= 2
    if length == width:
        return parts[0]
    count, vector = len(values), f"<{length} x {type}>"
    order = ", ".join(f"i32 {element * width + lane}" for lane in range(width) for element in range(count))
    return builder.emit(f"shufflevector {vector} {parts[0]}, {vector} poison, <{length} x i32> <{order}>")


def _picks(indices: range) -> str:
    return f"<{len(indices)} x i32> <{', '.join(f'i32 {i}' for i in indices)}>"


# Buffers for helpers, in which all first elements come before all second ones


def buffer_bytes(builder: Builder, access: Access) -> int:
    """The size of a buffer of elements."""
    return max(64, builder.width * access.size)


def load_elements(builder: Builder, access: Access, buffer: str) -> list[Value]:
    """The elements of all lanes out of a buffer."""
    type = builder.vector_type(access.type)
    values = []
    for index in range(access.count):
        at = element_pointer(builder, buffer, index * access.element * builder.width)
        element = builder.emit(f"load {type}, ptr {at}, align {_alignment(builder, access)}")
        values.append(Value(element, access.type, builder.width > 1))
    return values


def store_elements(builder: Builder, access: Access, buffer: str, values: Sequence[Value]) -> None:
    """Put the elements of all lanes into a buffer."""
    for index, value in enumerate(values):
        at = element_pointer(builder, buffer, index * access.element * builder.width)
        builder.line(f"store {builder.typed(value)}, ptr {at}, align {_alignment(builder, access)}")


def _alignment(builder: Builder, access: Access) -> int:
    """The alignment of the arrays in a buffer of elements."""
    return min(64, access.element * builder.width)
