"""Calls inlined, registers for .param space, the carry an operand."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes import analyze, effects, prepare
from cupola.cpu.compiler.ptx import PtxUnsupportedError, ast

from .lockstep import alone
from .small import HEADER, kernel, parse

TWICE = """
.func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %r<3>; ld.param.u32 %r1, [x]; shl.b32 %r2, %r1, 1; st.param.b32 [r+0], %r2; ret;
}
"""
LARGER = """
.func (.param .b32 r) larger(.param .b32 x, .param .b32 y) {
    .reg .b32 %r<3>; .reg .pred %p<2>;
    ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y];
    setp.lt.u32 %p1, %r1, %r2; @%p1 bra SECOND;
    st.param.b32 [r], %r1; ret;
    SECOND: st.param.b32 [r], %r2; ret;
}
"""


def call(function: str, result: str, *arguments: str) -> str:
    """The sequence that NVRTC writes."""
    names = [f"a{n}" for n in range(len(arguments))]
    stores = "".join(f".param .b32 {n}; st.param.b32 [{n}+0], {a}; " for n, a in zip(names, arguments, strict=True))
    loads = f"ld.param.b32 {result}, [v+0];"
    return f"{{ {stores} .param .b32 v; call.uni (v), {function}, ({', '.join(names)}); {loads} }}"


def prepared(body: str, before: str = "") -> ast.Function:
    module, function = kernel(body, before)
    text = [str(s) for s in function.body or ()]
    result = prepare(module, function)
    assert [str(s) for s in module.functions["k"].body or ()] == text  # the module stays as it is
    return result


def instructions(function: ast.Function) -> list[ast.Instruction]:
    return [s for s in function.body or () if isinstance(s, ast.Instruction)]


def stored(function: ast.Function, width: int = 4) -> list[list[int]]:
    """What each thread stores."""
    return [[value for _, value in thread] for thread in alone(function, width)]


def without_ld_param(function: ast.Function) -> None:
    assert not any("param" in modifier for i in instructions(function) for modifier in i.modifiers)
    assert not any(variable.space == "param" for variable in function.variables)


@pytest.mark.parametrize(
    ("body", "before", "expected"),
    [
        (call("twice", "%r2", "%r1"), TWICE, [0, 2, 4, 6]),
        (call("twice", "%r2", "5"), TWICE, [10, 10, 10, 10]),
        (call("twice", "%r3", "%r1") + call("twice", "%r2", "%r3"), TWICE, [0, 4, 8, 12]),
        (call("larger", "%r2", "%r1", "2"), LARGER, [2, 2, 2, 3]),
        (call("larger", "%r3", "%r1", "2") + call("larger", "%r2", "%r3", "1"), LARGER, [2, 2, 2, 3]),
        ("mov.u32 %r2, 7; @%p1 " + "call (%r2), f, (%r1);", ".func (.reg .u32 y) f(.reg .u32 x) { add.u32 y, x, 1; }",
         [1, 2, 7, 7]),
        ("call (%r2), f, (%r1, 3);", ".func (.param .b32 y) f(.param .b32 x, .reg .u32 z) { .reg .u32 a; "
         "ld.param.u32 a, [x]; add.u32 a, a, z; st.param.u32 [y], a; ret; }", [3, 4, 5, 6]),
        ("call leave; mov.u32 %r2, 3;", ".func leave { .reg .pred p; .reg .u32 a; mov.u32 a, %tid.x; "
         "setp.gt.u32 p, a, 1; @p exit; ret; }", [3, 3, None, None]),
        ("mov.u64 %rd1, twice; " + call("twice", "%r2", "%r1").replace("twice", "%rd1"), TWICE, [0, 2, 4, 6]),
    ],
)  # fmt: skip
def test_calls_are_inlined(body: str, before: str, expected: list[int | None]) -> None:
    function = prepared(f"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 2; {body} st.shared.u32 [%r1], %r2; ret;", before)
    without_ld_param(function)
    assert not any(i.opcode == "call" for i in instructions(function))
    if any(i.opcode == "exit" for i in instructions(function)):
        for i in instructions(function):
            i.opcode = "ret" if i.opcode == "exit" else i.opcode  # the same in a kernel; `alone` knows one of them
    assert stored(function) == [[] if value is None else [value] for value in expected]
    analysis = analyze(function, width=4, x_is_contiguous=True)
    assert analysis.blocks


def test_calls_of_calls() -> None:
    head = ".func (.param .b32 r) outer(.param .b32 x) { .reg .b32 %r<5>; ld.param.u32 %r1, [x]; "
    calls = call("twice", "%r2", "%r1") + call("larger", "%r3", "%r2", "3")
    outer = head + calls + "st.param.b32 [r+0], %r3; ret; }"
    function = prepared(
        "mov.u32 %r1, %tid.x;"
        + call("outer", "%r2", "%r1")
        + call("outer", "%r3", "%r2")
        + "st.shared.u32 [%r1], %r3; ret;",
        TWICE + LARGER + outer,
    )
    without_ld_param(function)
    assert stored(function) == [[6], [6], [8], [12]]


def test_locations_tell_the_call() -> None:
    module = parse(
        HEADER
        + """.func f() { .reg .u32 a; .loc 1 3 7
               mov.u32 a, 1; .loc 2 9 1, function_name F, inlined_at 1 3 7
               mov.u32 a, 2; ret; }
             .entry k() { .loc 1 20 3
               call f; ret; }
             .file 1 "a.cu"
             .file 2 "b.h"
             """
    )
    first, second = instructions(prepare(module, module.functions["k"]))[:2]
    assert (first.location.line, first.location.function) == (3, "f")
    assert first.location.inlined_at is not None
    assert (first.location.inlined_at.line, first.location.inlined_at.function) == (20, "k")
    assert second.location.line == 9 and second.location.inlined_at is not None
    assert second.location.inlined_at.line == 3
    assert second.location.inlined_at.inlined_at is not None and second.location.inlined_at.inlined_at.line == 20


def test_static_variables_stay_one_and_local_ones_are_several() -> None:
    callee = ".func f() { .shared .u32 s[8]; .local .u32 l[8]; st.shared.u32 [s], 1; st.local.u32 [l], 2; ret; }"
    function = prepared("{ .shared .u32 s[4]; st.shared.u32 [s], 3; } call f; call f; ret;", callee)
    names = {variable.name: variable for variable in function.variables}
    assert sorted(v.size for v in names.values() if v.space == "shared") == [16, 32]
    assert sorted(v.size for v in names.values() if v.space == "local") == [32, 32]
    used = [i.operands[0].base.name for i in instructions(function) if i.opcode == "st"]  # type: ignore[union-attr]
    assert used[1] == used[3] != used[0]
    assert len({used[2], used[4]}) == 2 and set(used) == names.keys()


def test_functions_of_the_system_stay_calls() -> None:
    function = prepared(
        """{ .param .b64 a; st.param.b64 [a+0], %rd1; .param .b64 b; st.param.b64 [b+0], %rd2; .param .b32 r;
             call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r+0]; } st.shared.u32 [s], %r1; ret;""",
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);",
    )
    without_ld_param(function)
    (found,) = [i for i in instructions(function) if i.opcode == "call"]
    returns, target, arguments = found.operands
    assert target == ast.Symbol("vprintf")
    assert isinstance(returns, ast.ArgumentList) and isinstance(arguments, ast.ArgumentList)
    registers = [item.name for item in (*returns.items, *arguments.items) if isinstance(item, ast.Register)]
    assert [function.registers[name] for name in registers] == ["b32", "b64", "b64"]
    assert effects(found).writes == (registers[0],) and effects(found).reads == tuple(registers[1:])


@pytest.mark.parametrize(
    ("body", "before", "message"),
    [
        ("call (%r1), %rd1, (%r2);", "", "neither a prototype nor a list of targets"),
        ("call f, (%r1);", ".func f() { ret; }", "does not fit the function"),
        ("call (%r1), f;", ".func f() { ret; }", "does not fit the function"),
    ],
)
def test_refused_calls(body: str, before: str, message: str) -> None:
    module, function = kernel(body, before)
    with pytest.raises(PtxUnsupportedError, match=message):
        prepare(module, function)


def test_calls_that_multiply_are_not_inlined() -> None:
    functions = ".func f0() { .reg .u32 a; mov.u32 a, 1; mov.u32 a, 2; ret; }"
    functions += "".join(f".func f{n}() {{ call f{n - 1}; call f{n - 1}; ret; }}" for n in range(1, 30))
    function = prepare(*kernel("call f29; ret;", functions))
    assert 5 <= len(function.parts) <= 29
    assert len(function.body or ()) < 5000


RECURSIVE = """
.func (.param .b32 r) f(.param .b32 x) {
    .reg .b32 %r<5>; .reg .pred %p; .local .align 4 .b8 own[8];
    ld.param.u32 %r1, [x]; setp.eq.u32 %p, %r1, 0; @%p bra END;
    st.local.u32 [own+4], %r1; sub.u32 %r2, %r1, 1;
    """ + call("f", "%r3", "%r2") + """
    ld.local.u32 %r4, [own+4]; add.u32 %r1, %r4, %r3;
    END: st.param.b32 [r], %r1; ret;
}
"""  # fmt: skip


def test_what_recursion_needs_is_on_the_stack() -> None:
    function = prepared("mov.u32 %r1, 3; " + call("f", "%r2", "%r1"), RECURSIVE)
    assert [(part.name, part.recursive) for part in function.parts.values()] == [("f", True)]
    assert function.stack_grows and function.stack_bytes == 32  # the caller and the call, 16 bytes; own; nothing more
    assert not any(variable.space == "local" for variable in function.variables)
    jumps = [i.opcode for i in instructions(function) if i.opcode[0] == "."]
    assert jumps == [".call", ".enter", ".frame", ".call", ".frame", ".leave", ".return"]
    assert [call.operands[1] for call in function.call_sites] == [ast.Symbol("f")] * 2


POINTED = """
.func f(.param .b32 x) { ret; } .func g(.param .b32 x) { ret; } .func h(.param .b64 x) { ret; } .func unused() { ret; }
.global .align 8 .u64 table[3] = {f, h, unused};
"""


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ("q: .callprototype _ (.param .b32 _);", ["f", "g"]),  # g's address is taken in the code
        ("q: .callprototype _ (.param .b64 _);", ["h"]),
        ("q: .callprototype _ (.param .b32 _, .param .align 8 .b8 _[]);", ["f", "g"]),
        ("q: .callprototype (.param .b32 _) _ (.param .b32 _);", []),
        ("q: .calltargets g, f;", ["f", "g"]),
    ],
)
def test_what_a_pointer_may_point_to(targets: str, expected: list[str]) -> None:
    argument = ".param .b64 a" if ".b64" in targets or "h" in expected else ".param .b32 a"
    body = f"mov.u64 %rd2, g; ld.global.u64 %rd1, [table]; {{ {argument}; {targets} call %rd1, (a), q; }} ret;"
    function = prepared(body, POINTED)
    assert sorted(part.name for part in function.parts.values()) == expected


@pytest.mark.parametrize("calls", [1, 3])
def test_a_large_function_is_inlined_once_only(calls: int) -> None:
    large = ".func large() { .reg .u32 a;" + "add.u32 a, a, 1;" * 900 + "ret; }"
    function = prepared("call large; " * calls + "ret;", large)
    assert len(function.parts) == (calls > 1)


def pieces(stores: str, loads: str, size: int = 16) -> ast.Function:
    callee = (
        f".func f(.param .align 8 .b8 x[{size}]) {{ .reg .b32 %a<9>; .reg .b16 %h<9>; .reg .b64 %l<9>; {loads} ret; }}"
    )
    return prepared(f"{{ .param .align 8 .b8 y[{size}]; {stores} call f, (y); }} ret;", callee)


@pytest.mark.parametrize(
    ("stores", "loads", "opcodes"),
    [
        ("st.param.b32 [y], %r1;", "ld.param.b32 %a1, [x];", ["mov.b32", "mov.b32"]),
        ("st.param.b32 [y+4], %r1;", "ld.param.s32 %l1, [x+4];", ["mov.b32", "cvt.s64.s32"]),
        ("st.param.b8 [y], %rs1;", "ld.param.s8 %a1, [x];", ["cvt.u16.u8", "cvt.s32.s8"]),
        ("st.param.b8 [y], 300;", "ld.param.u8 %h1, [x];", ["mov.b16", "cvt.u16.u8"]),
        ("st.param.v2.b32 [y+8], {%r1, 5};", "ld.param.v2.u32 {%a1, _}, [x+8];", ["mov.b32", "mov.b32", "mov.u32"]),
        ("st.param.b16 [y], %rs1;", "ld.param.u16 %a1, [x];", ["mov.b16", "cvt.u32.u16"]),
        ("st.param.f32 [y], 0f3F800000;", "ld.param.f32 %a1, [x];", ["mov.f32", "mov.f32"]),
    ],
)
def test_pieces_become_registers(stores: str, loads: str, opcodes: list[str]) -> None:
    function = pieces(stores, loads)
    without_ld_param(function)
    found = [".".join((i.opcode, *i.modifiers)) for i in instructions(function)]
    assert found == [*opcodes, "ret"]
    assert not function.variables


@pytest.mark.parametrize(
    ("stores", "loads"),
    [
        ("st.param.b64 [y], %rd1;", "ld.param.b32 %a1, [x+4];"),
        ("st.param.b32 [y], %r1;", "ld.param.b64 %l1, [x];"),
        ("st.param.b32 [y], %r1;", "mov.u64 %l1, x; ld.param.b32 %a1, [%l1+4];"),
        ("st.param.b32 [y], %r1;", "mov.u64 %l1, x; cvta.param.u64 %l2, %l1; ld.u32 %a1, [%l2];"),
    ],
)
def test_what_is_no_piece_stays_in_memory(stores: str, loads: str) -> None:
    function = pieces(stores, loads)
    without_ld_param(function)
    (variable,) = function.variables
    assert (variable.space, variable.size, variable.align) == ("local", 16, 8)
    assert {i.modifiers[0] for i in instructions(function) if i.opcode in ("st", "cvta")} == {"local"}


def test_kernel_parameters_are_left_alone() -> None:
    function = prepared("ld.param.u32 %r1, [n]; ret;")
    assert instructions(function)[0].modifiers == ("param", "u32")


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("add.cc.u32 %r1, %r2, %r3;", ["%r1", "%cc"], ["%r2", "%r3"]),
        ("addc.u32 %r1, %r2, %r3;", ["%r1"], ["%r2", "%r3", "%cc"]),
        ("addc.cc.u32 %r1, %r2, %r3;", ["%r1", "%cc"], ["%r2", "%r3", "%cc"]),
        ("sub.cc.u32 %r1, %r2, 1;", ["%r1", "%cc"], ["%r2"]),
        ("subc.u32 %r1, %r2, %r3;", ["%r1"], ["%r2", "%r3", "%cc"]),
        ("mad.lo.cc.u32 %r1, %r2, %r3, %r4;", ["%r1", "%cc"], ["%r2", "%r3", "%r4"]),
        ("madc.hi.u32 %r1, %r2, %r3, %r4;", ["%r1"], ["%r2", "%r3", "%r4", "%cc"]),
        ("madc.hi.cc.u32 %r1, %r2, %r3, %r4;", ["%r1", "%cc"], ["%r2", "%r3", "%r4", "%cc"]),
        ("add.u32 %r1, %r2, %r3;", ["%r1"], ["%r2", "%r3"]),
    ],
)
def test_carry(text: str, writes: list[str], reads: list[str]) -> None:
    function = prepared(text + " ret;")
    effect = effects(instructions(function)[0])
    assert (list(effect.writes), list(effect.reads)) == (writes, reads)
    assert ("%cc" in function.registers) == ("%cc" in writes + reads)


@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("st.shared.u32 [%r1], %r2;", "", "%r1 %r2"),
        ("ld.global.v2.u32 {%r1, _}, [%rd1+4];", "%r1", "%rd1"),
        ("@!%p1 mov.u32 %r1, %r2;", "%r1", "%p1 %r2"),
        ("setp.lt.and.u32 %p1|%p2, %r1, %r2, !%p3;", "%p1 %p2", "%r1 %r2 %p3"),
        ("mov.b64 %rd1, {%r1, %r2};", "%rd1", "%r1 %r2"),
        ("atom.global.cas.b32 %r1, [%rd1], %r2, %r3;", "%r1", "%rd1 %r2 %r3"),
        ("red.global.add.u32 [%rd1], %r2;", "", "%rd1 %r2"),
        ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "%f1 %f2 %f3 %f4", "%rd1 %r1"),
        ("vadd.s32.s32.s32 %r1, %r2.b0, %r3;", "%r1", "%r2 %r3"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 4;", "", "%r1 %rd1"),
        ("mov.u32 %r1, %tid.x;", "%r1", ""),
        ("bar.red.popc.u32 %r1, 0, %p1;", "%r1", "%p1"),
    ],
)
def test_effects(text: str, writes: str, reads: str) -> None:
    effect = effects(instructions(kernel(text)[1])[0])
    assert (" ".join(effect.writes), " ".join(effect.reads)) == (writes, reads)


def test_setting_a_condition_is_a_store():
    body = """
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 1;
        { .param .b64 a; st.param.b64 [a], %rd1; .param .b32 b; st.param.b32 [b], 7;
          @%p1 call.uni cudaGraphSetConditional, (a, b); }
    """
    function = prepared(body, ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);")
    (store,) = [i for i in instructions(function) if i.opcode == "st"]
    assert store.modifiers == ("global", "u32") and store.guard is not None
    assert not any(i.opcode == "call" for i in instructions(function))
