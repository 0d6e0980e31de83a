"""The parser on small pieces of PTX: operands, scopes, declarations, calls."""

from __future__ import annotations

import struct

import pytest

from cupola.cpu.compiler.passes.effects import Effects, effects
from cupola.cpu.compiler.ptx import PtxError, ast, parse

from .sample import OTHER_COMPILER

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
DECLARATIONS = """
.global .align 4 .b8 table[64];
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 r) function (.param .b64 x);
"""
REGISTERS = """
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b128 %q<3>;
"""


def body_of(text: str, name: str = "k") -> ast.Function:
    module = parse(f"{HEADER}{DECLARATIONS}.visible .entry {name}(.param .u64 parameter) {{ {REGISTERS} {text} }}")
    return module.functions[name]


def instructions(function: ast.Function) -> list[ast.Instruction]:
    return [s for s in function.body or () if isinstance(s, ast.Instruction)]


def reg(name: str) -> ast.Register:
    return ast.Register(f"%{name}")


def imm(value: int) -> ast.Immediate:
    return ast.Immediate(value)


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers", "operands"),
    [
        ("ret;", "ret", "", ()),
        ("add.s32 %r1, %r2, -4;", "add", "s32", (reg("r1"), reg("r2"), imm(-4))),
        ("add.s32 %r1,%r2,-4;", "add", "s32", (reg("r1"), reg("r2"), imm(-4))),
        ("add.s32 %r1, %r2, - 4;", "add", "s32", (reg("r1"), reg("r2"), imm(-4))),
        ("mov.u32 %r1, 0x10U;", "mov", "u32", (reg("r1"), imm(16))),
        ("mov.u32 %r1, 017;", "mov", "u32", (reg("r1"), imm(15))),
        ("mov.u32 %r1, 0b101;", "mov", "u32", (reg("r1"), imm(5))),
        ("mov.u32 %r1, 3 + 4 * 2;", "mov", "u32", (reg("r1"), imm(11))),
        ("mov.u32 %r1, (1 << 4) | 3;", "mov", "u32", (reg("r1"), imm(19))),
        ("mov.u32 %r1, ~0;", "mov", "u32", (reg("r1"), imm(-1))),
        ("mov.u32 %r1, 7 > 3 ? 10 : 20;", "mov", "u32", (reg("r1"), imm(10))),
        ("mov.u32 %r1, -7 / 2;", "mov", "u32", (reg("r1"), imm(-3))),
        ("mov.u32 %r1, -7 % 4;", "mov", "u32", (reg("r1"), imm(-3))),
        ("mov.u32 %r1, (.u64)-1 >> 60;", "mov", "u32", (reg("r1"), imm(15))),
        ("mov.u32 %r1, WARP_SZ;", "mov", "u32", (reg("r1"), imm(32))),
        ("mov.f32 %f1, 0f3F800000;", "mov", "f32", (reg("f1"), ast.Immediate(0x3F800000, "f32"))),
        ("mov.f64 %rd1, 0dBFF0000000000000;", "mov", "f64", (reg("rd1"), ast.Immediate(0xBFF << 52, "f64"))),
        ("mov.f64 %rd1, 1.5e0;", "mov", "f64", (reg("rd1"), ast.Immediate(0x3FF8 << 48, "f64"))),
        ("mov.u32 %r1, %tid.x;", "mov", "u32", (reg("r1"), ast.Special("tid", "x"))),
        ("mov.u32 %r1, %laneid;", "mov", "u32", (reg("r1"), ast.Special("laneid"))),
        ("mov.u64 %rd1, %globaltimer;", "mov", "u64", (reg("rd1"), ast.Special("globaltimer"))),
        ("mov.u64 %rd1, table;", "mov", "u64", (reg("rd1"), ast.Symbol("table"))),
        ("mov.u64 %rd1, table+8;", "mov", "u64", (reg("rd1"), ast.Symbol("table", 8))),
        ("mov.u64 %rd1, table[3];", "mov", "u64", (reg("rd1"), ast.Symbol("table", 3))),
        ("mov.u64 %rd1, function;", "mov", "u64", (reg("rd1"), ast.Symbol("function"))),
        ("ld.global.u32 %r1, [%rd1];", "ld", "global.u32", (reg("r1"), ast.Address(reg("rd1")))),
        ("ld.global.u32 %r1, [%rd1+4];", "ld", "global.u32", (reg("r1"), ast.Address(reg("rd1"), 4))),
        ("ld.global.u32 %r1, [%rd1+-4];", "ld", "global.u32", (reg("r1"), ast.Address(reg("rd1"), -4))),
        ("ld.global.u32 %r1, [ %rd1 + 0x10 ];", "ld", "global.u32", (reg("r1"), ast.Address(reg("rd1"), 16))),
        ("ld.global.u32 %r1, [%rd1 - 4];", "ld", "global.u32", (reg("r1"), ast.Address(reg("rd1"), -4))),
        ("ld.global.u32 %r1, [table+4];", "ld", "global.u32", (reg("r1"), ast.Address(ast.Symbol("table"), 4))),
        ("ld.shared.u32 %r1, [64];", "ld", "shared.u32", (reg("r1"), ast.Address(None, 64))),
        (
            "ld.param.u64 %rd1, [parameter];",
            "ld",
            "param.u64",
            (reg("rd1"), ast.Address(ast.Symbol("parameter"))),
        ),
        (
            "ld.global.v2.u32 {%r1, _}, [%rd1];",
            "ld",
            "global.v2.u32",
            (ast.Vector((reg("r1"), ast.Sink())), ast.Address(reg("rd1"))),
        ),
        (
            "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
            "ld",
            "global.L2::cache_hint.u32",
            (reg("r1"), ast.Address(reg("rd1")), reg("rd2")),
        ),
        ("st.shared::cta.u32 [dynamic], 3;", "st", "shared::cta.u32", (ast.Address(ast.Symbol("dynamic")), imm(3))),
        ("mov.b32 {%rs1, %rs2}, %r1;", "mov", "b32", (ast.Vector((reg("rs1"), reg("rs2"))), reg("r1"))),
        ("mov.b64 %rd1, {%r1, 0};", "mov", "b64", (reg("rd1"), ast.Vector((reg("r1"), imm(0))))),
        (
            "setp.lt.s32 %p1|%p2, %r1, %r2;",
            "setp",
            "lt.s32",
            (ast.Pair(reg("p1"), reg("p2")), reg("r1"), reg("r2")),
        ),
        (
            "setp.lt.and.s32 %p1, %r1, %r2, !%p2;",
            "setp",
            "lt.and.s32",
            (reg("p1"), reg("r1"), reg("r2"), ast.Negated(reg("p2"))),
        ),
        (
            "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;",
            "shfl",
            "sync.bfly.b32",
            (ast.Pair(reg("r1"), reg("p1")), reg("r2"), imm(1), imm(31), imm(-1)),
        ),
        (
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
            "tex",
            "2d.v4.f32.f32",
            (
                ast.Vector((reg("f1"), reg("f2"), reg("f3"), reg("f4"))),
                ast.AddressList((reg("rd1"), ast.Vector((reg("f5"), reg("f6"))))),
            ),
        ),
        (
            "vadd.s32.u32.s32 %r1, %r2.b1, %r3.h0;",
            "vadd",
            "s32.u32.s32",
            (reg("r1"), ast.Selector(reg("r2"), "b1"), ast.Selector(reg("r3"), "h0")),
        ),
        (
            "atom.add.release.gpu.u32 %r1, [%rd1], 1;",
            "atom",
            "add.release.gpu.u32",
            (reg("r1"), ast.Address(reg("rd1")), imm(1)),
        ),
        ("bar.sync 0;", "bar", "sync", (imm(0),)),
        ("bar.sync 1, 64;", "bar", "sync", (imm(1), imm(64))),
        (
            "mbarrier.arrive.shared::cta.b64 _, [%r1];",
            "mbarrier",
            "arrive.shared::cta.b64",
            (ast.Sink(), ast.Address(reg("r1"))),
        ),
    ],
)
def test_instruction(text: str, opcode: str, modifiers: str, operands: tuple[ast.Operand, ...]) -> None:
    (found,) = instructions(body_of(text))
    assert found.opcode == opcode
    assert ".".join(found.modifiers) == modifiers
    assert found.operands == operands
    assert found.guard is None


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("@%p1 ret;", ast.Guard(reg("p1"))),
        ("@!%p1 ret;", ast.Guard(reg("p1"), True)),
        ("@ ! %p1 ret;", ast.Guard(reg("p1"), True)),
    ],
)
def test_guard(text: str, guard: ast.Guard) -> None:
    (found,) = instructions(body_of(text))
    assert found.guard == guard


