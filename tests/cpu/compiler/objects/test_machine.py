"""Machine code is made again and again without memory that stays."""

from __future__ import annotations

import sys

import pytest

from tests import processes

PROGRAM = """
import gc
import sys

from cupola.cpu.compiler.objects import machine

IR = '''define void @f(ptr %p) {{
  %x = load <32 x i32>, ptr %p
  %y = add <32 x i32> %x, splat (i32 {})
  store <32 x i32> %y, ptr %p
  ret void
}}'''


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def make(numbers):
    for number in numbers:
        machine.emit_object(IR.format(number), simply=sys.argv[1] == "simply")


make(range(50))
before = resident()
make(range(50, 550))
print(resident() - before)
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("how", ["simply", "optimized"])
def test_memory_does_not_grow(how: str) -> None:
    """Of passes llvmlite frees nothing: made anew for each kernel, they took 30 kB of each, which is 15 MB here."""
    done = processes.run([sys.executable, "-c", PROGRAM, how], check=True)
    assert int(done.stdout) < 3 << 20
