"""Bad PTX gets an error that says where, what, and what was expected instead."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.ptx import PtxError, PtxSyntaxError, PtxUnsupportedError, parse
from cupola.cpu.compiler.ptx.ast import Location

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
START = HEADER + ".entry k(.param .u64 p) {\n.reg .pred %p<3>;\n.reg .b32 %r<3>;\n"  # the body begins in line 7


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the text ends too early at PTX line 1, column 1; expected '.version'"),
        ("hello", 1, 1, "unexpected 'hello' at PTX line 1, column 1; expected '.version'"),
        (".version nine", 1, 10, "expected a version such as '9.0'"),
        (".version 9.0\n.target 90", 2, 9, "expected a target such as 'sm_90'"),
        (".version 9.0\n.target sm_90\n.address_size 16", 3, 15, "expected 32 or 64"),
        (HEADER + "int x;", 4, 1, "unexpected 'int' at PTX line 4, column 1; expected a variable, a function"),
        (HEADER + ".global .u33 x;", 4, 9, "expected a type such as '.b32'"),
        (HEADER + ".global .align 3 .u32 x;", 4, 16, "3 is not an alignment"),
        (HEADER + ".global .u32 x", 4, 15, "the text ends too early at PTX line 4, column 15; expected ',' or ';'"),
        (HEADER + ".global .u32 x[2] = {1, 2, 3};", 4, 29, "there are more initial values than elements"),
        (HEADER + ".global .u32 x = {1};\n.global .u32 x;", 5, 15, "the variable 'x' is defined twice"),
        (HEADER + ".global .u16 x = y;", 4, 18, "an address does not fit '.u16'"),
        (HEADER + ".global .u32 x = 1.5;", 4, 18, "a floating-point value for an integer variable"),
        (HEADER + ".global .u32 x = 1 / 0;", 4, 20, "division by zero in a constant"),
        (HEADER + ".global .u32 x[" + "(" * 50 + "1" + ")" * 50 + "];", 4, 46, "nested too deeply"),
        (HEADER + ".entry k { ret;", 4, 16, "the text ends too early at PTX line 4, column 16; expected '}'"),
        (HEADER + ".entry k { ret; } .entry k { ret; }", 4, 26, "the function 'k' is defined twice"),
        (HEADER + ".entry k .maxntidx 3 { ret; }", 4, 10, "expected a performance directive or the function's body"),
        (HEADER + "/* never ends", 4, 1, "a comment has no end"),
        (START + "add.s32 %r1, %r2, 3", 7, 20, "the text ends too early"),
        (START + "add.s32 %r1, %r2 3; }", 7, 18, "unexpected '3' at PTX line 7, column 18; expected ',' or ';'"),
        (START + "add.s32 %r1, %r2; }", 7, 1, "'add.s32' has 2 operands, it takes d, a, b"),
        (START + "add.s33 %r1, %r2, 3; }", 7, 1, "unsupported PTX instruction 'add.s33': 'add' has no modifier '.s33'"),
        (START + "frob.u32 %r1; }", 7, 1, "unsupported PTX instruction 'frob.u32': there is no opcode 'frob'"),
        (START + "add.f16.s32 %r1, %r1, %r1; }", 7, 1, "no form of 'add' has these modifiers together"),
        (START + "add.s32 %r3, %r2, 3; }", 7, 9, "the register '%r3' is not declared"),
        (START + "mov.b32 %r1, nothing; }", 7, 14, "the name 'nothing' is not declared"),
        (START + "bra nowhere; }", 7, 5, "the name 'nowhere' is not declared"),
        (START + "{ L: ret; } bra L; }", 7, 17, "the name 'L' is not declared"),
        (START + "L: ret; L: ret; }", 7, 9, "the label 'L' is defined twice"),
        (START + ".reg .u32 a, a; }", 7, 14, "'a' is already declared in this scope"),
        (START + "@%r1 ret; }", 7, 2, "unexpected '%r1' at PTX line 7, column 2; expected a predicate"),
        (START + "ld.global.u32 %r1, %r2; }", 7, 1, "operand '[a]' of 'ld.global.u32' is of the wrong kind"),
        (START + "mov.u32 3, %r2; }", 7, 1, "operand 'd' of 'mov.u32' is of the wrong kind"),
        (START + "add.s32 %r1|%p1, %r2, 3; }", 7, 1, "operand 'd' of 'add.s32' is of the wrong kind"),
        (START + "ld.global.v2.u32 {%r1, 3}, [p]; }", 7, 1, "a destination holds a constant"),
        (START + "= 3; }", 7, 1, "unexpected '=' at PTX line 7, column 1; expected a statement"),
        (START + ".bogus; }", 7, 1, "unexpected '.bogus' at PTX line 7, column 1; expected a statement"),
        (START + "mov.u32 %r1, 0x; }", 7, 15, "expected ',' or ';'"),
    ],
)
def test_syntax_errors(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"PTX line {line}, column {column}" in str(caught.value)


def test_error_attributes() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(START + "add.s32 %r1, %r2 3; }")
    assert (caught.value.text, caught.value.expected) == ("3", "',' or ';'")
    assert isinstance(caught.value, PtxError)


def test_errors_of_instructions_tell_the_cuda_line() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(START + '.loc 1 12 3\n frob.u32 %r1;\n}\n.file 1 "kernel.cu"')
    assert "unsupported PTX instruction 'frob.u32'" in str(caught.value)
    assert "at PTX line 8, column 2 (kernel.cu:12)" in str(caught.value)
    assert caught.value.source == "kernel.cu:12"


def test_unsupported_says_both_lines() -> None:
    error = PtxUnsupportedError("no such thing", Location(12, "kernel.cu", 3))
    assert str(error) == "no such thing at PTX line 12 (kernel.cu:3)"
    assert str(PtxUnsupportedError("no such thing", Location(12))) == "no such thing at PTX line 12"
    assert str(PtxUnsupportedError("no such thing")) == "no such thing"
