"""Which registers are uniform, affine or varying, in straight code and where lanes part."""

from __future__ import annotations

import pytest

from .small import analysed

START = """
mov.u32 %r1, %tid.x;            // affine 1
mov.u32 %r2, %ctaid.x;          // uniform
ld.global.u32 %r3, [%rd9];      // uniform: rd9 is the kernel's parameter
mov.u32 %r4, %lanemask_lt;      // varying
cvt.u64.u32 %rd1, %r1;
setp.lt.u32 %p1, %r2, 7;        // uniform
setp.lt.u32 %p2, %r1, 7;        // varying
"""


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("mov.u32 %r9, 5;", 0),
        ("mov.u32 %r9, %tid.y;", 0),
        ("mov.u32 %r9, %ntid.x;", 0),
        ("mov.u32 %r9, %laneid;", 1),
        ("mov.u32 %r9, %clock;", 0),
        ("mov.u32 %r9, g;", 0),
        ("add.s32 %r9, %r1, %r2;", 1),
        ("add.s32 %r9, %r1, %r1;", 2),
        ("add.s32 %r9, %r1, %r4;", None),
        ("add.sat.s32 %r9, %r1, %r2;", None),
        ("add.sat.s32 %r9, %r3, %r2;", 0),
        ("sub.s32 %r9, %r2, %r1;", -1),
        ("sub.s32 %r9, %r1, %r1;", None),  # if one of them had wrapped, lanes would differ
        ("add.cc.u32 %r9, %r1, %r2;", 1),
        ("add.cc.u32 %r8, %r1, %r2; addc.u32 %r9, 0, 0;", None),
        ("add.cc.u32 %r8, %r3, %r2; addc.u32 %r9, 0, 0;", 0),
        ("neg.s32 %r9, %r1;", -1),
        ("mul.lo.s32 %r9, %r1, 12;", 12),
        ("mul.lo.s32 %r9, 12, %r1;", 12),
        ("mov.u32 %r8, -4; mul.lo.s32 %r9, %r1, %r8;", -4),
        ("mul.lo.s32 %r9, %r1, %r2;", None),
        ("mul.lo.s32 %r9, %r1, %r1;", None),
        ("mul.hi.s32 %r9, %r1, 12;", None),
        ("mul.hi.s32 %r9, %r2, 12;", 0),
        ("mad.lo.s32 %r9, %r2, %r3, %r1;", 1),
        ("mad.lo.s32 %r9, %r1, 3, %r1;", 4),
        ("mad.lo.s32 %r9, %r1, 3, %r4;", None),
        ("shl.b32 %r9, %r1, 4;", 16),
        ("shl.b32 %r9, %r1, 40;", None),
        ("shl.b32 %r9, %r2, %r1;", None),
        ("shr.u32 %r9, %r1, 4;", None),
        ("and.b32 %r9, %r1, 4;", None),
        ("and.b32 %r9, %r2, 4;", 0),
        # The lane and the warp of a thread.
        ("and.b32 %r9, %r1, 31;", 1),
        ("and.b32 %r9, %r1, 63;", 1),
        ("and.b32 %r9, %r1, 95;", 1),
        ("and.b32 %r9, %r1, 15;", None),
        ("and.b32 %r9, %r1, 48;", None),
        ("and.b32 %r9, %r1, 96;", 0),
        ("and.b32 %r9, %r1, -32;", 0),
        ("and.b32 %r8, %r1, 127; shr.u32 %r9, %r8, 5;", 0),
        ("shr.u32 %r9, %r1, 5;", 0),
        ("shr.s32 %r9, %r1, 6;", 0),
        ("shr.u32 %r9, %r1, 40;", 0),
        ("mov.u32 %r8, 5; shr.u32 %r9, %r1, %r8;", 0),
        ("shr.u32 %r9, %r1, %r2;", None),
        ("mov.u32 %r8, %laneid; shr.u32 %r9, %r8, 5;", 0),
        ("mov.u32 %r8, %ntid.x; mad.lo.s32 %r7, %r2, %r8, %r1; shr.u32 %r9, %r7, 5;", 0),
        ("mad.lo.s32 %r7, %r2, 96, %r1; and.b32 %r9, %r7, 31;", 1),
        ("mad.lo.s32 %r7, %r2, 24, %r1; and.b32 %r9, %r7, 31;", None),
        ("mad.lo.s32 %r7, %r4, 32, %r1; and.b32 %r9, %r7, 31;", None),
        ("shl.b32 %r8, %r2, 1; mul.lo.s32 %r7, %r8, 64; add.s32 %r6, %r1, %r7; shr.u32 %r9, %r6, 5;", 0),
        ("add.s32 %r6, %r1, 1; shr.u32 %r9, %r6, 5;", None),
        ("and.b64 %rd2, %rd1, 31; cvt.u32.u64 %r9, %rd2;", 1),
        ("shr.u64 %rd2, %rd1, 5; cvt.u32.u64 %r9, %rd2;", 0),
        ("mov.u32 %r7, %r1; mov.u32 %r7, %r4; shr.u32 %r9, %r7, 5;", None),
        ("@%p1 mov.u32 %r7, %r1; shr.u32 %r9, %r7, 5;", None),
        ("selp.b32 %r9, %r1, %r1, %p1;", 1),
        ("selp.b32 %r9, %r1, %r2, %p1;", None),
        ("selp.b32 %r9, %r3, %r2, %p2;", None),
        ("selp.b32 %r9, %r3, %r2, %p1;", 0),
        ("@%p1 mov.u32 %r9, 5;", 0),
        ("@%p2 mov.u32 %r9, 5;", None),
        ("mov.u32 %r9, %r1; mov.u32 %r9, 5;", None),
        ("mov.u32 %r9, %r1; add.s32 %r9, %r9, 4;", 1),
        ("ld.param.u32 %r9, [n];", 0),
        ("ld.const.u32 %r9, [c+4];", 0),
        ("ld.global.u32 %r9, [g];", 0),
        ("ld.shared.v2.u32 {%r8, %r9}, [s];", 0),
        ("ld.u32 %r9, [%rd9];", 0),
        ("ld.global.u32 %r9, [%rd1];", None),
        (".local .b8 depot[8]; ld.u32 %r9, [%rd9];", None),
        (".local .b8 depot[8]; ld.global.u32 %r9, [%rd9];", 0),
        (".local .b8 depot[8]; ld.local.u32 %r9, [depot];", None),
        (".local .b8 depot[8]; mov.u32 %r9, depot;", 0),
        ("atom.global.add.u32 %r9, [g], 1;", None),
        ("activemask.b32 %r9;", 0),
        ("vote.sync.ballot.b32 %r9, %p2, -1;", 0),
        ("vote.sync.ballot.b32 %r9, %p2, %r4;", None),
        ("redux.sync.add.s32 %r9, %r4, -1;", 0),
        ("redux.sync.add.s32 %r9, %r4, %r4;", None),
        ("match.any.sync.b32 %r9, %r4, -1;", None),
        ("match.any.sync.b32 %r9, %r2, -1;", 0),
        ("shfl.sync.down.b32 %r9, %r4, 1, 31, -1;", None),
        ("shfl.sync.down.b32 %r9|%p9, %r2, 1, 31, -1;", 0),
        ("shfl.sync.down.b32 _|%p9, %r2, 1, 31, -1; selp.u32 %r9, 1, 0, %p9;", None),
        ("elect.sync %r9|%p9, -1;", 0),
        ("elect.sync _|%p9, -1; selp.u32 %r9, 1, 0, %p9;", None),
        ("bar.red.popc.u32 %r9, 0, %p2;", 0),
        ("cvt.u32.u64 %r9, %rd1;", 1),
        ("cvt.sat.u32.s32 %r9, %r1;", None),
        ("cvt.rzi.u32.f32 %r9, %f1;", 0),
        ("mov.b32 {%rs1, %rs2}, %r2; cvt.u32.u16 %r9, %rs1;", 0),
        ("mov.b32 {%rs1, %rs2}, %r1; cvt.u32.u16 %r9, %rs1;", None),
        ("mov.b32 %r9, {%rs1, %rs1};", 0),
        ("cvt.u16.u32 %rs1, %r1; mov.b32 %r9, {%rs1, %rs1};", None),
        ("add.u32 %r9, %r9, 1;", None),
    ],
)
def test_shape(text: str, shape: int | None) -> None:
    analysis = analysed(f"ld.param.u64 %rd9, [p]; {START} {text} ret;")
    assert "%r9" in analysis.registers
    assert analysis.shape("%r9") == shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("mul.wide.s32 %rd8, %r1, 8;", 8),
        ("mad.wide.u32 %rd8, %r1, 8, %rd9;", 8),
        ("add.s64 %rd8, %rd9, %rd1;", 1),
        ("cvta.to.global.u64 %rd8, %rd1;", 1),
        ("cvt.s64.s32 %rd8, %r1;", 1),
        ("cvt.rn.f64.s32 %rd8, %r1;", None),
        ("mul.lo.u64 %rd8, %rd1, 0x100000000;", None),
    ],
)
def test_shape_of_addresses(text: str, shape: int | None) -> None:
    analysis = analysed(f"ld.param.u64 %rd9, [p]; {START} {text} ret;")
    assert analysis.shape("%rd8") == shape


