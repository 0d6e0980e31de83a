"""Docstrings and Python signatures of the generated functions."""

from __future__ import annotations

from . import doc
from .plan import Argument, Plan
from .typesystem import Resolved, Types

_SCALARS = {"F32": "float", "F64": "float"}


def signature(plan: Plan) -> str:
    """Names of the parameters, with defaults, as Python shows them."""
    return ", ".join(a.python_name + ("=0" if a.optional else "") for a in plan.inputs)


def value_type(kind: Resolved, *, out: bool) -> str:
    """The annotation of one value, as an output or an input."""
    if kind.kind in ("enum", "record", "handle"):
        if out or kind.kind == "record":
            return kind.name
        return f"{kind.name} | int" + ("" if kind.kind == "enum" else " | None")
    if kind.kind == "scalar":
        return _SCALARS.get(kind.name, "int")
    return "int" if out else "int | None"


def input_type(argument: Argument, types: Types) -> str:
    """The annotation of an input."""
    element = argument.element
    match argument.role:
        case "in" | "inout":
            return value_type(argument.type if argument.type.kind != "pointer" else element, out=False)
        case "count" | "length":
            return "int"
        case "record":
            return f"{element.name} | None"
        case "string":
            return "bytes"
        case "string?":
            return "bytes | None"
        case "buffer":
            return "bytes | bytearray | memoryview"
        case "list":
            return f"Sequence[{value_type(element, out=False)}] | None"
        case "strings":
            return "Sequence[bytes] | None"
        case "options":
            return "Sequence[Any] | None"
        case "handles":
            return f"{element.name} | Sequence[{element.name}] | int | None"
        case "address":
            return "Any"
    return "Any"


def output_type(argument: Argument, types: Types) -> str:
    """The annotation of an output."""
    element = argument.element
    match argument.role:
        case "out" | "inout":
            return value_type(element, out=True)
        case "count" | "length":
            return "int"
        case "out_list":
            return f"list[{value_type(element, out=True)}]"
        case "out_borrowed":
            return f"list[{value_type(types.resolve(element.target.removeprefix('const ')), out=True)}]"
        case "out_bytes" | "out_text":
            return "bytes"
        case "values":
            return "list[Any]"
    return "Any"


def docstring(plan: Plan, types: Types, status: str) -> str:
    """The numpydoc text of a function."""
    parsed = doc.parse(plan.function.doc)
    parts = [parsed.summary or plan.function.name]
    if plan.function.since:
        version = f"{plan.function.since // 1000}.{plan.function.since % 1000 // 10}"
        parts.append(
            f"{plan.function.symbol}, since CUDA {version}." + (" Deprecated." if plan.function.deprecated else "")
        )
    if parsed.text:
        parts.append(parsed.text)
    if plan.inputs:
        parts.append(
            _section(
                "Parameters",
                [(a.python_name, input_type(a, types), parsed.parameters.get(a.name, "")) for a in plan.inputs],
            )
        )
    outputs = [(a.python_name, output_type(a, types), parsed.parameters.get(a.name, "")) for a in plan.outputs]
    first = ("status", status, "") if plan.function.returns == status else ("result", "bytes", "")
    parts.append(_section("Returns", [first, *outputs]))
    return "\n\n".join(parts)


def _section(title: str, items: list[tuple[str, str, str]]) -> str:
    lines = [title, "-" * len(title)]
    for name, annotation, text in items:
        lines.append(f"{name} : {annotation}")
        if text:
            lines.append(doc.wrap(text, "    "))
    return "\n".join(lines)
