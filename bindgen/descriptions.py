"""Docstrings and Python signatures of the generated functions."""

from __future__ import annotations

import re

from . import doc
from .names import Names
from .plan import Argument, Plan
from .typesystem import Resolved, Types

_SCALARS = {"F32": "float", "F64": "float"}
READABLE, WRITABLE = "ReadableBuffer", "WriteableBuffer"


def signature(plan: Plan) -> str:
    """Names of the parameters, with defaults, as Python shows them."""
    return ", ".join(a.python_name + ("=0" if a.optional else "") for a in plan.inputs)


def value_type(kind: Resolved, names: Names, *, out: bool) -> str:
    """The annotation of one value, as an output or an input."""
    if kind.kind == "record":
        return names.type(kind.name)
    if kind.kind == "scalar":
        return _SCALARS.get(kind.name, "int")
    if names.raising:
        return "int"
    if kind.kind in ("enum", "handle"):
        return kind.name if out else f"{kind.name} | int" + ("" if kind.kind == "enum" else " | None")
    return "int" if out else "int | None"


def input_type(argument: Argument, types: Types) -> str:
    """The annotation of an input."""
    element, names = argument.element, types.names
    match argument.role:
        case "in" if argument.ctype == "bool":
            return "bool"
        case "in" | "inout":
            return value_type(argument.type if argument.type.kind != "pointer" else element, names, out=False)
        case "count" | "length" | "pointed":
            return "int"
        case "record" if names.raising:
            return f"{names.type(element.name)} | int"
        case "record":
            return f"{names.type(element.name)} | None"
        case "items" | "items_out" | "field_items":
            return names.type(element.name)
        case "chars":
            return "str" if element.name == "I8" else READABLE
        case "string":
            return "bytes"
        case "string?":
            return "bytes | None"
        case "text":
            return "str"
        case "text?":
            return "str | None"
        case "buffer":
            return "bytes | bytearray | memoryview"
        case "data":
            return f"{READABLE} | int"
        case "output":
            return f"{WRITABLE} | int"
        case "list":
            arrays = " | _Array" if element.kind == "record" else ""
            return f"Sequence[{value_type(element, names, out=False)}]{arrays} | None"
        case "strings":
            return "Sequence[bytes] | None"
        case "text_at":
            return f"str | {READABLE} | int"
        case "texts":
            return "Sequence[str | bytes] | None"
        case "options":
            return "Sequence[Any] | None"
        case "handles":
            return f"{element.name} | Sequence[{element.name}] | int | None"
    return "Any"


def output_type(argument: Argument, types: Types) -> str:
    """The annotation of an output."""
    element, names = argument.element, types.names
    match argument.role:
        case "out" if argument.ctype.startswith("bool"):
            return "bool"
        case "out" | "inout" | "later":
            return value_type(element, names, out=True)
        case "count" | "length":
            return "int"
        case "out_list" | "later_list":
            return f"list[{value_type(element, names, out=True)}]"
        case "out_borrowed":
            return f"list[{value_type(types.resolve(element.target.removeprefix('const ')), names, out=True)}]"
        case "out_bytes" | "out_text":
            return "bytes"
        case "values":
            return "list[Any]"
        case "out_str":
            return "str"
        case "sized" if element.name == "I8":
            return "str"
        case "sized":
            one = value_type(element, names, out=True)
            return one if element.kind == "record" else f"list[{one}]"
        case "blob" | "struct_out" | "items_out":
            return names.type(element.name)
        case "field_sized":
            return names.type(element.name) if element.kind == "record" else "bytes"
        case "field_out" if argument.type.kind == "array":
            return "str" if element.name == "I8" else "bytes"
        case "field_out":
            return value_type(element, names, out=True)
    return "Any"


