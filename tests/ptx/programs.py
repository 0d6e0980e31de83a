"""Recorded forms as kernels: PTX that loads a row of inputs, runs the form and stores its results.

Every thread has a row. Column ``c`` of the inputs is at ``in + (c * threads + row) * 16``, results likewise, so that no
column needs an alignment of its own. The memory that a form may use is filled from one more buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.ptx.forms import CELL, Form
from tests.ptx.inputs import SETS, memory

SLOT = 16
"""Bytes between the rows of a column."""

FIRST, SECOND = 0x8182838485868788, 0x0102030405060708
"""The parameters ``first`` and ``second``."""

CONSTANTS = memory(128 * CELL, "constant")
"""What is in constant memory."""


def module(forms: Iterable[Form]) -> str:
    """PTX with a kernel for each of the forms, which must be for the same version and target."""
    forms = list(forms)
    ((version, target),) = {(form.options.get("version", "8.7"), form.options.get("target", "sm_90")) for form in forms}
    constants = ", ".join(map(str, CONSTANTS))
    return (
        f".version {version}\n.target {target}\n.address_size 64\n"
        f".const .align {CELL} .b8 constants[{len(CONSTANTS)}] = {{{constants}}};\n"
        + "".join(kernel(form) for form in forms)
    )


def _uses(form: Form, name: str) -> bool:
    return re.search(rf"%{name}\b", form.code) is not None


def kernel(form: Form) -> str:
    """The kernel of one form."""
    threads, block = form.threads, form.size("block", 128)
    lines = [
        ".reg .b64 %in, %out, %cells, %at, %wide;",
        ".reg .b32 %row, %byte, %corner;",
        "ld.param.u64 %in, [in];",
        "ld.param.u64 %out, [out];",
        "mov.u32 %row, %ctaid.x;",
        f"mad.lo.u32 %row, %row, {block}, 0;",
        "mov.u32 %byte, %tid.x;",
        "add.u32 %row, %row, %byte;",
        "mul.wide.u32 %at, %row, 16;",
        "add.u64 %in, %in, %at;",
        "add.u64 %out, %out, %at;",
        *_memory(form, block),
    ]
    for index, name in enumerate(form.objects):
        lines += [
            f".reg .b64 %{name};",
            "ld.param.u64 %wide, [objects];",
            f"ld.global.u64 %{name}, [%wide+{8 * index}];",
        ]
    for name, type in form.registers.items():
        kind = "pred" if SETS[type].bits == 1 else f"b{SETS[type].bits}"
        lines.append(f".reg .{kind} %{name};")
    for column, name in enumerate(form.inputs):
        lines += _load(name, SETS[form.registers[name]].bits, column * threads * SLOT)
    lines.append(f"{form.code};")
    for column, name in enumerate(form.outputs):
        lines += _store(name, SETS[form.registers[name]].bits, column * threads * SLOT)
    body = "".join(f"    {line}\n" for line in [*lines, "ret;"])
    names = ["in", "out", "cells", "first", "second", *(["objects"] if form.objects else [])]
    parameters = ", ".join(f".param .u64 {name}" for name in names)
    return f"// {form.line}\n.visible .entry {form.name}({parameters})\n.maxntid {block}, 1, 1\n{{\n{body}}}\n"


def _memory(form: Form, block: int) -> list[str]:
    """Addresses of the thread's cells, and what fills them."""
    lines = [
        "ld.param.u64 %cells, [cells];",
        f"mul.wide.u32 %at, %row, {CELL};",
        "add.u64 %at, %cells, %at;",
    ]
    if _uses(form, "G"):
        lines += [".reg .b64 %G;", "mov.u64 %G, %at;"]
    if _uses(form, "G0"):
        lines += [
            ".reg .b64 %G0;",
            "mov.u32 %corner, %ctaid.x;",
            f"mul.wide.u32 %G0, %corner, {block * CELL};",
            "add.u64 %G0, %cells, %G0;",
        ]
    if _uses(form, "S") or _uses(form, "S0"):
        lines += [
            f".shared .align 128 .b8 shared_cells[{block * CELL}];",
            ".reg .b32 %S, %S0;",
            "mov.u32 %S0, shared_cells;",
            f"mad.lo.u32 %S, %byte, {CELL}, %S0;",
            *_copy("shared", "%S"),
            "bar.sync 0;",
        ]
    if _uses(form, "L"):
        lines += [f".local .align {CELL} .b8 local_cell[{CELL}];", ".reg .b64 %L;", "mov.u64 %L, local_cell;"]
        lines += _copy("local", "%L")
    if _uses(form, "C"):
        lines += [".reg .b64 %C;", "and.b32 %corner, %byte, 127;", f"mul.wide.u32 %C, %corner, {CELL};"]
        lines += ["mov.u64 %wide, constants;", "add.u64 %C, %C, %wide;"]
    return lines


def _copy(space: str, address: str) -> list[str]:
    return [
        line
        for offset in range(0, CELL, 8)
        for line in (f"ld.global.u64 %wide, [%at+{offset}];", f"st.{space}.u64 [{address}+{offset}], %wide;")
    ]


def _load(name: str, bits: int, offset: int) -> list[str]:
    if bits == 1:
        return [f"ld.global.u32 %byte, [%in+{offset}];", f"setp.ne.u32 %{name}, %byte, 0;"]
    if bits == 128:
        return [
            f"{{ .reg .b64 %low, %high; ld.global.v2.b64 {{%low, %high}}, [%in+{offset}];",
            f"mov.b128 %{name}, {{%low, %high}}; }}",
        ]
    return [f"ld.global.b{bits} %{name}, [%in+{offset}];"]


def _store(name: str, bits: int, offset: int) -> list[str]:
    if bits == 1:
        return [f"selp.u32 %byte, 1, 0, %{name};", f"st.global.u32 [%out+{offset}], %byte;"]
    if bits == 128:
        return [
            f"{{ .reg .b64 %low, %high; mov.b128 {{%low, %high}}, %{name};",
            f"st.global.v2.b64 [%out+{offset}], {{%low, %high}}; }}",
        ]
    return [f"st.global.b{bits} [%out+{offset}], %{name};"]
