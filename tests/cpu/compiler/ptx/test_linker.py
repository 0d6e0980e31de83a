"""Linking PTX modules: what their names mean together, what is refused, and that nothing is lost."""

from __future__ import annotations

import random

import pytest

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.ptx.linker import LinkError, merge, undefined_functions

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
USES = ".visible .entry {k}() {{ .reg .b64 %rd<2>; mov.u64 %rd1, {x}; ret; }}\n"
FUNCTION = "{linkage} .func (.param .b32 r) {name}(.param .b32 p) {{ .reg .b32 %r<2>; mov.b32 %r1, {value}; ret; }}\n"
DECLARED = ".extern .func (.param .b32 r) {name}(.param .b32 p);\n"
CALLS = """.visible .entry {k}() {{ .reg .b32 %r<2>; .param .b32 a; .param .b32 b;
    st.param.b32 [a], 1; call (b), {f}, (a); ret; }}
"""


def linked(*bodies: str, **options):
    """The module that comes of bodies of modules, parsed again."""
    return ptx.parse(merge([(f"{chr(97 + n)}.ptx", HEAD + body) for n, body in enumerate(bodies)], **options))


def uses(name: str, kernel: str = "k") -> str:
    return USES.format(k=kernel, x=name)


@pytest.mark.parametrize(
    ("bodies", "name", "size", "first"),
    [
        # a definition and a declaration, in both orders
        ((".extern .global .u32 x;" + uses("x"), ".visible .global .u32 x = 7;"), "x", 4, 7),
        ((".visible .global .u32 x = 7;", ".extern .global .u32 x;" + uses("x")), "x", 4, 7),
        ((".extern .global .b8 x[];" + uses("x"), ".visible .global .b8 x[3] = {9, 1};"), "x", 3, 9),
        # weak gives way, and the first weak one stays
        ((".weak .global .u32 x = 1;", ".visible .global .u32 x = 2;"), "x", 4, 2),
        ((".visible .global .u32 x = 1;", ".weak .global .u32 x = 2;"), "x", 4, 1),
        ((".weak .global .u32 x = 3;", ".weak .global .u32 x = 4;"), "x", 4, 3),
        # common: the largest, unless there is a definition
        ((".common .global .u32 x;", ".common .global .b8 x[12];"), "x", 12, None),
        ((".common .global .b8 x[12];", ".visible .global .b8 x[2] = {5};"), "x", 2, 5),
        ((".weak .global .u32 x = 1;", ".common .global .u32 x;"), "x", 4, None),
        # several variables of one statement, of which one is elsewhere
        ((".visible .const .u32 x = 4, y = 5;", ".weak .const .u32 y = 6;"), "x", 4, 4),
        ((".visible .const .u32 x = 4, y = 5;", ".weak .const .u32 y = 6;"), "y", 4, 5),
    ],
)
def test_variables(bodies, name, size, first):
    variable = linked(*bodies).variables[name]
    assert variable.size == size
    assert (variable.initializer[0] if variable.initializer else None) == first


def value_of(module: ptx.ast.Module, name: str) -> object:
    return module.functions[name].body[0].operands[1].value


@pytest.mark.parametrize(
    ("linkages", "expected"),
    [
        ((".visible", None), 0),
        ((None, ".visible"), 1),
        ((".weak", ".visible"), 1),
        ((".weak", ".weak"), 0),
        ((".visible", ".weak"), 0),
    ],
)
def test_functions(linkages, expected):
    bodies = []
    for n, linkage in enumerate(linkages):
        text = FUNCTION.format(linkage=linkage, name="f", value=n) if linkage else DECLARED.format(name="f")
        bodies.append(text + CALLS.format(k=f"k{n}", f="f"))
    module = linked(*bodies)
    assert value_of(module, "f") == expected and module.functions["k0"].body and module.functions["k1"].body


def test_local_names_are_kept_apart():
    body = ".global .u32 mine = {};\n.global .u32 mine_2;\n.func twin() {{ ret; }}\n"
    kernel = """.visible .entry {}() {{ .reg .b32 %r<2>; ld.global.u32 %r1, [mine]; ld.global.u32 %r1, [ mine + 0 ];
        call twin, (); ret; }}"""
    module = linked(*(body.format(n) + kernel.format(f"k{n}") for n in range(3)))
    assert len([name for name in module.functions if name.startswith("twin")]) == 3
    for n in range(3):
        first, second, call = [s for s in module.functions[f"k{n}"].body if s.opcode in ("ld", "call")]
        name = first.operands[1].base.name
        assert second.operands[1].base.name == name and module.variables[name].initializer == bytes([n, 0, 0, 0])
        assert call.operands[1].name == ("twin" if n == 0 else f"twin_{n + 1}")