@pytest.mark.parametrize("name", ["tid.x", "tid.y", "tid.z"])
def test_threads_in_rows_that_a_warp_does_not_fit(name: str) -> None:
    analysis = analysed(f"mov.u32 %r1, %{name}; ret;", x_is_contiguous=False)
    assert analysis.shape("%r1") is None


def test_one_lane_is_always_uniform() -> None:
    analysis = analysed("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; @%p1 bra A; mov.u32 %r2, 1; A: ret;", width=1)
    assert all(analysis.shape(name) == 0 for name in analysis.registers)
    assert all(block.convergent for block in analysis.blocks)


GRID_STRIDE = """
mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; mov.u32 %r3, %nctaid.x; setp.ge.u32 %p1, %r1, %r2; mov.u32 %r8, 0;
@%p1 bra END;
LOOP: mul.wide.s32 %rd1, %r1, 4; add.u32 %r8, %r8, 1; add.u32 %r1, %r1, %r3; setp.lt.u32 %p2, %r1, %r2; @%p2 bra LOOP;
END: {behind} ret;
"""


def test_grid_stride_loop_that_ends_the_kernel() -> None:
    analysis = analysed(GRID_STRIDE.format(behind=""))
    assert analysis.shape("%r1") == 1 and analysis.shape("%rd1") == 4 and analysis.shape("%r8") == 0
    assert all(block.convergent for block in analysis.blocks)


