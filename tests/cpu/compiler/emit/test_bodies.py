"""A body that turns out to be too large for values across blocks is not written to its end in vain."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler import modules
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.objects import machine

STEPS = 200
PTX = (
    """.version 8.0
.target sm_50
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
"""
    + "    fma.rn.f32 %f1, %f1, %f1, %f1;\n" * STEPS
    + "    st.global.f32 [%rd3], %f1;\n    ret;\n}\n"
)


@pytest.fixture
def facts():
    return modules.load_image(PTX.encode()).facts(0, (32, 1, 1))


def test_it_stops_at_the_limit(facts, monkeypatch):
    written = []

    def counted(body, instruction, wrapped=bodies.Body.instruction):
        written.append(body.registers.far)
        wrapped(body, instruction)

    monkeypatch.setattr(bodies.Body, "instruction", counted)
    whole = bodies.emit_body(facts)
    assert written.count(True) == 0
    instructions = len(written)
    written.clear()
    monkeypatch.setattr(machine, "LARGE", whole.ir.count("\n") // 2)
    bodies.emit_body(facts)
    assert written.count(True) == instructions, "the second body, with registers in memory, is whole"
    assert 0 < written.count(False) < instructions, "the first one is not"
