#!/usr/bin/env python
"""How long the CPU device takes to compile kernels of growing length, and where that time goes.

    tools/compile_time.py [--kinds straight,branches,memory,loops,barriers] [--lines 500,1000,5000,50000]

Made-up kernels of each kind: arithmetic only, branches that part threads, scattered and contiguous accesses, loops, and
barriers between accesses of shared memory. Times are those of the processor, in seconds; nothing is from the cache
of object code.
"""

from __future__ import annotations

import argparse
import os
import random
import time

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = 40


class Writer:
    """Writes PTX of about so many lines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0

    def register(self) -> str:
        return f"%r{self.random.randrange(1, REGISTERS)}"

    def arithmetic(self, count: int) -> None:
        for _ in range(count):
            a, b, c, d = (self.register() for _ in range(4))
            x, y, z = (f"%f{self.random.randrange(1, REGISTERS)}" for _ in range(3))
            forms = [f"add.u32 {a}, {b}, {c};", f"xor.b32 {a}, {b}, {c};", f"mad.lo.s32 {a}, {b}, {c}, {d};"]
            forms += [f"shl.b32 {a}, {b}, {self.random.randrange(5)};", f"fma.rn.f32 {x}, {y}, {z}, {x};"]
            self.lines.append(self.random.choice(forms))

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def straight(self) -> None:
        self.arithmetic(10)

    def branches(self) -> None:
        other, join = self.label(), self.label()
        self.lines += [f"setp.lt.u32 %p1, {self.register()}, {self.register()};", f"@%p1 bra {other};"]
        self.arithmetic(self.random.randrange(2, 8))
        self.lines += [f"bra {join};", f"{other}:"]
        self.arithmetic(self.random.randrange(2, 8))
        self.lines.append(f"{join}:")

    def memory(self) -> None:
        target, value = self.register(), self.register()
        self.lines += [f"and.b32 %r50, {self.register()}, 255;", "mul.wide.u32 %rd5, %r50, 4;"]
        self.lines += ["add.u64 %rd6, %rd1, %rd5;", f"ld.global.u32 {target}, [%rd6];"]
        self.lines += [f"ld.global.u32 {target}, [%rd4+{4 * self.random.randrange(64)}];"]
        self.lines += [f"st.global.u32 [%rd4], {value};"]
        self.arithmetic(2)

    def loops(self) -> None:
        head = self.label()
        self.lines += ["mov.u32 %r60, 0;", f"{head}:"]
        self.arithmetic(8)
        self.lines += ["add.u32 %r60, %r60, 1;", "setp.lt.u32 %p1, %r60, 9;", f"@%p1 bra {head};"]

    def barriers(self) -> None:
        self.lines += [f"st.shared.u32 [%r51], {self.register()};", "bar.sync 0;"]
        self.lines += [f"ld.shared.u32 {self.register()}, [%r51+{4 * self.random.randrange(8)}];"]
        self.arithmetic(5)


KINDS = ("straight", "branches", "memory", "loops", "barriers")


def kernel(kind: str, lines: int, seed: int = 1) -> str:
    """A kernel ``k(u32 *out, const u32 *in)`` of about so many lines."""
    writer = Writer(seed)
    for index in range(1, REGISTERS):
        source = "mov.u32 %r{0}, %r0;" if index % 3 == 0 else "ld.global.u32 %r{0}, [%rd2+{1}];"
        writer.lines += [source.format(index, 4 * index), f"cvt.rn.f32.u32 %f{index}, %r{index};"]
    while len(writer.lines) < lines - 2 * REGISTERS:
        getattr(writer, kind)()
    for index in range(1, REGISTERS):
        writer.lines += [f"mov.b32 %r70, %f{index};", f"xor.b32 %r{index}, %r{index}, %r70;"]
        writer.lines += [f"xor.b32 %r1, %r1, %r{index};"]
    body = "\n".join(writer.lines)
    return f"""{HEADER}.visible .entry k(.param .u64 out, .param .u64 in) {{
.reg .pred %p<4>; .reg .b32 %r<80>; .reg .f32 %f<80>; .reg .b64 %rd<10>; .shared .align 16 .b8 s[8192];
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r0, %tid.x;
mul.wide.u32 %rd3, %r0, 4; add.u64 %rd4, %rd1, %rd3; shl.b32 %r50, %r0, 2; mov.u32 %r51, s; add.u32 %r51, %r50, %r51;
{body}
st.global.u32 [%rd4], %r1; ret;
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--lines", default="500,1000,2000,5000,10000,25000,50000")
    options = parser.parse_args()
    os.environ["CUPOLA_CPU_CACHE"] = "0"

    from cupola.cpu.compiler import modules
    from cupola.cpu.compiler.emit import bodies
    from cupola.cpu.compiler.objects import machine

    machine.llvm()
    print(f"{'kind':9} {'lines':>6} {'load':>7} {'analyze':>7} {'emit':>7} {'LLVM':>7} {'all':>7} {'a 1000 lines':>12}")
    now = time.process_time
    for kind in options.kinds.split(","):
        for lines in map(int, options.lines.split(",")):
            image = kernel(kind, lines).encode()
            times = [now()]
            loaded = modules.load_image(image)
            times.append(now())
            facts = loaded.facts(0, (64, 1, 1))
            times.append(now())
            code = bodies.emit_body(facts)
            times.append(now())
            machine.emit_object(code.ir)
            times.append(now())
            steps = [after - before for before, after in zip(times, times[1:], strict=False)]
            total = sum(steps)
            figures = " ".join(f"{step:7.3f}" for step in (*steps, total))
            print(f"{kind:9} {lines:6} {figures} {1000 * total / lines:12.3f}", flush=True)


if __name__ == "__main__":
    main()
