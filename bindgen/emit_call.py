"""The C function behind one Python function: convert the inputs, call the slot without the GIL, give the result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .plan import Argument, Plan
from .typesystem import declare

if TYPE_CHECKING:
    from .emit_module import Layout

# Inputs are converted in this order of roles, since later ones need the values of earlier ones.
_STAGES = (
    {"in", "inout", "count", "length"},
    {
        "record", "string", "string?", "address", "buffer", "list", "strings", "handles", "kernel",
        "text", "text?", "texts", "data", "pointed", "items", "items_out", "field_items", "text_at",
    },
    {"value", "options", "output"},
)  # fmt: skip
# Roles that take memory for the length of the call.
_SCRATCH = {
    "string", "string?", "address", "buffer", "list", "strings", "handles", "kernel", "value", "options",
    "out_list", "out_bytes", "out_value", "values", "later", "later_list",
}  # fmt: skip

_WIDE = {"U64": "uint64_t", "I64": "int64_t", "F32": "float", "F64": "double"}
_NARROW = {"U8": "uint8_t", "U16": "uint16_t", "U32": "uint32_t", "I8": "int8_t", "I16": "int16_t", "I32": "int32_t"}


class Call:
    """The parts of a function that returns a tuple with its status."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self.plan, self.layout, self.name = plan, layout, plan.python_name
        self.by_name = {a.name: a for a in plan.arguments}
        self.index = {a.name: i for i, a in enumerate(plan.inputs)}
        self.scratch = any(a.role in _SCRATCH for a in plan.arguments)
        self.later = any(a.role in ("later", "later_list") for a in plan.arguments)
        self.records = [a for a in plan.arguments if a.role == "out" and a.element.kind == "record"]
        self.cleanup = self.scratch or bool(self.records)
        self.fail = "goto done" if self.cleanup else "return NULL"

    def lines(self) -> Iterator[str]:
        inputs = self.plan.inputs
        seldom = "" if self.plan.function.name in self.layout.overrides["module"].get("frequent", []) else "COLD "
        yield f"{seldom}static PyObject *call_{self.plan.function.name}(CALL_PARAMETERS) {{"
        yield "    (void)self;"
        required = sum(not a.optional for a in inputs)
        yield f"    PyObject *bound[{max(len(inputs), 1)}];"
        yield f"    if (UNLIKELY(names || nargs != {len(inputs)})) {{"
        keywords = "".join(f"{a.python_name}\\0" for a in inputs)
        bind = f'bind_arguments("{self.name}", "{keywords}", {len(inputs)}, {required}, args, nargs, names, bound)'
        yield f"        if ({bind} < 0) return NULL;"
        yield "        args = bound;"
        yield "    }"
        if not inputs:
            yield "    (void)args;"
        if self.cleanup:
            yield "    PyObject *result = NULL;"
        if self.scratch:
            yield "    Scratch scratch;\n    scratch_init(&scratch);"
        for argument in self.plan.arguments:
            yield from self._declare(argument)
        for stage in _STAGES:
            for argument in inputs:
                if argument.role in stage:
                    yield from self._convert(argument)
        for argument in self.plan.arguments:
            yield from self._prepare(argument)
        yield from self._call()
        if self.cleanup:
            yield "done:"
            if self.scratch:
                yield "    scratch_free(&scratch);"
            yield from (f"    Py_XDECREF(c_{a.name});" for a in self.records)
            yield "    return result;"
        yield "}"

    # ---- the parts ----

    def _declare(self, a: Argument) -> Iterator[str]:
        name = f"c_{a.name}"
        if a.role == "in" or a.role == "inout":
            value = a.type if a.role == "in" else a.element
            match value.kind:
                case "scalar":
                    yield f"    {(_WIDE | _NARROW)[value.name]} {name} = 0;"
                case "enum":
                    yield f"    int {name} = 0;"
                case "record":
                    yield f"    void *{name} = NULL;"
                case _:
                    yield f"    uint64_t {name} = 0;"
            if a.role == "inout":
                yield f"    {target(a)} io_{a.name};"
        elif a.role in ("count", "length"):
            yield f"    {target(a)} {name} = 0;"
            yield f"    uint64_t limit_{a.name} = 0;"
        elif a.role == "out":
            yield f"    PyObject *{name} = NULL;" if a.element.kind == "record" else f"    {target(a)} {name} = 0;"
        elif a.role in ("string", "string?", "out_text"):
            yield f"    const char *{name} = NULL;"
        elif a.role == "buffer" or a.role == "out_bytes":
            yield f"    char *{name} = NULL;"
        elif a.role == "strings":
            yield f"    const char *const *{name} = NULL;"
        elif a.role == "out_borrowed":
            yield f"    {a.ctype.removesuffix('*').strip()} {name} = NULL;"
        elif a.role in ("kernel", "options", "values"):
            yield f"    void **{name} = NULL;"
        elif a.role in ("value", "out_value"):
            yield f"    void *{name} = NULL;\n    size_t size_{a.name} = 0;"
        elif a.role != "null":
            yield f"    void *{name} = NULL;"

    def _convert(self, a: Argument) -> Iterator[str]:
        position = self.index[a.name]
        source = f"args[{position}]"
        error = f'bad_argument("{self.name}()", "{a.python_name}")'
        failure = f"{{ {error}; goto done; }}" if self.cleanup else f"return {error};"
        expression = self._conversion(a, source)
        guard = f"{source} && " if a.optional else ""
        yield f"    if ({guard}UNLIKELY({expression} < 0)) {failure}"
        if a.role in ("count", "length"):
            wide = f"({target(a)})limit_{a.name}"
            yield f"    c_{a.name} = {wide};"
            yield f"    if (c_{a.name} != limit_{a.name}) {{"
            yield f'        PyErr_Format(PyExc_OverflowError, "%llu is too large", (unsigned long long)limit_{a.name});'
            yield f"        {failure}\n    }}"
        elif a.role == "inout":
            yield f"    io_{a.name} = ({target(a)})c_{a.name};"

    def _conversion(self, a: Argument, source: str) -> str:
        target = f"&c_{a.name}"
        match a.role:
            case "in" | "inout":
                value = a.type if a.role == "in" else a.element
                match value.kind:
                    case "scalar":
                        return f"to_{value.name.lower()}({source}, {target})"
                    case "enum":
                        return f"to_enum({source}, {target})"
                    case "handle":
                        return f"to_handle({source}, {self.layout.handles[value.name]}, {target})"
                    case "record":
                        return f"to_record({source}, {self.layout.records[value.name]}, false, {target})"
                return f"to_handle_slow({source}, -1, {target})"
            case "count" | "length":
                return f"to_u64({source}, &limit_{a.name})"
            case "record":
                return f"to_record({source}, {self.layout.records[a.element.name]}, true, {target})"
            case "string" | "string?":
                return f"to_string({source}, {'true' if a.role == 'string?' else 'false'}, &scratch, {target})"
            case "list":
                kind, index, size = self.layout.kind(a.element)
                count = self._count(a)
                if a.details and a.details[0].endswith("?"):
                    count = f"{source} == Py_None ? 0 : {count}"
                return f"to_list({source}, (ValueType){{{kind}, {index}, {size}}}, {count}, &scratch, {target})"
            case "strings":
                return f"to_strings({source}, {self._count(a)}, &scratch, {target})"
            case "kernel":
                return f"to_kernel_arguments({source}, &scratch, {target})"
            case "value":
                table, attribute = a.details[:2]
                return f"attribute_to(&attributes_{table}, c_{attribute}, {source}, &scratch, {target}, &size_{a.name})"
            case "options":
                keys, count = a.details
                table = f"options_{self.by_name[keys].element.name}"
                described = f"{table}, COUNT_OF({table}), c_{keys}, (long long)c_{count}"
                return f"to_options({source}, {described}, &scratch, {target})"
        return f"to_{a.role}({source}, &scratch, {target})"

    def _count(self, a: Argument) -> str:
        if not a.details:
            return "-1"
        match = re.fullmatch(r"(\w+)(-\d+)?\??", a.details[0])
        assert match, a
        if match[1].isdigit():
            return match[1]
        return f"(long long)c_{match[1]}" + (f" {match[2][0]} {match[2][1:]}" if match[2] else "")

    def _prepare(self, a: Argument) -> Iterator[str]:
        """What needs the converted inputs: room for the outputs."""
        name = f"c_{a.name}"
        room = needed = ""
        if a in self.records:
            room = f"record_new({self.layout.records[a.element.name]})"
        elif a.role == "out_list":
            _, _, size = self.layout.kind(a.element)
            if not a.details[0].isdigit() and a.details[0] not in self.by_name:
                yield from self._query(a)
            needed = f"{self._capacity(a)} > 0 && "
            room = f"scratch_array(&scratch, {size}, (size_t){self._capacity(a)})"
        elif a.role == "later":
            room = "handle_cells(1)"
        elif a.role == "later_list":
            count = self._capacity(a)
            yield f"    if ({count} < 1) {{"
            message = f"{self.name}(), {a.details[0]} must be at least 1"
            yield f'        PyErr_SetString(PyExc_ValueError, "{message}");'
            yield "        goto done;\n    }"
            room = f"handle_cells((size_t){count})"
        elif a.role == "out_bytes":
            length = self._capacity(a)
            if not length.isdigit():
                yield f"    if ({length} < 0) {{"
                message = f"{self.name}(), {a.details[0]} must not be negative"
                yield f'        PyErr_SetString(PyExc_ValueError, "{message}");'
                yield "        goto done;\n    }"
            room = f"scratch_array(&scratch, 1, (size_t){length})"
        elif a.role == "out_value":
            table, attribute, *sized = a.details
            if sized and self.by_name[sized[0]].role == "in":
                yield f"    size_{a.name} = c_{sized[0]};"
            room = f"attribute_room(&attributes_{table}, c_{attribute}, &scratch, &size_{a.name})"
        elif a.role == "values":
            table, attributes, count, *sizes = a.details
            given = f"c_{sizes[0]}" if sizes else "NULL"
            room = f"attribute_rooms(&attributes_{table}, c_{attributes}, (long long)c_{count}, {given}, &scratch)"
        if room:
            yield f"    if ({needed}!({name} = {room})) goto done;"
        if a.role in ("value", "out_value") and len(a.details) > 2 and self.by_name[a.details[2]].role == "out":
            yield f"    c_{a.details[2]} = size_{a.name};"

    def _query(self, a: Argument) -> Iterator[str]:
        """Another function tells the length of the array."""
        yield f"    int count_{a.name} = 0;"
        yield f"    int queried = (int)table.{a.details[0]}(&count_{a.name});"
        yield f"    if (queried != 0) {{ result = {self._failure('queried')}; goto done; }}"

    def _capacity(self, a: Argument) -> str:
        source = a.details[-1]
        if source.isdigit():
            return source
        if source not in self.by_name:
            return f"count_{a.name}"
        return f"limit_{source}" if self.by_name[source].role in ("count", "length") else f"c_{source}"

    def _pass(self, a: Argument) -> str:
        name = f"c_{a.name}"
        match a.role:
            case "in":
                return f"*({a.ctype} *){name}" if a.type.kind == "record" else f"({a.ctype}){name}"
            case "inout":
                return f"&io_{a.name}"
            case "out":
                return f"record_data({name})" if a.element.kind == "record" else f"&{name}"
            case "count" | "length" | "out_text" | "out_borrowed":
                return f"&{name}"
            case "null":
                return "NULL"
            case "address" | "handles":
                return f"({a.ctype}){name}"
        return name

    def _call(self) -> Iterator[str]:
        function, outputs = self.plan.function, self.plan.outputs
        is_status = self._has_status()
        yield f"    {function.returns} status;" if is_status else f"    {declare(function.returns, 'returned')};"
        arguments = ", ".join(self._pass(a) for a in self.plan.arguments if not a.parent)
        yield from self._invoke(f"{'status' if is_status else 'returned'} = table.{function.name}({arguments});")
        give = "result =" if self.cleanup else "return"
        if not is_status:
            failed = "" if self._returns_record() else "!returned && "
            yield f"    if ({failed}table_raise_pending() < 0) {self.fail};"
            yield f"    {give} {self._returned_value()};"
        elif not outputs:
            yield f"    {give} LIKELY(status == 0) ? {self._nothing()} : {self._failure('status')};"
        else:
            values = ", ".join(self._output(a) for a in outputs)
            failure = self._failure("status")
            failure = f"{{ result = {failure}; goto done; }}" if self.cleanup else f"return {failure};"
            begun = f" && status != {self.layout.overrides['module']['begun']}" if self.later else ""
            yield f"    if (UNLIKELY(status != 0{begun})) {failure}"
            yield f"    {give} {self._result(values, len(outputs))};"

    def _returns_record(self) -> bool:
        return self.layout.types.resolve(self.plan.function.returns).kind == "record"

    def _has_status(self) -> bool:
        return self.plan.function.returns == self.layout.library.status

    def _invoke(self, call: str) -> Iterator[str]:
        module, name = self.layout.overrides["module"], self.plan.function.name
        begin, end = module.get("group", ("", ""))
        if name == end:
            yield "    if (group_depth) group_depth--;"
        if name in module.get("keep_gil", []):
            yield f"    {call}"
        elif name in module.get("keep_gil_alone", []):
            yield "    PyThreadState *others = cupola_let_others_run();"
            yield f"    {call}"
            yield "    cupola_take_back(others);"
        elif name in module.get("grouped", []):
            yield "    PyThreadState *others = group_depth ? NULL : PyEval_SaveThread();"
            yield f"    {call}"
            yield "    cupola_take_back(others);"
        else:
            yield from ("    Py_BEGIN_ALLOW_THREADS", f"    {call}", "    Py_END_ALLOW_THREADS")
        if name == begin:
            yield "    if (status == 0) group_depth++;"

    # ---- what distinguishes a function that returns its status from one that raises ----

    def _nothing(self) -> str:
        return "succeeded()"

    def _failure(self, status: str) -> str:
        return f"failed({status}, {len(self.plan.outputs)})"

    def _result(self, values: str, count: int) -> str:
        if count == 1 and not self.later:
            return f"result_pair({values})"
        return f"result_tuple(status, (PyObject *[]){{{values}}}, {count})"

    def _returned_value(self) -> str:
        value = "text_from(returned)"
        if self._returns_record():
            returned = self.layout.types.resolve(self.plan.function.returns)
            value = f"record_copy({self.layout.records[returned.name]}, &returned)"
        return f"result_pair({value})"

    def _output(self, a: Argument) -> str:
        name = f"c_{a.name}"
        match a.role:
            case "out":
                return self._value(a, name)
            case "inout":
                return self._value(a, f"io_{a.name}")
            case "count" | "length":
                return f"PyLong_FromUnsignedLongLong({name})"
            case "out_list":
                kind, index, size = self.layout.kind(a.element)
                return f"list_from((ValueType){{{kind}, {index}, {size}}}, {name}, {self._returned(a)})"
            case "later":
                return f"handle_later({self.layout.handles[a.element.name]}, {name})"
            case "later_list":
                return f"handles_later({self.layout.handles[a.element.name]}, {name}, (size_t){self._capacity(a)})"
            case "out_bytes":
                return f"PyBytes_FromStringAndSize({name}, {self._capacity(a)})"
            case "out_text":
                return f"text_from({name})"
            case "out_borrowed":
                target = a.element.target.removeprefix("const ")
                return f"list_from((ValueType){self.layout.value_type(target)}, {name}, {name} ? c_{a.details[0]} : 0)"
            case "out_value":
                table, attribute, *sized = a.details
                room = f"c_{sized[0]}" if sized else f"size_{a.name}"
                return f"attribute_from(&attributes_{table}, c_{attribute}, {name}, {room})"
            case "values":
                table, attributes, count, *sizes = a.details
                given = f"c_{sizes[0]}" if sizes else "NULL"
                return f"attributes_from(&attributes_{table}, c_{attributes}, {name}, (long long)c_{count}, {given})"
        raise SystemExit(f"{self.name}: no output for {a.role}")

    def _returned(self, a: Argument) -> str:
        """How many elements of the array are valid: never more than there is room for."""
        capacity = self._capacity(a)
        counter = self.by_name.get(a.details[0])
        if counter is None or counter.role == "in":
            return f"{capacity} > 0 ? (size_t){capacity} : 0" if not capacity.isdigit() else capacity
        return f"c_{counter.name} < {capacity} ? c_{counter.name} : {capacity}"

    def _value(self, a: Argument, expression: str) -> str:
        match a.element.kind:
            case "record":
                return f"Py_NewRef({expression})"
            case "enum":
                return f"enum_value({self.layout.enums[a.element.name]}, {expression})"
            case "handle":
                return f"handle_new({self.layout.handles[a.element.name]}, (uint64_t){expression})"
            case "scalar":
                if a.element.name in ("F32", "F64"):
                    return f"PyFloat_FromDouble({expression})"
                signed = a.element.name.startswith("I")
                return f"PyLong_From{'' if signed else 'Unsigned'}LongLong({expression})"
        return f"PyLong_FromVoidPtr((void *){expression})"


def target(a: Argument) -> str:
    """The C type that a pointer argument points to."""
    pointed = a.ctype.removesuffix("*").strip()
    return "void *" if pointed == "void" else pointed
