"""Which registers a barrier must save: those that have changed since the last one."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.passes import waits_for_warps

from .small import analysed


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("bar.sync 0;", ["%r1 %r2"]),
        ("bar.sync 0; bar.sync 0;", ["%r1 %r2", ""]),
        ("bar.sync 0; add.s32 %r2, %r2, 1; bar.sync 0;", ["%r1 %r2", "%r2"]),
        ("bar.sync 0; @%p1 add.s32 %r2, %r2, 1; bar.sync 0;", ["%p1 %r1 %r2", "%r2"]),
        ("bar.sync 0; @%p1 bra OVER; add.s32 %r1, %r1, 1; OVER: bar.sync 0;", ["%p1 %r1 %r2", "%r1"]),
        ("LOOP: bar.sync 0; add.s32 %r2, %r2, 1; @%p1 bra LOOP;", ["%p1 %r1 %r2"]),
        ("bar.sync 0; LOOP: bar.sync 0; add.s32 %r2, %r2, 1; @%p1 bra LOOP;", ["%p1 %r1 %r2", "%r2"]),
        ("bar.red.or.pred %p1, 0, %p2; bar.sync 0; @%p1 add.s32 %r2, %r2, 1;", ["%p1 %r1 %r2", "%p1"]),
        ("bar.sync 0; add.s32 %r3, %r1, 1; bar.sync 0; add.s32 %r2, %r2, %r3;", ["%r1 %r2", "%r3"]),
    ],
)
def test_what_is_saved(text: str, saved: list[str]) -> None:
    before = "ld.shared.u32 %r1, [s]; ld.shared.u32 %r2, [s+4];"
    if "%p1" in text and "red" not in text:
        before += "setp.eq.s32 %p1, %r1, 5;"
    after = "st.shared.u32 [s], %r1; st.shared.u32 [s+4], %r2; ret;"
    analysis = analysed(f"{before} {text} {after}")
    barriers = [block for block in analysis.blocks if block.terminator and waits_for_warps(block.terminator)]
    assert [" ".join(sorted(analysis.to_save(block))) for block in barriers] == saved