def test_statements_share_lines_and_span_lines() -> None:
    function = body_of("mov.u32 %r1, 1; mov.u32\n\t%r2 , // a comment; with { things\n 2 /* and ; this */ ; ret;")
    assert [i.opcode for i in instructions(function)] == ["mov", "mov", "ret"]
    assert instructions(function)[1].operands == (reg("r2"), imm(2))
    lines = [i.location.ptx_line for i in instructions(function)]
    assert lines[0] == lines[1] and lines[2] == lines[0] + 2


def test_registers_are_those_in_use() -> None:
    function = body_of(".reg .f64 %fd<1000000000>; .reg .u32 a, b; mov.u32 a, 1; mov.f64 %fd77, 0d0000000000000000;")
    assert function.registers == {"a": "u32", "b": "u32", "%fd77": "f64"}


def test_range_prefix_may_end_in_a_digit() -> None:
    function = body_of(".reg .b32 %x1<3>; mov.u32 %x12, 1;")
    assert function.registers["%x12"] == "b32"


def test_inner_scopes_hide_outer_names() -> None:
    function = body_of(
        """
        .reg .u32 t; mov.u32 t, 1;
        { .reg .u32 t; mov.u32 t, 2; { .reg .u32 t; mov.u32 t, 3; } mov.u32 t, 4; }
        { .reg .u32 t; mov.u32 t, 5; }
        mov.u32 t, 6;
        """
    )
    names = [i.operands[0].name for i in instructions(function)]  # type: ignore[union-attr]
    assert names[0] == names[-1] == "t"
    assert names[1] == names[3]
    assert len(set(names)) == 4
    assert set(names) <= function.registers.keys()


