"""Modules whose kernels are read one by one: the same as when all is read at once, with the same errors."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.ptx import PtxSyntaxError, ast, parse
from cupola.cpu.compiler.ptx.lexer import kernel_bodies

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
KERNEL = ".visible .entry {name}(.param .u64 p)\n{{\n .reg .b32 %r<3>;\n{body}\n ret;\n}}\n"
FUNCTION = ".func (.param .b32 r) half(.param .b32 x)\n{\n .reg .b32 %r<3>;\n ret;\n}\n"
CALL = """{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
 call.uni (b), half, (a); ld.param.b32 %r2, [b]; }"""


def kernel(name: str, body: str = " mov.u32 %r1, %tid.x;") -> str:
    return KERNEL.format(name=name, body=body)


def read_all(module: ast.Module) -> ast.Module:
    for function in module.functions.values():
        module.read_body(function)
    return module


TEXTS = {
    "two kernels": kernel("a") + kernel("b", " add.u32 %r2, %r1, 1;"),
    "a function between them": kernel("a", CALL) + FUNCTION + kernel("b", CALL),
    "braces in comments": "/* } { */ // {\n" + kernel("a", " // }\n /* { */ mov.u32 %r1, 1; /* } */") + kernel("b"),
    "a directive with a string": kernel("a", ' .pragma "no{unroll";'),
    "a directive before the body": '.entry a() .maxntid 32, 1, 1 .pragma "}";\n{ ret; }\n' + kernel("b"),
    "initial values": ".global .u32 x[2] = {1, 2};\n" + kernel("a") + ".const .u32 y[2] = {3, 4}; /* .entry */\n",
    "an entry in a comment": "// .entry\n.global .u32 x[2] = {1, 2};\n" + kernel("a"),
    "a declaration": ".extern .entry b(.param .u64 p);\n" + kernel("a"),
    "lines of source": kernel("a", ' .loc 1 7 3\n mov.u32 %r1, 1;\n .file 2 "b.h"') + '.file 1 "a.cu"\n',
    "debug strings": kernel("a") + ".section .debug_str {\n$L__info_string0:\n.b8 97\n.b8 0\n}\n",
    "nothing but a NUL behind it": kernel("a") + "\0 }}}",
    "switches": kernel("a", " ts: .branchtargets L, M;\n brx.idx.uni %r1, ts;\n L: ret;\n M:"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_module(name):
    text = HEADER + TEXTS[name]
    whole, lazy = parse(text), parse(text, lazily=True)
    kernels = [
        function.name for function in whole.functions.values() if function.is_entry and function.body is not None
    ]
    skipped_in_vain = name in ("an entry in a comment", "a directive before the body")
    assert skipped_in_vain or sorted(lazy.unread) == sorted(kernels)
    assert list(lazy.functions) == list(whole.functions)
    assert read_all(lazy) == whole
    assert not lazy.unread


ERRORS = {
    "an unknown instruction": (kernel("a") + kernel("b", " frobnicate.u32 %r1;"), "b"),
    "a name that is not declared": (kernel("b", "\n bra nowhere;") + kernel("a"), "b"),
    "an operand too few": (kernel("b", " .reg .f32 x; add.u32 %r1, %r2;") + kernel("a"), "b"),
    "an end in the middle": (kernel("b", " add.u32 %r1,").replace("\n ret;", "") + kernel("a"), "b"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_come_up_when_the_kernel_is_read(name):
    text, bad = HEADER + ERRORS[name][0], ERRORS[name][1]
    with pytest.raises(PtxSyntaxError) as at_once:
        parse(text)
    module = parse(text, lazily=True)
    module.read_body(module.functions["a"])
    for _ in range(2):
        with pytest.raises(PtxSyntaxError) as later:
            module.read_body(module.functions[bad])
        assert str(later.value) == str(at_once.value)


@pytest.mark.parametrize(
    "text",
    [
        kernel("a") + "}",
        kernel("a") + kernel("b")[:-2],
        kernel("a") + "/* no end " + kernel("b"),
        kernel("a") + kernel("a"),
        ".global .u32 x[2] = {1, 2\n" + kernel("a"),
        "",
    ],
)
def test_errors_outside_of_bodies_come_up_at_once(text):
    header = HEADER if text else ""
    with pytest.raises(PtxSyntaxError) as at_once:
        parse(header + text)
    with pytest.raises(PtxSyntaxError) as lazily:
        parse(header + text, lazily=True)
    assert str(lazily.value) == str(at_once.value)


def test_where_bodies_are():
    text = HEADER + TEXTS["braces in comments"]
    assert [text[begin:end].count("ret;") for begin, end in kernel_bodies(text)] == [1, 1]
    assert kernel_bodies(text + "{") == []