def test_a_local_name_gives_way_to_one_of_all():
    module = linked(".global .u32 x = 1;" + uses("x", "k1"), ".visible .global .u32 x = 2;", ".extern .global .u32 x;")
    assert module.variables["x"].initializer[0] == 2 and module.variables["x_2"].initializer[0] == 1
    assert module.functions["k1"].body[0].operands[1].name == "x_2"


def test_initial_values_refer_to_what_was_renamed_or_is_elsewhere():
    module = linked(
        ".global .u32 t = 1;\n.visible .global .u64 p = generic(t);",
        ".global .u32 t = 2;\n.extern .global .u32 far[2];\n.visible .global .u64 q[2] = {t, generic(far)+4};",
        ".visible .global .u32 far[2];",
    )
    assert module.variables["p"].relocations == ((0, 8, "t", 0, True),)
    assert module.variables["q"].relocations == ((0, 8, "t_2", 0, False), (8, 8, "far", 4, True))


def test_dynamic_shared_memory_is_shared_and_most_aligned():
    module = linked(
        ".extern .shared .align 4 .b8 s[];" + uses("s", "k1"), ".extern .shared .align 16 .b8 s[];" + uses("s", "k2")
    )
    assert module.variables["s"].align == 16 and module.variables["s"].size == 0


def test_aliases():
    first = FUNCTION.format(linkage=".visible", name="f", value=3)
    first += ".visible .func (.param .b32 r) g(.param .b32 p);\n.alias g, f;\n"
    module = linked(first, DECLARED.format(name="g") + CALLS.format(k="k", f="g"))
    assert module.functions["g"] is module.functions["f"] and value_of(module, "f") == 3


def test_files_and_lines():
    body = """.visible .entry {k}() {{
.loc 1 {line} 3
.reg .b32 %r<2>;
mov.b32 %r1, 1;
.loc 2 9 1, function_name $L__s0, inlined_at 1 {line} 3
mov.b32 %r1, 2;
ret; }}
.file 1 "{file}", 123, 456
.file 2 "common.h"
.section .debug_str {{ $L__s0: .b8 {letter},0 }}
.section .debug_info {{ .b8 1 }}
"""
    module = linked(
        body.format(k="k1", line=11, file="one.cu", letter=65), body.format(k="k2", line=22, file="two.cu", letter=66)
    )
    assert set(module.files.values()) == {"one.cu", "two.cu", "common.h"} and len(module.files) == 3
    for kernel, file, line, function in (("k1", "one.cu", 11, "A"), ("k2", "two.cu", 22, "B")):
        plain, inlined = (s.location for s in module.functions[kernel].body[:2])
        assert (plain.file, plain.line, plain.column) == (file, line, 3)
        assert (inlined.file, inlined.line, inlined.function) == ("common.h", 9, function)
        assert (inlined.inlined_at.file, inlined.inlined_at.line) == (file, line)


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ((("7.0", "sm_70"), ("8.3", "sm_80")), ((8, 3), "sm_80")),
        ((("8.0", "sm_90a"), ("8.0", "sm_80")), ((8, 0), "sm_90a")),
        ((("8.8", "sm_100f"), ("8.8", "sm_103")), ((8, 8), "sm_103")),
        ((("8.0", "compute_80"), ("8.0", "sm_80, debug")), ((8, 0), "sm_80")),
    ],
)
def test_versions_and_targets(heads, expected):
    texts = [f".version {version}\n.target {target}\n.address_size 64\n" for version, target in heads]
    module = ptx.parse(merge([(str(n), text) for n, text in enumerate(texts)]))
    assert (module.version, module.target) == expected


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ((DECLARED.format(name="f") + CALLS.format(k="k", f="f"), ""), r"undefined reference to 'f' in 'a.ptx'"),
        ((".extern .global .u32 x;" + uses("x"),), r"undefined reference to 'x' in 'a.ptx'"),
        ((DECLARED.format(name="__nv_sinf") + CALLS.format(k="k", f="__nv_sinf"),), "'__nv_sinf' .*libdevice"),
        ((".visible .global .u32 x;",) * 3, r"multiple definitions of 'x': in 'a.ptx', 'b.ptx', 'c.ptx'"),
        ((".entry k() { ret; }",) * 2, r"multiple definitions of 'k': in 'a.ptx', 'b.ptx'"),
        (
            (".extern .func f(.param .b64 p);", FUNCTION.format(linkage=".visible", name="f", value=1)),
            r"'f' has different parameters: in 'a.ptx', and in 'b.ptx'",
        ),
        ((".extern .global .u64 x;", ".visible .global .u32 x;"), r"'x' has different sizes, 8 and 4 bytes"),
        ((".extern .const .u32 x;", ".visible .global .u32 x;"), r"different state spaces, .const and .global"),
        ((".extern .func x();", ".visible .global .u32 x;"), r"a function in one input and a variable"),
        ((".visible .const .b8 x[40000];", ".visible .const .b8 y[40000];"), r"80000 bytes of constants together"),
        (  # everything at once
            (".extern .global .u32 x, y;" + uses("x", "k1") + uses("y", "k2"),),
            r"(?s)reference to 'x' .*reference to 'y'",
        ),
    ],
)
def test_what_is_refused(bodies, message):
    with pytest.raises(LinkError, match=message):
        linked(*bodies)