def test_redeclared_registers_of_a_range() -> None:
    function = body_of("mov.u32 %r1, 1; { .reg .pred %r1; setp.eq.u32 %r1, %r2, 3; } mov.u32 %r1, 2;")
    first, inner, last = [i.operands[0].name for i in instructions(function)]  # type: ignore[union-attr]
    assert first == last != inner
    assert function.registers[inner] == "pred"


def test_registers_beyond_an_inner_range_are_outer_ones() -> None:
    function = body_of("{ .reg .pred %r<2>; setp.eq.u32 %r1, %r5, 3; { mov.u32 %r2, 1; @%r1 ret; } } mov.u32 %r1, 3;")
    compare, move, leave, last = instructions(function)
    inner = compare.operands[0]
    assert inner != reg("r1") and leave.guard is not None and leave.guard.register == inner
    assert (compare.operands[1], move.operands[0], last.operands[0]) == (reg("r5"), reg("r2"), reg("r1"))


def test_labels_of_inner_scopes_are_their_own() -> None:
    function = body_of(
        """
        { LOOP: @%p1 bra DONE; bra.uni LOOP; DONE: }
        { LOOP: @%p1 bra DONE; bra.uni LOOP; DONE: bra END; }
        LOOP: bra LOOP;
        END:
        """
    )
    labels = [s.name for s in function.body or () if isinstance(s, ast.Label)]
    targets = [i.operands[0].name for i in instructions(function)]  # type: ignore[union-attr]
    assert len(set(labels)) == 6
    assert targets == [labels[1], labels[0], labels[3], labels[2], "END", "LOOP"]


