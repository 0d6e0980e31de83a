"""Kernels of many thousand lines, for which the compiler has ways of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok

THREADS = 64
REGISTERS = 24


def _steps(kind: str, count: int) -> tuple[list[str], Callable[[np.ndarray], np.ndarray]]:
    """PTX on ``%r0`` to ``%r23``, and the same in NumPy on an array with a row for each register."""
    rng = random.Random(kind)
    lines: list[str] = []
    steps: list[Callable[[np.ndarray, np.ndarray], None]] = []

    def arithmetic() -> None:
        a, b, c = (rng.randrange(REGISTERS) for _ in range(3))
        number = rng.randrange(1 << 31)
        lines.append(f"mad.lo.u32 %r{a}, %r{b}, {number}, %r{c};")

        def step(registers: np.ndarray, lanes: np.ndarray) -> None:
            registers[a] = np.where(lanes, registers[b] * np.uint32(number) + registers[c], registers[a])

        steps.append(step)

    def branch(label: int) -> None:
        a, bit, length = rng.randrange(REGISTERS), rng.randrange(16, 32), rng.randrange(1, 5)
        lines.extend([f"and.b32 %r30, %r{a}, {1 << bit};", "setp.eq.u32 %p1, %r30, 0;", f"@%p1 bra L{label};"])
        before = len(steps)
        for _ in range(length):
            arithmetic()
        inner = steps[before:]
        del steps[before:]
        lines.append(f"L{label}:")

        def step(registers: np.ndarray, lanes: np.ndarray) -> None:
            taken = lanes & ((registers[a] & np.uint32(1 << bit)) != 0)
            for each in inner:
                each(registers, taken)

        steps.append(step)

    def exchange() -> None:
        a, b = rng.randrange(REGISTERS), rng.randrange(REGISTERS)
        lines.extend([f"st.shared.u32 [%r29], %r{a};", "bar.sync 0;", f"ld.shared.u32 %r{b}, [%r28];", "bar.sync 0;"])

        def step(registers: np.ndarray, lanes: np.ndarray) -> None:
            registers[b] = np.roll(registers[a], -1)

        steps.append(step)

    while len(lines) < count:
        if kind == "barriers" and rng.random() < 0.2:
            exchange()
        elif kind == "branches" and rng.random() < 0.4:
            branch(len(lines))
        else:
            arithmetic()

    def run(registers: np.ndarray) -> np.ndarray:
        lanes = np.ones(THREADS, bool)
        for step in steps:
            step(registers, lanes)
        return np.bitwise_xor.reduce(registers, axis=0)

    return lines, run


@pytest.mark.parametrize(
    ("kind", "count"), [("arithmetic", 7000), ("branches", 1500), ("branches", 6000), ("barriers", 1500)]
)
def test_large_kernel(kind: str, count: int) -> None:
    lines, expected = _steps(kind, count)
    begin = "\n".join(f"mul.lo.u32 %r{i}, %r31, {2 * i + 1};" for i in range(REGISTERS))
    end = "\n".join(f"xor.b32 %r0, %r0, %r{i};" for i in range(1, REGISTERS))
    body = "\n".join(lines)
    text = f""".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .pred %p<3>; .reg .b32 %r<40>; .reg .b64 %rd<4>; .shared .align 4 .b8 s[{4 * THREADS}];
mov.u32 %r31, %tid.x; mov.u32 %r28, s; shl.b32 %r29, %r31, 2; add.u32 %r29, %r28, %r29;
add.u32 %r30, %r31, 1; rem.u32 %r30, %r30, {THREADS}; mad.lo.u32 %r28, %r30, 4, %r28;
{begin}\n{body}\n{end}
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r31, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r0; ret;
}}\0"""
    Device(0).set_current()
    found = np.zeros(THREADS, np.uint32)
    module = _value(driver.cuModuleLoadData(text.encode()))
    kernel = _value(driver.cuModuleGetFunction(module, b"k"))
    out = _value(driver.cuMemAlloc(found.nbytes))
    ok(driver.cuLaunchKernel(kernel, 1, 1, 1, THREADS, 1, 1, 0, 0, ((out,), (None,)), 0))
    ok(driver.cuMemcpyDtoH(found.ctypes.data, out, found.nbytes))
    ok(driver.cuMemFree(out))
    ok(driver.cuModuleUnload(module))
    threads = np.arange(THREADS, dtype=np.uint32)
    registers = np.stack([threads * np.uint32(2 * i + 1) for i in range(REGISTERS)])
    assert found.tolist() == expected(registers).tolist()


def _value(result):
    ok(result)
    return result[1]
