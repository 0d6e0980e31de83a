"""Which parameters addresses come from, and which loads of shared memory meet no store."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes.intervals import calm_loads
from cupola.cpu.compiler.passes.pointers import pointers

from .small import analysed

OFFSETS = {"p": 0, "q": 8}
LOAD = "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mul.wide.s32 %rd3, %r1, 4;"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.u32 %r2, [%rd1];", (1, 0, 1, 0)),
        ("add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4]; st.global.u32 [%rd2], %r2;", (1, 0, 1, 0, 1, 1, 8)),
        ("cvta.to.global.u64 %rd4, %rd2; add.s64 %rd4, %rd4, 4; ld.global.u32 %r2, [%rd4+8];", (1, 0, 1, 8)),
        ("selp.b64 %rd4, %rd1, %rd2, %p1; ld.global.u32 %r2, [%rd4];", (1, 0, 2, 0, 8)),
        ("ld.global.u64 %rd4, [%rd1]; ld.global.u32 %r2, [%rd4];", (1, 0, 1, 0)),
        ("ld.global.u64 %rd4, [%rd1]; st.global.u32 [%rd4], %r1;", (0, 0, 1, 0)),
        ("mov.b64 {%r2, %r3}, %rd1; mov.b64 %rd4, {%r2, %r3}; st.global.u32 [%rd4], %r1;", (0,)),
        ("mov.u64 %rd4, s; st.u32 [%rd4], %r1;", (0,)),
        ("st.global.u32 [%rd3], %r1;", (0,)),
        ("st.shared.u32 [s], %r1;", (1,)),
        ("atom.global.add.u32 %r2, [%rd1], %r1;", (1, 1, 1, 0)),
        ("LOOP: ld.global.u32 %r2, [%rd1]; add.s64 %rd1, %rd1, 4; @%p1 bra LOOP;", (1, 0, 1, 0)),
    ],
)
def test_where_addresses_come_from(text: str, expected: tuple[int, ...]) -> None:
    before = "setp.eq.s32 %p1, %r1, 5;" if "%p1" in text else ""
    analysis = analysed(f"{LOAD} {before} {text} ret;")
    code = [instruction for block in analysis.blocks for instruction in block.code()]
    assert pointers(code, OFFSETS.get).flat() == expected


@pytest.mark.parametrize(
    ("text", "calm"),
    [
        ("ld.shared.u32 %r2, [s];", "yes"),
        ("st.shared.u32 [s], %r1; ld.shared.u32 %r2, [s];", "no"),
        ("ld.shared.u32 %r2, [s]; st.shared.u32 [s], %r1;", "no"),
        ("st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s];", "yes"),
        ("st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; st.shared.u32 [s], %r1;", "yes"),
        ("st.shared.u32 [s], %r1; bar.sync 1; ld.shared.u32 %r2, [s];", "no"),
        ("st.shared.u32 [s], %r1; bar.sync 0, 32; ld.shared.u32 %r2, [s];", "no"),
        ("st.shared.u32 [s], %r1; bar.warp.sync -1; ld.shared.u32 %r2, [s];", "no"),
        ("st.shared.u32 [s], %r1; @%p1 bra OVER; bar.sync 0; OVER: ld.shared.u32 %r2, [s];", "no"),
        ("LOOP: st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s]; @%p1 bra LOOP;", "no"),
        ("LOOP: st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; @%p1 bra LOOP;", "yes"),
        ("bar.sync 0; @%p1 bra ELSE; ld.shared.u32 %r2, [s]; bra OUT; ELSE: st.shared.u32 [s], %r1; OUT:", "no"),
        ("st.u32 [%rd1], %r1; ld.shared.u32 %r2, [s];", "yes"),
        ("st.u32 [%rd3], %r1; ld.shared.u32 %r2, [s];", "no"),
        ("cp.async.wait_all; ld.shared.u32 %r2, [s];", "no"),
    ],
)
def test_loads_that_meet_no_store(text: str, calm: str) -> None:
    before = "setp.eq.s32 %p1, %r1, 5;" if "%p1" in text else ""
    analysis = analysed(f"{LOAD} {before} {text} ret;")
    code = [instruction for block in analysis.blocks for instruction in block.code()]
    known = pointers(code, OFFSETS.get).groups
    assert bool(calm_loads(analysis.blocks, known)) is (calm == "yes")