def test_inner_label_hides_an_outer_one_even_before_it_appears() -> None:
    function = body_of("L: mov.u32 %r1, 1; { bra L; L: } bra L;")
    inner, outer = [i.operands[0].name for i in instructions(function) if i.opcode == "bra"]  # type: ignore[union-attr]
    assert outer == "L" and inner != "L"


def test_call() -> None:
    function = body_of(
        """
        { .param .b64 a; st.param.b64 [a+0], %rd1; .param .b32 r;
          call.uni (r), function, (a); ld.param.b32 %r1, [r+0]; }
        { .param .b64 a; .param .b32 r; p: .callprototype (.param .b32 _) _ (.param .b64 _);
          call (r), %rd2, (a), p; }
        """
    )
    first, second = [i for i in instructions(function) if i.opcode == "call"]
    names = {v.name: v for v in function.variables}
    returns, target, arguments = first.operands
    assert target == ast.Symbol("function")
    assert isinstance(returns, ast.ArgumentList) and isinstance(arguments, ast.ArgumentList)
    (result,), (argument,) = returns.items, arguments.items
    assert isinstance(result, ast.Symbol) and names[result.name].size == 4
    assert isinstance(argument, ast.Symbol) and names[argument.name].size == 8
    assert second.operands[1] == reg("rd2")
    (label,) = second.operands[3:]
    assert isinstance(label, ast.LabelRef)
    prototype = function.prototypes[label.name]
    assert [p.type for p in prototype.returns] == ["b32"] and [p.type for p in prototype.parameters] == ["b64"]


@pytest.mark.parametrize(
    ("text", "returns", "arguments"),
    [("call function;", 0, 0), ("call (%r1), function;", 1, 0), ("call function, (%rd1, 2);", 0, 2)],
)
def test_call_always_has_three_operands(text: str, returns: int, arguments: int) -> None:
    (call,) = instructions(body_of(text))
    assert isinstance(call.operands[0], ast.ArgumentList) and len(call.operands[0].items) == returns
    assert call.operands[1] == ast.Symbol("function")
    assert isinstance(call.operands[2], ast.ArgumentList) and len(call.operands[2].items) == arguments


def test_branch_targets() -> None:
    function = body_of("ts: .branchtargets A, B, A; brx.idx %r1, ts; A: ret; B: ret;")
    assert function.branch_targets == {"ts": ("A", "B", "A")}
    assert instructions(function)[0].operands == (reg("r1"), ast.LabelRef("ts"))
    function = body_of("{ ts: .branchtargets A, B; brx.idx %r1, ts; A: ret; } B: ret;")
    ((name, targets),) = function.branch_targets.items()
    assert instructions(function)[0].operands[1] == ast.LabelRef(name)
    assert targets[1] == "B" and targets[0] == (function.body or [])[1].name  # type: ignore[union-attr]


def test_register_vectors() -> None:
    function = body_of(".reg .v2 .f32 v; ld.global.v2.f32 v, [%rd1]; add.f32 %f1, v.x, v.y;")
    load, add = instructions(function)
    assert load.operands[0] == ast.Vector((ast.Register("v.x"), ast.Register("v.y")))
    assert add.operands[1:] == (ast.Register("v.x"), ast.Register("v.y"))
    assert function.registers["v.y"] == "f32"