@pytest.mark.parametrize(
    ("heads", "options", "message"),
    [
        (("sm_90a", "sm_100"), {}, "'0' is for sm_90a only, the link for sm_100"),
        (("sm_100f", "sm_120"), {}, "'0' is for sm_100f only"),
        (("sm_80", "sm_90"), {"architecture": 80}, "'1' is for sm_90, the link for sm_80"),
        (("sm_80, texmode_unified", "sm_80, texmode_independent"), {}, "textures have different modes"),
    ],
)
def test_targets_that_do_not_fit(heads, options, message):
    texts = [f".version 8.8\n.target {target}\n.address_size 64\n" for target in heads]
    with pytest.raises(LinkError, match=message):
        merge([(str(n), text) for n, text in enumerate(texts)], **options)


def test_sizes_of_addresses_must_agree():
    with pytest.raises(LinkError, match="different sizes: 'a' of 32 bits, 'b' of 64 bits"):
        merge([("a", HEAD.replace("64", "32")), ("b", HEAD)])


def test_functions_of_the_system_and_unused_declarations_need_no_definition():
    text = DECLARED.format(name="vprintf") + CALLS.format(k="k", f="vprintf") + ".extern .func idle();"
    module = linked(text, text.replace(" k(", " k2("), provided={"vprintf"})
    assert module.functions["vprintf"].body is None and "idle" not in module.functions


def test_a_keeper_makes_functions_visible():
    keeper = FUNCTION.format(linkage="", name="f", value=3) + uses("f", "keep")
    other = DECLARED.format(name="f") + CALLS.format(k="k", f="f")
    assert undefined_functions([HEAD + other]) == ["f"]
    module = linked(other, keeper, keeper="keep")
    assert value_of(module, "f") == 3 and "keep" not in module.functions


def test_bad_text_is_refused():
    with pytest.raises(ptx.PtxSyntaxError, match="PTX line 4"):
        linked("bogus;")


WORDS = """
.global .const .shared .u32 .b8 .align 4 x y f k = { } ( ) [ ] ; , 1 generic .visible .extern .weak .common .func .entry
.alias .file .section .debug_str .pragma .attribute .managed .param .noreturn "a.cu" : ret .loc .reg .b64 %rd1 mov.u64
"""
PIECES = """.visible .global .u32 x = 1 ;
.func f ( ) { ret ; }
.entry k ( ) { ret ; }
.extern .func f ( ) ;
.file 1 "a.cu"
.section .debug_str { l : .b8 1 , 2 }
.alias y , f ;
.global .u32 x , y [ 2 ] = { 1 } ;"""


def test_whatever_is_linked_is_refused_or_can_be_parsed():
    """Words of modules, shuffled: what the parser takes, the linker takes apart without another error."""
    generator = random.Random(3)
    good = 0
    for _ in range(3000):
        texts = []
        for _ in range(2):
            chosen = " ".join(generator.choices(PIECES.splitlines(), k=generator.randrange(1, 5))).split()
            for _ in range(generator.randrange(3)):
                chosen[generator.randrange(len(chosen))] = generator.choice(WORDS.split())
            texts.append(HEAD + " ".join(chosen))
        try:
            ptx.parse(merge([("a", texts[0]), ("b", texts[1])]))
            good += 1
        except ptx.PtxError:
            continue
    assert good > 100