def test_grid_stride_loop_with_something_behind_it() -> None:
    """The index stays affine although lanes leave one by one; only what is used behind the loop varies."""
    analysis = analysed(GRID_STRIDE.format(behind="st.shared.u32 [s], %r8;"))
    assert analysis.shape("%r1") == 1 and analysis.shape("%rd1") == 4
    assert analysis.shape("%r8") is None
    assert [block.convergent for block in analysis.blocks] == [True, False, True]


def regions(text: str) -> tuple[list[bool], dict[str, int | None]]:
    """Which blocks are convergent, in the order of their labels; and the shapes."""
    analysis = analysed(f"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; setp.lt.u32 %p2, %r1, 9; {text}")
    labelled = {block.label: block.convergent for block in analysis.blocks if not block.returns_only}
    return [labelled[name] for name in sorted(labelled) if name in "ABCDEFGHIJ"], analysis.shapes


def test_lanes_meet_at_the_end_of_an_if() -> None:
    convergent, shapes = regions(
        """A: @%p1 bra C; B: mov.u32 %r2, 5; st.shared.u32 [s], %r2; mov.u32 %r3, 6; bra D;
           C: mov.u32 %r3, 7; mov.u32 %r4, 8; D: st.shared.u32 [s], %r3; ret;"""
    )
    assert convergent[-3:] == [False, False, True] or convergent == [False, True]
    assert (shapes["%r2"], shapes["%r3"], shapes["%r4"]) == (0, None, 0)