def test_parameters_are_laid_out_like_a_structure() -> None:
    module = parse(
        HEADER
        + """.entry k(.param .u8 a, .param .align 8 .b8 b[12], .param .f32 c,
                     .param .u64 .ptr .global .align 4 d, .param .align 16 .b8 e[16]) .maxntid 128, 2, 1
             .minnctapersm 2 .reqntid 64 .pragma "something"; { ret; }"""
    )
    function = module.functions["k"]
    found = [(p.name, p.size, p.align, p.offset, p.is_pointer) for p in function.parameters]
    assert found == [
        ("a", 1, 1, 0, False),
        ("b", 12, 8, 8, False),
        ("c", 4, 4, 20, False),
        ("d", 8, 8, 24, True),
        ("e", 16, 16, 32, False),
    ]
    assert function.directives == {"maxntid": (128, 2, 1), "minnctapersm": (2,), "reqntid": (64,)}
    assert function.is_entry and function.linkage is None


def test_module_header_and_linkage() -> None:
    module = parse(
        ".version 8.5\n.target sm_80, debug\n.address_size 64\n.weak .func f() { ret; }\n.alias g, f;\n"
        ".extern .func h;\n.visible .entry k { ret; }"
    )
    assert (module.version, module.target, module.address_size) == ((8, 5), "sm_80", 64)
    assert module.functions["f"].linkage == "weak" and module.functions["g"] is module.functions["f"]
    assert module.functions["h"].body is None and module.functions["k"].linkage == "visible"


