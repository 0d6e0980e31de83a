"""How each function is called from Python: which C parameters are inputs and outputs, and how they convert.

The C type and the header's comment settle most parameters (`_default_role`); ``overrides/*.toml`` settles the rest with
one line per parameter, ``function.parameter = "role"``. Roles:

==================  ===================================================================================
``in``              a value: number, enum, handle, callback or record; ``in(0)`` is a keyword that defaults to 0
``record``          pointer to a record that the call reads or changes in place; None is NULL
``string``          bytes; ``string?`` takes None too
``address``         None, an int, a handle or an object with the buffer protocol
``buffer``          bytes or bytearray that the call fills in place
``list(n)``         sequence of at least `n` elements, `n` being another parameter or a number; None is an empty one,
                    which is NULL. ``list(n-1)`` and plain ``list`` (any length) are possible
``list(n?)``        the same, and None is NULL whatever `n` is
``strings(n)``      sequence of bytes
``handles``         a handle, a sequence of handles or an address, passed as a pointer to the handles
``out``             returned
``inout``           taken and returned
``out_list(n)``     array of `n` elements, returned as a list; ``out_list(n, limit)`` when `n` is the number that the
                    call reports and `limit` the capacity passed in
``later``           a handle that is returned, and that the library may fill in long after the call: at the end of a
                    group, or from a thread of its own. The status `begun` of the module is no failure then
``later_list(n)``   array of `n` such handles, at least one, returned as a list
``count``           length of the output arrays: keyword that defaults to 0, updated by the call and returned
``length``          the same, but without default
``out_bytes(n)``    char array of `n` bytes, returned as bytes
``out_text``        pointer to a C string, returned as bytes
``out_borrowed(n)`` pointer to an array that the library keeps, returned as a list of `n` elements
``value(t, a)``     input whose type depends on the parameter `a`, as table `t` says
``out_value(t, a)`` output of that kind; ``out_value(t, a, s)`` with `s`, the parameter with its size in bytes
``values(t, a, n)`` `n` outputs whose types depend on the list `a`
``kernel``          kernel arguments
``options(k, n)``   values of the `n` options whose keys are the list `k`
``null``            not visible, NULL is passed
==================  ===================================================================================

Only in modules whose functions raise:

==================  ===================================================================================
``text``            str; ``text?`` takes None too
``texts(n)``        sequence of `n` str or bytes
``data(n)``         bytes-like object of `n` bytes or an address
``output(f)``       writable buffer or address for as many bytes as the function `f` says for the first argument
``pointed``         a handle or number, of which the address is passed
``text_at``         str, bytes-like object or address
``out_str(n)``      char array of `n` bytes, returned as str; the parameter behind it that takes its size is not visible
``sized(n, s)``     array whose length the call tells through the parameter `n`: called again with more room as long
                    as it does not fit, the first time with room for `s` elements (0). Returned as an array of
                    records, a list of numbers or a str
``blob(n)``         the same for one record that is followed by data; `n` counts bytes
``items(n)``        array of records, changed in place; its length is passed as `n`. ``items_out(n)`` returns it too
``fixed(x)``        not visible, the expression `x` is passed
``struct(i -> o)``  pointer to a record whose fields `i` are arguments and whose fields `o` are returned, ``*`` being
                    the whole record. ``field:name`` gives an argument another name, ``field=#other`` sets the length
                    of another one, ``field[count, s]`` is an array as with ``sized``, and ``field[count<limit]`` one
                    with room for as many elements as the field `limit` says
==================  ===================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .ir import Function, Parameter, Record
from .libraries import Library
from .typesystem import Resolved, Types


@dataclass(frozen=True)
class Argument:
    """A C parameter and its role. ``type`` is what it is in C; for pointers and lists ``element`` is the target."""

    name: str
    python_name: str
    ctype: str
    role: str
    details: tuple[str, ...]
    type: Resolved
    element: Resolved
    parent: str = ""  # the struct that has it as a field

    @property
    def is_input(self) -> bool:
        return self.role in _INPUTS

    @property
    def is_output(self) -> bool:
        return self.role in _OUTPUTS

    @property
    def optional(self) -> bool:
        return self.role == "count" or (self.role == "in" and self.details == ("0",))


_INPUTS = {
    "in", "record", "string", "string?", "address", "buffer", "list", "strings", "handles", "inout", "count", "length",
    "value", "kernel", "options", "text", "text?", "texts", "data", "output", "pointed",
    "items", "items_out", "chars", "field_items", "text_at",
}  # fmt: skip
_OUTPUTS = {
    "out", "inout", "out_list", "count", "length", "out_bytes", "out_text", "out_borrowed", "out_value", "values",
    "out_str", "sized", "blob", "struct_out", "field_out", "field_sized", "items_out", "later", "later_list",
}  # fmt: skip
_HIDDEN = {"null", "fixed", "room", "sized_count", "items_count", "struct"}


@dataclass(frozen=True)
class Plan:
    """The call of one function: its arguments in C order, its inputs in Python order, and its outputs."""

    function: Function
    python_name: str
    arguments: tuple[Argument, ...]

    @property
    def inputs(self) -> list[Argument]:
        taken = [a for a in self.arguments if a.is_input]
        return [a for a in taken if not a.optional] + [a for a in taken if a.optional]

    @property
    def outputs(self) -> list[Argument]:
        whole = {a.name for a in self.arguments if a.role == "struct_out"}
        return [a for a in self.arguments if a.is_output and a.parent not in whole]


def plans(library: Library, types: Types) -> list[Plan]:
    """The plans of all functions of the library."""
    overrides = library.overrides()
    by_function: dict[str, dict[str, Any]] = overrides.get("functions", {})
    known = {f.name for f in types.module.functions}
    lists = ("keep_gil", "keep_gil_alone", "group", "grouped", "frequent")
    listed = {name for key in lists for name in overrides["module"].get(key, [])}
    if unknown := sorted((set(by_function) | listed) - known):
        raise SystemExit(f"{library.overrides_path.name}: no such function: {', '.join(unknown)}")
    return [_plan(function, types, by_function.get(function.name, {})) for function in types.module.functions]


def _plan(function: Function, types: Types, overrides: dict[str, Any]) -> Plan:
    names = {p.name for p in function.parameters}
    if unknown := sorted(set(overrides) - names):
        raise SystemExit(f"{function.name}: no such parameter: {', '.join(unknown)}")
    arguments: list[Argument] = []
    for parameter in function.parameters:
        kind = types.resolve(parameter.type)
        role = overrides.get(parameter.name) or _default_role(function, parameter, kind, types)
        match = re.fullmatch(r"([\w?]+)(?:\((.*)\))?", role)
        if not match or match[1] not in _INPUTS | _OUTPUTS | _HIDDEN:
            raise SystemExit(f"{function.name}.{parameter.name}: unknown role {role}")
        element = types.resolve(kind.target) if kind.kind == "pointer" else kind
        python_name = types.names.parameter(parameter.name)
        separator = "\0" if match[1] == "struct" else ","
        details = tuple(d.strip() for d in match[2].split(separator)) if match[2] else ()
        argument = Argument(parameter.name, python_name, parameter.type, match[1], details, kind, element)
        arguments += _struct(argument, types) if match[1] == "struct" else [argument]
    counts = {a.details[0] for a in arguments if a.role in ("sized", "blob")}
    lengths = {a.details[0] for a in arguments if a.role in ("items", "items_out")}
    for i, argument in enumerate(arguments):
        if argument.name in counts:
            arguments[i] = replace(argument, role="sized_count")
        elif argument.name in lengths:
            arguments[i] = replace(argument, role="items_count")
    return Plan(function, types.names.function(function.name), tuple(arguments))


def _struct(struct: Argument, types: Types) -> list[Argument]:
    """The arguments for the fields of a struct, and the struct itself."""
    fields = dict(_flat(types.records[struct.element.name].record))
    inputs, _, outputs = (part.strip() for part in struct.details[0].partition("->"))
    arguments, assigned, whole = [], [], False

    def add(text: str, role: str, *details: str) -> None:
        field, _, name = text.partition(":")
        ctype = fields[field]
        kind = types.resolve(ctype)
        element = types.resolve(kind.target) if kind.kind in ("pointer", "array") else kind
        python_name = types.names.parameter(name or field)
        arguments.append(
            Argument(f"{struct.name}_{field}", python_name, ctype, role, (field, *details), kind, element, struct.name)
        )

    for text in filter(None, re.split(r",\s*", inputs)):
        if "=#" in text:
            assigned.append(text)
            continue
        kind = types.resolve(fields[text.partition(":")[0]])
        add(text, {"array": "chars", "record": "chars", "pointer": "field_items"}.get(kind.kind, "in"))
    for text in filter(None, re.split(r",\s*(?![^\[]*\])", outputs)):
        match = re.fullmatch(r"(\w+)\[(\w+)(<\w+|,\s*\d+)?\]", text)
        if match:
            add(match[1], "field_sized", match[2], (match[3] or "").strip(", "))
        elif text == "*":
            whole = True
        else:
            add(text, "field_out")
    return [*arguments, replace(struct, role="struct_out" if whole else "struct", details=tuple(assigned))]


def _flat(record: Record) -> Iterator[tuple[str, str]]:
    for field in record.fields:
        if field.record and not field.name:
            yield from _flat(field.record)
        else:
            yield field.name, field.type


_SIZES = ("length", "size", "bufferSize")


def _default_role(function: Function, parameter: Parameter, kind: Resolved, types: Types) -> str:
    before = (
        function.parameters[function.parameters.index(parameter) - 1]
        if parameter is not function.parameters[0]
        else None
    )
    if types.names.raising and before and before.type == "char *" and parameter.name in _SIZES:
        return "room"
    if kind.kind != "pointer":
        return "in"
    target = types.resolve(kind.target)
    if target.kind == "void":
        return "address"
    pointers: str | None = types.module_overrides.get("module", {}).get("pointers")
    is_text = kind.target == "const char *" or (target.const and target.name == "I8")
    if pointers and not is_text and target.kind in ("scalar", "opaque", "pointer"):
        return pointers
    if target.kind == "scalar" and target.name == "I8":
        if types.names.raising:
            return "text" if target.const else "out_str(256)"
        return "string" if target.const else "out"
    if target.kind == "pointer" and kind.target == "const char *":
        return "out_text"
    if target.const and target.kind != "void" and (count := _count_after(function, parameter, types)):
        return f"list({count})"
    if target.kind == "record":
        if target.const or parameter.direction == "in":
            return "record"
        if types.names.raising:
            return "out"
        return "out" if parameter.direction == "out" or _returned(function, parameter) else "record"
    if target.kind == "pointer" and target.target == "const char":
        return "strings"
    return "list" if target.const else "out"


def _count_after(function: Function, parameter: Parameter, types: Types) -> str:
    """The parameter that counts an array: named so and behind it, with nothing but other arrays between."""
    following = function.parameters[function.parameters.index(parameter) + 1 :]
    for other in following:
        if re.match(r"num|nb|count", other.name) and types.resolve(other.type).kind == "scalar":
            return other.name
        if not other.type.startswith("const ") or not other.type.endswith("*"):
            return ""
    return ""


_RETURNED = re.compile(
    r"^\W*(return|pointer to (the )?return|location|pointer to location|address (at|in) which|out)", re.I
)


def _returned(function: Function, parameter: Parameter) -> bool:
    text = re.search(rf"[\\@]param(?:\[\w+\])?\s+{parameter.name}\s*[-:]*\s*([^\n]*)", function.doc)
    return bool(text and _RETURNED.match(text[1]))
