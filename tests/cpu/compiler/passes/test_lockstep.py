"""The analysis against what really happens: random programs run by lanes together and by each thread alone."""

from __future__ import annotations

import random

import pytest

from cupola.cpu.compiler.passes import analyze, prepare
from cupola.cpu.compiler.ptx import parse

from .lockstep import Together, TooLong, alone

WIDTH = 8
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n)\n{\n"
REGISTERS = [f"%r{n}" for n in range(7)]
PREDICATES = [f"%p{n}" for n in range(3)]


class Program:
    """Random statements; ``structured`` ones are made of if, else, while, break, continue and return."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = [".reg .pred %p<9>;", ".reg .b32 %r<1000>, %count;"]
        self.labels = 0
        self.fresh = 20
        self.visible: list[str] = [*REGISTERS]  # registers that have a value here whatever happened before

    def register(self) -> str:
        return self.random.choice(self.visible[-8:] if self.random.random() < 0.5 else self.visible)

    def new_register(self) -> str:
        self.fresh += 1
        return f"%r{self.fresh}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def source(self) -> str:
        pick = self.random.random()
        if pick < 0.7:
            return self.register()
        return str(self.random.randrange(6)) if pick < 0.9 else self.random.choice(["%tid.x", "%ctaid.x", "%laneid"])

    def defined(self) -> None:
        """Every register and predicate gets a first value; what reading an undefined one gives is open."""
        for register in REGISTERS:
            first = self.random.choice(["0", "1", "3", "%tid.x", "%ctaid.x", "%laneid"])
            self.lines.append(f"mov.b32 {register}, {first};")
        for predicate in PREDICATES:
            self.lines.append(f"setp.lt.u32 {predicate}, {self.random.choice(REGISTERS)}, 3;")

    def simple(self) -> None:
        r = self.random
        guard = f"@{r.choice(['', '!'])}{r.choice(PREDICATES)} " if r.random() < 0.15 else ""
        is_fresh = not guard and r.random() < 0.4
        target = self.new_register() if is_fresh else r.choice(REGISTERS)
        self.lines.append(
            guard
            + r.choice(
                [
                    f"mov.b32 {target}, {self.source()};",
                    f"add.s32 {target}, {self.register()}, {self.source()};",
                    f"sub.s32 {target}, {self.register()}, {self.source()};",
                    f"mul.lo.s32 {target}, {self.register()}, {r.randrange(4)};",
                    f"mad.lo.s32 {target}, {self.register()}, {r.randrange(3)}, {self.register()};",
                    f"shl.b32 {target}, {self.register()}, {r.randrange(3)};",
                    f"and.b32 {target}, {self.register()}, {r.randrange(8)};",
                    f"selp.b32 {target}, {self.register()}, {self.register()}, {r.choice(PREDICATES)};",
                    f"ld.param.u32 {target}, [n];",
                ]
            )
        )
        if is_fresh:
            self.visible.append(target)
        if r.random() < 0.2:
            self.lines.append(f"st.global.u32 [{self.register()}], {self.register()};")

    def condition(self) -> str:
        r = self.random
        predicate = r.choice(PREDICATES)
        compare = r.choice(["eq", "ne", "lt", "le", "gt", "ge"])
        self.lines.append(f"setp.{compare}.u32 {predicate}, {self.register()}, {self.source()};")
        return f"@{r.choice(['', '!'])}{predicate}"

    def statements(self, depth: int, loops: list[tuple[str, str]]) -> None:
        """What is defined in here may not be when it ends, so it is not used behind."""
        visible = len(self.visible)
        for _ in range(self.random.randrange(1, 5)):
            pick = self.random.random()
            if pick < 0.5 or depth == 0:
                self.simple()
            elif pick < 0.7:
                self.branch(depth, loops)
            elif pick < 0.85:
                self.loop(depth, loops)
            elif pick < 0.93 and loops:
                first, behind = self.random.choice(loops)
                self.lines.append(f"{self.condition()} bra {self.random.choice([first, behind])};")
            elif pick < 0.96:
                self.lines.append(f"{self.condition()} ret;")
            elif pick < 0.98:
                self.lines.append("st.global.u32 [%r0], %r1;")
                skip = self.label()
                self.lines += [f"{self.condition()} bra {skip};", "st.global.u32 [%r2], %r3;", "ret;", f"{skip}:"]
            else:
                self.lines.append("bar.sync 0;")
        del self.visible[visible:]

    def branch(self, depth: int, loops: list[tuple[str, str]]) -> None:
        other, behind = self.label(), self.label()
        self.lines.append(f"{self.condition()} bra {other};")
        self.statements(depth - 1, loops)
        self.lines += [f"bra.uni {behind};", f"{other}:"]
        if self.random.random() < 0.6:
            self.statements(depth - 1, loops)
        self.lines.append(f"{behind}:")

    def loop(self, depth: int, loops: list[tuple[str, str]]) -> None:
        """A loop with a counter of its own, so that it ends; how often it runs may depend on the lane."""
        r = self.random
        first, body, behind = self.label(), self.label(), self.label()
        counter = self.new_register()
        limit = r.choice(["3", "4", "%ctaid.x", "limit"])
        self.lines.append(f"mov.b32 {counter}, 0;")
        if limit == "limit":
            limit = self.new_register()
            self.lines.append(f"and.b32 {limit}, {self.register()}, 3;")
        self.lines += [f"{first}:", f"add.u32 {counter}, {counter}, 1;", f"setp.gt.u32 %p5, {counter}, {limit};"]
        self.lines += [f"@%p5 bra {behind};", f"{body}:"]
        self.statements(depth - 1, [*loops, (first, behind)])
        self.lines += [f"bra.uni {first};", f"{behind}:"]

    def structured(self) -> str:
        self.defined()
        self.statements(4, [])
        return self.text()

    def text(self) -> str:
        self.lines += [f"st.global.u32 [{r}], {r};" for r in REGISTERS]
        return HEADER + "\n".join([*self.lines, "ret;", "}"])

    def forward(self) -> str:
        """Blocks with branches to any later block: arms of branches share blocks."""
        r = self.random
        self.defined()
        count = r.randrange(4, 10)
        for block in range(count):
            self.lines.append(f"B{block}:")
            for _ in range(r.randrange(4)):
                self.simple()
            del self.visible[len(REGISTERS) :]
            if r.random() < 0.8 and block < count - 1:
                target = f"B{r.randrange(block + 1, count)}"
                self.lines.append(f"{self.condition()} {'ret' if r.random() < 0.1 else 'bra ' + target};")
            elif r.random() < 0.3:
                self.lines.append("ret;")
        return self.text()

    def tangled(self) -> str:
        """Branches between any blocks, irreducible more often than not; a counter ends it."""
        r = self.random
        self.defined()
        count = r.randrange(3, 8)
        self.lines.append("mov.b32 %count, 0;")
        for block in range(count):
            self.lines.append(f"B{block}:")
            for _ in range(r.randrange(3)):
                self.simple()
            del self.visible[len(REGISTERS) :]
            self.lines += ["add.u32 %count, %count, 1;", "setp.gt.u32 %p5, %count, 25;", "@%p5 ret;"]
            if r.random() < 0.8:
                self.lines.append(f"{self.condition()} bra B{r.randrange(count)};")
            elif r.random() < 0.5:
                self.lines.append(f"bra B{r.randrange(count)};")
        return self.text()


def compare(text: str) -> bool:
    """Whether the program ends soon enough to be compared; the comparison is asserted."""
    module = parse(text)
    function = prepare(module, module.functions["k"])
    analysis = analyze(function, width=WIDTH, x_is_contiguous=True)
    assert [block.index for block in analysis.blocks] == list(range(len(analysis.blocks)))
    try:
        expected = alone(function, WIDTH)
    except TooLong:
        return False
    assert Together(analysis).stored == expected
    return True


@pytest.mark.parametrize("start", range(0, 240, 40))
def test_random_structured_programs(start: int) -> None:
    compared = [compare(Program(seed).structured()) for seed in range(start, start + 40)]
    assert sum(compared) > 30


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_random_tangled_programs(start: int) -> None:
    compared = [compare(Program(seed).tangled()) for seed in range(start, start + 40)]
    assert sum(compared) > 30


@pytest.mark.parametrize("start", range(0, 240, 40))
def test_random_forward_programs(start: int) -> None:
    compared = [compare(Program(seed).forward()) for seed in range(start, start + 40)]
    assert all(compared)