def f32(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


@pytest.mark.parametrize(
    ("text", "space", "size", "align", "initializer"),
    [
        (".global .u32 v;", "global", 4, 4, None),
        (".global .align 16 .b8 v[5];", "global", 5, 16, None),
        (".const .u32 v[2] = {1, -2};", "const", 8, 4, b"\1\0\0\0\xfe\xff\xff\xff"),
        (".global .u16 v[2][3] = {{1, 2}, {3}};", "global", 12, 2, b"\1\0\2\0\0\0\3\0"),
        (".global .u8 v[] = {1, 2, 0x1FF};", "global", 3, 1, b"\1\2\xff"),
        (".global .u8 v[8] = {1 + 2, 1 << 3};", "global", 8, 1, b"\3\10"),
        (".global .f32 v[3] = {0f3F800000, 2, -0.5};", "global", 12, 4, f32(1, 2, -0.5)),
        (".global .f64 v = 1.0;", "global", 8, 8, struct.pack("<d", 1)),
        (".global .v2 .f32 v[2] = {{1.0, 2.0}, {3.0, 4.0}};", "global", 16, 8, f32(1, 2, 3, 4)),
        (".extern .shared .align 16 .b8 v[];", "shared", 0, 16, None),
        (".shared .align 8 .b64 v[2][4];", "shared", 64, 8, None),
        (".visible .global .attribute(.managed) .align 4 .u32 v = 7;", "global", 4, 4, b"\7\0\0\0"),
        (".global .texref v;", "global", 8, 8, None),
        ('.global .b8 v[4] = "abc";', "global", 4, 1, b"abc"),
    ],
)
def test_variable(text: str, space: str, size: int, align: int, initializer: bytes | None) -> None:
    variable = parse(HEADER + text).variables["v"]
    assert (variable.space, variable.size, variable.align) == (space, size, align)
    assert (variable.initializer or b"").rstrip(b"\0") == (initializer or b"").rstrip(b"\0")
    assert (variable.initializer is None) == (initializer is None)
    assert variable.managed == ("managed" in text)


@pytest.mark.parametrize(
    ("text", "relocations"),
    [
        (".global .u64 v = x;", ((0, 8, "x", 0, False),)),
        (".global .u64 v = generic(x)+12;", ((0, 8, "x", 12, True),)),
        (".global .u64 v[3] = {x, 5, generic(x+4)};", ((0, 8, "x", 0, False), (16, 8, "x", 4, True))),
        (".global .u64 v[2] = {x-8, f};", ((0, 8, "x", -8, False), (8, 8, "f", 0, False))),
        (
            ".global .b8 v[10] = {1, 2, " + ", ".join(f"0x{0xFF << 8 * i:X}(generic(x)+4)" for i in range(8)) + "};",
            ((2, 8, "x", 4, True),),
        ),
    ],
)
def test_relocations(text: str, relocations: tuple[tuple[int, int, str, int, bool], ...]) -> None:
    variable = parse(f"{HEADER}.global .b8 x[16]; .func f; {text}").variables["v"]
    assert variable.relocations == relocations
    assert variable.initializer is not None


def test_declaration_then_definition() -> None:
    module = parse(HEADER + ".extern .global .u32 v; .global .u32 v = 3; .func f; .func f { ret; }")
    assert module.variables["v"].initializer == b"\3\0\0\0"
    assert module.functions["f"].body is not None


def test_locations() -> None:
    module = parse(
        HEADER
        + """.entry k() {
            ret;
            .loc 1 8 5
            ret;
            .loc 2 91 5, function_name $L__info_string0, inlined_at 1 8 5
            ret;
            .loc 2 33 7, function_name $L__info_string1, inlined_at 2 91 5
            ret;
            }
            .file 1 "kernel.cu"
            .file 2 "header.h", 123, 456
            .section .debug_str
            {
            $L__info_string0:
            .b8 95,90,52,0
            $L__info_string1:
            .b8 95
            .b8 0x66,0
            }
            .section .debug_info { .b32 $L__x - 4 .b8 { } }"""
    )
    first, second, third, fourth = [i.location for i in instructions(module.functions["k"])]
    assert (first.file, first.line, first.function) == (None, 0, "k")
    assert (second.file, second.line, second.column, second.function) == ("kernel.cu", 8, 5, "k")
    assert second.inlined_at is None
    assert (third.file, third.line, third.function) == ("header.h", 91, "_Z4")
    assert third.inlined_at is not None and third.inlined_at.line == 8
    assert fourth.function == "_f" and fourth.inlined_at is not None
    assert (fourth.inlined_at.file, fourth.inlined_at.line) == ("header.h", 91)
    assert fourth.inlined_at.inlined_at is not None and fourth.inlined_at.inlined_at.file == "kernel.cu"
    assert module.files == {1: "kernel.cu", 2: "header.h"}


def test_text_of_an_instruction_is_one_line() -> None:
    (found,) = instructions(body_of("@%p1 add.s32 \t%r1,\n %r2, 3;"))
    assert found.text == "@%p1 add.s32 %r1, %r2, 3;"


def test_nul_ends_the_text() -> None:
    assert parse(HEADER + ".entry k { ret; }\0garbage {{{").functions.keys() == {"k"}


def test_other_compilers() -> None:
    module = parse(OTHER_COMPILER)
    assert module.target == "sm_90a"
    function = module.functions["add_kernel"]
    assert function.directives == {"reqntid": (128,)}
    assert [p.is_pointer for p in function.parameters] == [True, True, False]
    load = next(i for i in instructions(function) if "v2" in i.modifiers and i.opcode == "ld")
    assert load.guard is not None
    assert load.operands == (ast.Vector((reg("r2"), reg("r3"))), ast.Address(reg("rd7")))
    assert load.location.line == 24 and load.location.file == "add.py"


def test_a_vector_with_a_predicate() -> None:
    """As textures give it: the texel, and whether it is resident."""
    text = "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%f5}];"
    (instruction,) = instructions(body_of(text))
    destination, address = instruction.operands
    assert destination == ast.Pair(ast.Vector((reg("f1"), reg("f2"), reg("f3"), reg("f4"))), reg("p1"))
    assert address == ast.AddressList((reg("rd1"), ast.Vector((reg("f5"),))))
    assert effects(instruction) == Effects(("%f1", "%f2", "%f3", "%f4", "%p1"), ("%rd1", "%f5"))
    with pytest.raises(PtxError, match="is not a vector"):
        body_of("shfl.sync.up.b32 {%r1, %r2}|%p1, %r3, 1, 0, -1;")