def test_uniform_branches_spoil_nothing() -> None:
    analysis = analysed(
        """ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 3; mov.u32 %r2, %tid.x; @%p1 bra A; add.u32 %r2, %r2, 1;
           mov.u32 %r3, 4; bra B; A: mov.u32 %r3, 5; B: st.shared.u32 [%r2], %r3; ret;"""
    )
    assert all(block.convergent for block in analysis.blocks)
    assert analysis.shape("%r2") == 1 and analysis.shape("%r3") == 0


def test_arms_that_share_a_block() -> None:
    """B and C go on to D or E, which both may have lanes of either: %r2 is not the same in all of them."""
    convergent, shapes = regions(
        """@%p1 bra C; B: mov.u32 %r2, 5; @%p2 bra D; bra E; C: mov.u32 %r2, 6; @%p2 bra D; bra E;
           D: st.shared.u32 [s], %r2; E: bar.sync 0; F: ret;"""
    )
    assert shapes["%r2"] is None
    assert convergent.count(True) == 1


def test_early_return_leaves_the_rest_together() -> None:
    for exit in ("@%p1 ret;", "@%p1 bra Z;", "@!%p1 bra B; ret; B:"):
        convergent, shapes = regions(f"{exit} mov.u32 %r2, 5; A: st.shared.u32 [s], %r2; Z: ret;")
        assert all(convergent), exit
        assert shapes["%r2"] == 0


def test_lanes_wait_while_a_block_of_the_other_arm_runs() -> None:
    """Z waits for its turn with the old value while V, with lanes of both arms, gives %r3 another one."""
    _, shapes = regions(
        """ld.param.u32 %r2, [n]; setp.lt.u32 %p3, %r2, 3; mov.u32 %r3, 1;
           @!%p1 bra Y; V: mov.u32 %r3, 2; st.shared.u32 [s], %r3; bra J;
           Y: st.shared.u32 [s], %r2; @%p3 bra V;
           Z: st.shared.u32 [s], %r3; J: st.shared.u32 [s], 0; ret;"""
    )
    assert shapes["%r3"] is None


def test_arm_that_ends_its_lanes() -> None:
    analysis = analysed(
        """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; @!%p1 bra C; st.shared.u32 [s], 1; ret;
           C: mov.u32 %r2, 5; st.shared.u32 [s], %r2; bar.sync 0; st.shared.u32 [s], %r2; ret;"""
    )
    assert [block.convergent for block in analysis.blocks] == [True, False, True, True]
    assert analysis.shape("%r2") == 0


def test_continue_waits_for_the_end_of_the_body() -> None:
    """The counter is uniform although some lanes skip a part of the body."""
    analysis = analysed(
        """mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
           HEAD: add.u32 %r2, %r2, 1; setp.gt.u32 %p1, %r2, 9; @%p1 bra OUT;
           add.u32 %r3, %r1, %r2; and.b32 %r4, %r3, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra HEAD;
           st.shared.u32 [s], %r3; bra HEAD;
           OUT: st.shared.u32 [s], %r2; ret;"""
    )
    assert analysis.shape("%r2") == 0 and analysis.shape("%r3") == 1
    (loop,) = analysis.loops
    assert not loop.latch.instructions and loop.latch.successors == [loop.header]
    assert loop.latch.convergent and loop.header.convergent
    assert [block.convergent for block in analysis.blocks].count(False) == 1


def test_values_of_different_iterations() -> None:
    analysis = analysed(
        """mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
           HEAD: add.u32 %r2, %r2, 1; shl.b32 %r3, %r2, 1; setp.lt.u32 %p1, %r2, %r1; @%p1 bra HEAD;
           st.shared.u32 [s], %r3; ret;"""
    )
    assert analysis.shape("%r2") == 0  # wanted in the loop only
    assert analysis.shape("%r3") is None  # wanted behind it


def test_irreducible_control_flow_gives_up() -> None:
    analysis = analysed(
        """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3; mov.u32 %r2, 5; @%p1 bra B;
           A: add.u32 %r3, %r2, 1; st.shared.u32 [s], %r3; B: st.shared.u32 [s], %r2; @%p1 bra A; ret;"""
    )
    assert not analysis.loops and analysis.shape("%r2") is None
    assert [block.convergent for block in analysis.blocks] == [True] + [False] * (len(analysis.blocks) - 1)