def returned_type(plan: Plan, types: Types, status: str) -> str:
    """The annotation of what the function returns."""
    outputs = [output_type(a, types) for a in plan.outputs]
    if not types.names.raising:
        # Outputs are None after a failure. "| Any" lets callers who checked the status use them without another check.
        loose = [output if output == "Any" else f"{output} | Any" for output in outputs]
        first = status if plan.function.returns == status else f"{status}, {direct_result(plan, types)} | Any"
        return f"tuple[{', '.join([first, *loose])}]"
    direct = types.resolve(plan.function.returns).kind
    if direct in ("pointer", "scalar") or (direct == "enum" and plan.function.returns != status):
        return "str" if direct == "pointer" else "int"
    if len(outputs) == 1:
        return outputs[0]
    return f"tuple[{', '.join(outputs)}]" if outputs else "None"


def direct_result(plan: Plan, types: Types) -> str:
    """What a function gives that does not return a status, behind a status of success."""
    returned = types.resolve(plan.function.returns)
    return types.names.type(returned.name) if returned.kind == "record" else "bytes"


def docstring(plan: Plan, types: Types, status: str) -> str:
    """The numpydoc text of a function."""
    parsed = doc.parse(plan.function.doc)
    parts = [parsed.summary or plan.python_name]
    if plan.function.since:
        version = f"{plan.function.since // 1000}.{plan.function.since % 1000 // 10}"
        parts.append(
            f"{plan.function.symbol}, since CUDA {version}." + (" Deprecated." if plan.function.deprecated else "")
        )
    elif types.names.raising:
        parts.append(f"C function: {plan.function.name}." + (" Deprecated." if plan.function.deprecated else ""))
    if parsed.text:
        parts.append(parsed.text)
    if plan.inputs:
        accepted = [(a.python_name, input_type(a, types).replace("_Array", "array")) for a in plan.inputs]
        described = [
            (name, kind, parsed.parameters.get(a.name, ""))
            for (name, kind), a in zip(accepted, plan.inputs, strict=True)
        ]
        parts.append(_section("Parameters", described))
    outputs = [(a.python_name, output_type(a, types), parsed.parameters.get(a.name, "")) for a in plan.outputs]
    if not types.names.raising:
        direct = [] if plan.function.returns == status else [("result", direct_result(plan, types), "")]
        parts.append(_section("Returns", [("status", status, ""), *direct, *outputs]))
    elif types.resolve(plan.function.returns).kind == "pointer":
        parts.append(_section("Returns", [("text", "str", "")]))
    else:
        if types.resolve(plan.function.returns).kind == "scalar":
            parts.append(_section("Returns", [("result", "int", "")]))
        if outputs:
            parts.append(_section("Returns", outputs))
        parts.append(_section("Raises", [(types.names.library.error, "", "")]))
    text = "\n\n".join(parts)
    return pythonic(text, plan, types) if types.names.raising else text


def summary(plan: Plan, types: Types) -> str:
    """The first line of the docstring."""
    text = doc.parse(plan.function.doc).summary or plan.python_name
    return pythonic(text, plan, types) if types.names.raising else text


def pythonic(text: str, plan: Plan, types: Types) -> str:
    """The header's text with the Python names of functions and parameters; "nvvmX does" becomes "Does"."""
    own = plan.function.name
    text = re.sub(rf"^(?:{own}(?:\(\))? )?([a-z])(?!\w*_)", lambda m: m[1].upper(), text)
    text = re.sub(r"#(?=[a-zA-Z])", "", text)
    text = re.sub(r"`?\b(\w+)\b`?(\(\))?", lambda m: m[0] if m[1] == own else types.quoted.get(m[1], m[0]), text)
    renamed = {a.name: a.python_name for a in plan.arguments if a.name != a.python_name}
    return re.sub(r"\b[a-z]+[A-Z]\w+\b", lambda m: renamed.get(m[0], m[0]), text)


def _section(title: str, items: list[tuple[str, str, str]]) -> str:
    lines = [title, "-" * len(title)]
    for name, annotation, text in items:
        annotation = annotation.replace(READABLE, "bytes-like").replace(WRITABLE, "writable bytes-like")
        lines.append(f"{name} : {annotation}" if annotation else name)
        if text:
            lines.append(doc.wrap(text, "    "))
    return "\n".join(lines)
