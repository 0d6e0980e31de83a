"""The C function behind a Python function that returns its results and raises when it fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .emit_call import Call, target
from .plan import Argument, Plan

if TYPE_CHECKING:
    from .emit_module import Layout


class RaisingCall(Call):
    """Adds texts, buffers whose size is checked, arrays that are asked for twice, and records taken apart."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        super().__init__(plan, layout)
        self.structs = [a for a in plan.arguments if a.role in ("struct", "struct_out")]
        self.sized = [a for a in plan.arguments if a.role in ("sized", "blob")]
        self.field_sized = [a for a in plan.arguments if a.role == "field_sized"]
        self.records += [*self.structs, *(a for a in self.sized if a.role == "blob" or self._has_records(a))]
        self.scratch = self.scratch or any(
            a.role in ("out_str", "texts", "text_at", "data", "output", "sized") for a in plan.arguments
        )
        self.cleanup = self.scratch or bool(self.records)
        self.fail = "goto done" if self.cleanup else "return NULL"

    def _has_records(self, a: Argument) -> bool:
        return a.element.kind == "record"

    def _field(self, a: Argument) -> str:
        return f"p_{a.parent}->{a.details[0]}"

    # ---- inputs ----

    def _declare(self, a: Argument) -> Iterator[str]:
        name = f"c_{a.name}"
        match a.role:
            case "pointed":
                yield from super()._declare(_as_input(a))
                yield f"    {target(a)} pointed_{a.name};"
            case "struct" | "struct_out":
                yield f"    PyObject *{name} = NULL;"
                yield f"    {target(a).removeprefix('const ')} *p_{a.name} = NULL;"
            case "text" | "text?":
                yield f"    const char *{name} = NULL;"
            case "texts":
                yield f"    const char *const *{name} = NULL;"
            case "text_at":
                yield f"    void *{name} = NULL;"
            case "out_str":
                yield f"    char *{name} = NULL;"
            case "sized" | "blob":
                yield f"    PyObject *{name} = NULL;" if a in self.records else f"    void *{name} = NULL;"
            case "sized_count":
                yield f"    {target(a)} {name} = 0;"
            case "room" if a.type.kind == "pointer":
                yield f"    {target(a)} {name} = {self._room(a)};"
            case "items" | "items_out" | "field_items":
                yield f"    void *{name} = NULL;\n    size_t count_{a.name} = 0;"
            case "items_count" | "fixed" | "room" | "field_out" | "field_sized" | "chars":
                pass
            case _:
                yield from super()._declare(a)

    def _room(self, a: Argument) -> str:
        before = self.plan.arguments[self.plan.arguments.index(a) - 1]
        return before.details[0]

    def _convert(self, a: Argument) -> Iterator[str]:
        if a.role == "output":
            yield from self._query_size(a)
        yield from super()._convert(_as_input(a) if a.role == "pointed" else a)
        if a.role == "pointed":
            yield f"    pointed_{a.name} = ({target(a)})c_{a.name};"

    def _conversion(self, a: Argument, source: str) -> str:
        name = f"&c_{a.name}"
        match a.role:
            case "in" if a.type.kind in ("handle", "pointer", "callback"):
                return f"to_u64({source}, {name})"
            case "text" | "text?":
                return f"to_str({source}, {'true' if a.role == 'text?' else 'false'}, {name})"
            case "text_at":
                return f"to_str_at({source}, &scratch, {name})"
            case "texts":
                return f"to_strs({source}, {self._count(a)}, &scratch, {name})"
            case "data":
                return f"to_data({source}, c_{a.details[0]}, &scratch, {name})"
            case "output":
                return f"to_output({source}, size_{a.name}, &scratch, {name})"
            case "record":
                return f"to_struct({source}, {self.layout.records[a.element.name]}, {self._version(a) or 0}, {name})"
            case "items" | "items_out" | "field_items":
                return f"to_struct_array({source}, {self.layout.records[a.element.name]}, {name}, &count_{a.name})"
        return super()._conversion(a, source)

    def _version(self, a: Argument) -> str:
        """What a record says in its first field, `version`, where it has that."""
        cls = self.layout.types.records[a.element.name]
        number = self.layout.types.versions.get(cls.name)
        if not number or cls.record.fields[0].name != "version":
            return ""
        if cls.name in self.layout.overrides.get("versions", {}):
            return f"{number}u"
        return f"{number}u << 24 | {cls.record.size}u"

    def _query_size(self, a: Argument) -> Iterator[str]:
        """Another function tells how many bytes the call writes."""
        first = self.plan.arguments[0]
        yield f"    size_t size_{a.name} = 0;"
        yield f"    int queried = (int)table.{a.details[0]}({self._pass(first)}, &size_{a.name});"
        yield f"    if (queried != 0) {{ result = {self._failure('queried')}; goto done; }}"

    # ---- room for the outputs ----

    def _prepare(self, a: Argument) -> Iterator[str]:
        name = f"c_{a.name}"
        if a.role == "out_str":
            size = self._length(a)
            if not size.isdigit():
                error = f'PyErr_SetString(PyExc_ValueError, "{a.details[0]} must not be negative")'
                yield f"    if ({size} < 0) {{ {error}; goto done; }}"
            yield f"    if (!({name} = scratch_alloc(&scratch, (size_t){size} + 1))) goto done;"
        elif a.role in ("struct", "struct_out"):
            yield from self._fill(a)
        elif a.role not in ("sized", "blob"):
            yield from super()._prepare(a)
            if a.role == "out" and a.element.kind == "record" and (version := self._version(a)):
                yield f"    *(unsigned *)record_data({name}) = {version};"

    def _length(self, a: Argument) -> str:
        return f"c_{a.details[0]}" if a.details[0] in self.by_name else a.details[0]

    def _fill(self, a: Argument) -> Iterator[str]:
        """Make a record and store the arguments in its fields."""
        yield f"    if (!(c_{a.name} = record_new({self.layout.records[a.element.name]}))) goto done;"
        yield f"    p_{a.name} = record_data(c_{a.name});"
        if version := self._version(a):
            yield f"    p_{a.name}->version = {version};"
        lengths = {}
        for field in (f for f in self.plan.inputs if f.parent == a.name):
            where = self._field(field)
            if field.role == "chars":
                is_text = "true" if field.element.name == "I8" else "false"
                call = f"to_chars(args[{self.index[field.name]}], {is_text}, (char *)&{where}, sizeof {where})"
                yield f"    int length_{field.name} = {call};"
                error = f'bad_argument("{self.name}()", "{field.python_name}")'
                yield f"    if (UNLIKELY(length_{field.name} < 0)) {{ {error}; goto done; }}"
                lengths[field.details[0]] = f"length_{field.name}"
            elif field.role == "field_items":
                yield f"    {where} = c_{field.name};"
                lengths[field.details[0]] = f"count_{field.name}"
            else:
                yield f"    {where} = ({field.ctype})c_{field.name};"
        for text in a.details:
            field_name, other = text.split("=#")
            yield f"    p_{a.name}->{field_name} = (unsigned)({lengths[other]});"

    # ---- the call ----

    def _pass(self, a: Argument) -> str:
        name = f"c_{a.name}"
        match a.role:
            case "struct" | "struct_out":
                return f"p_{a.name}"
            case "pointed":
                return f"&pointed_{a.name}"
            case "texts":
                return f"({a.ctype}){name}"
            case "room":
                return f"&{name}" if a.type.kind == "pointer" else self._room(a)
            case "fixed":
                return a.details[0]
            case "sized_count":
                return f"&{name}"
            case "sized" | "blob":
                return f"room ? record_data({name}) : NULL" if a in self.records else name
            case "items_count":
                items = next(i for i in self.plan.arguments if i.role in ("items", "items_out"))
                return f"({a.ctype})count_{items.name}"
        return super()._pass(a)

    def _invoke(self, call: str) -> Iterator[str]:
        growing = [a for a in self.field_sized if not a.details[2].startswith("<")]
        yield from self._limited()
        if not self.sized and not growing:
            yield from super()._invoke(call)
            return
        first = (self.sized or growing)[0]
        start = first.details[1:] if first in self.sized else first.details[2:]
        if first.role == "blob":
            start = (f"sizeof({target(first)})",)
        counter = f"c_{first.details[0]}" if first in self.sized else f"p_{first.parent}->{first.details[1]}"
        yield f"    size_t room = {start[0] if start and start[0] else 0};"
        yield "    for (int calls = 1;; calls++) {"
        for a in self.sized:
            yield from ("    " + line for line in self._make_room(a))
        for a in growing:
            size = f"sizeof *{self._field(a)}" if a.element.kind != "void" else "1"
            where = f"(void **)&{self._field(a)}"
            yield f"        if (room && struct_room(c_{a.parent}, {where}, {size}, room) < 0) goto done;"
        yield f"        {counter} = (unsigned)room;"
        yield from ("    " + line for line in super()._invoke(call))
        too_small = self.layout.overrides["module"]["too_small"]
        yield f"        if ((status != 0 && status != {too_small}) || {counter} <= room || calls == 4) break;"
        yield f"        room = calls == 1 ? {counter} : {counter} + {counter} / 2;"
        yield "    }"
        yield f"    if ({counter} > room) {counter} = (unsigned)room;"
        for a in self.sized:
            if a.role == "sized" and a in self.records:
                yield f"    struct_shorten(c_{a.name}, {counter});"

    def _make_room(self, a: Argument) -> Iterator[str]:
        name = f"c_{a.name}"
        if a in self.records:
            maker = "struct_sized" if a.role == "blob" else "struct_array"
            yield f"    Py_XSETREF({name}, {maker}({self.layout.records[a.element.name]}, room));"
            yield f"    if (!{name}) goto done;"
        else:
            size = self.layout.kind(a.element)[2]
            yield f"    if (room && !({name} = scratch_array(&scratch, {size}, room))) goto done;"

    def _limited(self) -> Iterator[str]:
        """Arrays in a record with room for as many elements as another field of it says."""
        for a in self.field_sized:
            if a.details[2].startswith("<"):
                limit = f"p_{a.parent}->{a.details[2][1:]}"
                where = f"(void **)&{self._field(a)}"
                size = f"sizeof *{self._field(a)}, {limit}"
                yield f"    if (struct_room(c_{a.parent}, {where}, {size}) < 0) goto done;"

    def _call(self) -> Iterator[str]:
        """Besides a status, functions may return a record with one and CUDA's, a number that is negative for a failure,
        a member of an enumeration, or nothing."""
        function = self.plan.function
        kind = self.layout.types.resolve(function.returns)
        if function.returns == self.layout.library.status or kind.kind == "pointer":
            yield from super()._call()
            return
        arguments = ", ".join(self._pass(a) for a in self.plan.arguments)
        call = f"table.{function.name}({arguments});"
        leave = "goto done;" if self.cleanup else ""
        if kind.kind == "void":
            yield from self._invoke(call)
            yield f"    {self._give()} table_raise_pending() < 0 ? NULL : {self._nothing()};"
            return
        yield f"    {function.returns} returned;"
        yield from self._invoke(f"returned = {call}")
        if kind.kind == "record":
            failure = "raise_cuda_status(returned.err, returned.cu_err)"
            values = ", ".join(self._output(a) for a in self.plan.outputs)
            result = self._result(values, len(self.plan.outputs)) if values else self._nothing()
            yield f"    if (UNLIKELY(returned.err != 0)) {{ {self._give()} {failure}; {leave} }}"
            yield f"    {self._give()} {result};"
        elif kind.name in ("U32", "U64") or kind.kind == "enum":
            yield f"    {self._give()} table_raise_pending() < 0 ? NULL : PyLong_FromUnsignedLongLong(returned);"
        else:
            yield f"    if (UNLIKELY(returned < 0)) {{ {self._give()} raise_negative(returned); {leave} }}"
            yield f"    {self._give()} PyLong_FromLongLong(returned);"

    def _give(self) -> str:
        return "result =" if self.cleanup else "return"

    # ---- the result ----

    def _nothing(self) -> str:
        return "Py_NewRef(Py_None)"

    def _failure(self, status: str) -> str:
        if "log" in self.layout.overrides["module"] and (first := self.plan.arguments[0]).role == "in":
            return f"raise_with_log({status}, {self._pass(first)})"
        return f"raise_status({status})"

    def _result(self, values: str, count: int) -> str:
        return values if count == 1 else f"pack((PyObject *[]){{{values}}}, {count})"

    def _returned_value(self) -> str:
        return 'PyUnicode_FromString(returned ? returned : "")'

    def _output(self, a: Argument) -> str:
        name = f"c_{a.name}"
        match a.role:
            case "struct_out" | "blob":
                return f"Py_NewRef({name})"
            case "out_str":
                return f"from_chars({name}, (size_t){self._length(a)})"
            case "sized" if a in self.records:
                return f"Py_NewRef({name})"
            case "sized":
                counter = f"c_{a.details[0]}"
                if a.element.name == "I8":
                    return f"from_chars({name}, {counter})"
                kind, index, size = self.layout.kind(a.element)
                return f"list_from((ValueType){{{kind}, {index}, {size}}}, {name}, {counter})"
            case "items_out":
                return f"Py_NewRef(args[{self.index[a.name]}])"
            case "field_sized":
                return self._field_array(a)
            case "field_out":
                return self._field_value(a)
        return super()._output(a)

    def _field_array(self, a: Argument) -> str:
        where, count = self._field(a), f"p_{a.parent}->{a.details[1]}"
        if a.details[2].startswith("<"):
            limit = f"p_{a.parent}->{a.details[2][1:]}"
            count = f"{count} < {limit} ? {count} : {limit}"
        if a.element.kind == "record":
            storage = f"((RecordObject *)c_{a.parent})->storage"
            return f"struct_array_view({self.layout.records[a.element.name]}, {where}, {count}, {storage})"
        return f"PyBytes_FromStringAndSize({where}, {count})"

    def _field_value(self, a: Argument) -> str:
        where = self._field(a)
        if a.type.kind != "array":
            return self._value(a, where)
        if a.element.name == "I8":
            return f"from_chars({where}, sizeof {where})"
        return f"PyBytes_FromStringAndSize((char *){where}, sizeof {where})"

    def _value(self, a: Argument, expression: str) -> str:
        if a.ctype.startswith("bool"):
            return f"PyBool_FromLong({expression})"
        if a.element.kind == "enum":
            return f"PyLong_FromLong({expression})"
        if a.element.kind == "handle":
            return f"PyLong_FromUnsignedLongLong((uint64_t){expression})"
        return super()._value(a, expression)


def _as_input(a: Argument) -> Argument:
    """A pointer to a value as that value."""
    from dataclasses import replace

    return replace(a, role="in", type=a.element, ctype=re.sub(r"\s*\*$", "", a.ctype))