def test_loops_that_wait() -> None:
    analysis = analysed(
        """L: ld.acquire.gpu.global.u32 %r1, [g]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;
           M: add.u32 %r2, %r2, 1; ld.global.u32 %r3, [g]; setp.lt.u32 %p2, %r2, %r3; @%p2 bra M; ret;"""
    )
    assert {loop.header.label: loop.waits for loop in analysis.loops} == {"L": True, "M": False}


def test_constants_and_locals() -> None:
    analysis = analysed(
        """mov.u32 %r1, 12; mov.f32 %f1, 0f3F800000; mov.u32 %r2, 1; mov.u32 %r2, 2; @%p1 mov.u32 %r3, 3;
           add.u32 %r4, %r1, %r2; st.shared.u32 [s], %r4; bar.sync 0; st.shared.f32 [s], %f1;
           st.shared.u32 [s], %r3; ret;"""
    )
    assert {name: value.value for name, value in analysis.constants.items()} == {"%r1": 12, "%f1": 0x3F800000}
    assert analysis.local == {"%r1", "%r2", "%r4"}
    assert analysis.live_in(analysis.blocks[1]) == ["%f1", "%r3"]


def test_lanes_in_rows_that_are_no_multiple_of_the_width() -> None:
    text = f"{START} mov.u32 %r8, %ntid.x; mad.lo.s32 %r7, %r2, %r8, %r1; shr.u32 %r9, %r7, 5; ret;"
    assert analysed(text, rows_are_whole=False).shape("%r9") is None
    assert analysed(text, x_is_contiguous=False).shape("%r9") is None
    assert analysed("mov.u32 %r1, %tid.x; shr.u32 %r9, %r1, 4; ret;", width=16).shape("%r9") == 0


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ("ld.global.u32 %r9, [%rd8+4]; add.s32 %r10, %r9, %r2; mul.wide.s32 %rd2, %r10, 4;", {"%r9", "%r10", "%rd2"}),
        ("ld.global.u32 %r9, [%rd9]; add.s32 %r10, %r9, %r1;", set()),  # the same place for all lanes
        ("ld.shared.u32 %r9, [%r4]; setp.lt.u32 %p3, %r9, 7; selp.u32 %r10, %r1, %r4, %p3;", {"%r9"}),
        ("atom.global.add.u32 %r9, [%rd9], 1; shl.b32 %r9, %r9, 2; xor.b32 %r10, %r4, 1;", {"%r9"}),
    ],
)
def test_what_comes_out_of_memory(text: str, loaded: set[str]) -> None:
    found = analysed(START + "ld.param.u64 %rd9, [p]; add.s64 %rd8, %rd9, %rd1;" + text).loaded
    assert found == loaded


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("LOOP: add.s32 %r1, %r1, 512;", "%r1"),
        ("LOOP: add.s32 %r1, %r1, 500;", ""),
        ("LOOP: @%p1 add.s32 %r1, %r1, 512;", ""),
        ("LOOP: mov.u32 %r2, %r1; add.s32 %r1, %r2, 64;", "%r1 %r2"),
        ("mov.u32 %r3, %ntid.x; LOOP: add.s32 %r1, %r1, %r3;", "%r1"),
        ("mov.u32 %r3, 32; LOOP: add.s32 %r3, %r3, 96; add.s32 %r1, %r1, %r3;", "%r1"),
        ("mov.u32 %r3, 32; LOOP: add.s32 %r3, %r3, 97; add.s32 %r1, %r1, %r3;", ""),
        ("LOOP: mov.u32 %r2, %r4; mov.u32 %r4, %r2;", "%r1"),
    ],
)
def test_loops_that_count_in_lines(text: str, lines: str) -> None:
    """Registers that are a multiple of the width plus the lane number, though a loop adds to them."""
    body = f"mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r9, 5; {text} setp.lt.s32 %p2, %r1, 9999; @%p2 bra LOOP; ret;"
    assert " ".join(sorted(analysed(body).warp_lines)) == lines
