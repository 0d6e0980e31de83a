"""Debug information: what compilers write, and damaged tables, which are errors and never anything else."""

from __future__ import annotations

import random
import re

import pytest

from cupola import Program, ProgramOptions
from cupola.cpu.compiler.ptx import linker
from cupola.cpu.debugging import dwarf

from .test_session import SOURCE

MORE = """
enum Color { RED, GREEN = 5 };
union Either { int i; float f; };
struct Base { int b; };
struct Node : Base { Node* next; unsigned low : 3; unsigned high : 5; Color color; Either either; char name[8]; };
typedef const volatile unsigned long long Big;
__constant__ double factors[2][3];
__shared__ Node nodes[4];
extern "C" __global__ void types(Node n, Big* p, __grid_constant__ const int last) {
    Node copy = n;
    Node& alias = nodes[threadIdx.x];
    alias = copy;
    *const_cast<unsigned long long*>(p) = copy.low + factors[1][2] + last;
}
"""


@pytest.fixture(scope="module")
def ptx():
    options = ProgramOptions(name="types.cu", arch="sm_90", debug=True)
    return Program(SOURCE + MORE, "c++", options).compile("ptx").code.decode().rstrip("\0")


def test_what_compilers_write(ptx):
    info = dwarf.read(ptx)
    assert {"twice", "walk", "halt", "factorial", "recurse", "types"} <= {f.name for f in info.functions}
    walk = next(f for f in info.functions if f.name == "walk")
    assert [(v.name, v.type.name) for v in walk.variables] == [("x", "float *"), ("n", "int"), ("p", "Point")]
    node = info.types["Node"]
    members = {m.name: (m.type.kind, m.type.name, m.offset, m.bit, m.bits) for m in node.members}
    assert members["next"] == ("pointer", "Node *", 8, 0, 0)
    assert members["low"][-2:] == (0, 3) and members["high"][-2:] == (3, 5)
    assert members["name"][:2] == ("array", "char[8]")
    assert next(m for m in node.members if m.name == "color").type.values == {0: "RED", 5: "GREEN"}
    variables = {v.name: (v.type.name, v.type.size) for v in info.variables}
    assert variables["factors"] == ("double[2][3]", 48) and variables["nodes"][0] == "Node[4]"


def test_linked_modules_keep_the_tables_of_one(ptx):
    other = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry other() { ret; }\n"
    linked = linker.merge([("types", ptx), ("other", other)])
    assert {f.name for f in dwarf.read(linked).functions} == {f.name for f in dwarf.read(ptx).functions}
    again = ptx.replace("types", "types2").replace("walk", "walk2").replace("halt", "halt2").replace("recurse", "rec")
    again = again.replace("factorial", "fac").replace("twice", "twi").replace("table", "tab").replace("factors", "fa")
    both = linker.merge([("types", ptx), ("types2", again.replace("nodes", "nodes2"))])
    assert not dwarf.read(both).functions  # labels of both have the same names


def test_no_tables_are_no_error():
    info = dwarf.read(".version 8.0\n.target sm_50\n")
    assert not info.functions and not info.variables


@pytest.mark.parametrize(
    "text",
    [
        ".section .debug_info {\n.b8 1\n}",
        ".section .debug_info {\n.b32 100\n.b8 4, 0\n.b32 0\n.b8 8\n.b8 1\n}",
        ".section .debug_info {\n.b32 100\n.b8 9, 0\n.b32 0\n.b8 8\n.b8 1\n}",
        ".section .debug_info {\n.b32 12\n.b8 2, 0\n.b32 .debug_abbrev\n.b8 3\n.b8 1\n}\n.section .debug_abbrev {\n}",
        ".section .debug_info {\n.b32 $L-$M\n}",
    ],
)
def test_short_tables(text):
    try:
        dwarf.read(text)
    except dwarf.DwarfError as error:
        assert str(error)


def test_damaged_tables(ptx):
    """Of several hundred damaged ones, each can be read, or is refused."""
    numbers = random.Random(2)
    begin = ptx.index(".section")
    lines = ptx[begin:].split("\n")
    places = [i for i, line in enumerate(lines) if re.match(r"\.b\d", line)]
    refused = 0
    for _ in range(120):
        damaged = list(lines)
        for _ in range(numbers.choice((1, 1, 3, 20))):
            place = numbers.choice(places)
            kind = numbers.randrange(5)
            if kind == 0:
                damaged[place] = f".b8 {numbers.randrange(256)}"
            elif kind == 1:
                damaged[place] = ""
            elif kind == 2:
                damaged[place] = damaged[numbers.choice(places)]
            elif kind == 3:
                damaged[place] = f".b32 {numbers.choice([0, 1, 2**32 - 1, -1])}\n{damaged[place]}"
            else:
                damaged[place] = ".b64 $L__tmp3, nonsense+7"
        try:
            info = dwarf.read(ptx[:begin] + "\n".join(damaged))
            for function in info.functions:
                for scope in function.at(function.range.begin + 1 if function.range else 0):
                    assert all(v.type.name is not None for v in scope.variables)
        except dwarf.DwarfError:
            refused += 1
    assert refused > 10
