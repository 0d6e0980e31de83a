"""The instruction set as data: instructions from NVRTC, the PTX ISA's examples and common inline assembly."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.ptx import grammar

KNOWN = """
add.s32 3 | add.sat.s32 3 | add.f32 3 | add.rn.ftz.f32 3 | add.rn.f16x2 3 | add.rn.bf16 3 | add.cc.u32 3
addc.cc.u32 3 | add.u16x2 3 | add.rz.f32x2 3 | mul.wide.u16 3 | mul.rn.f64 3 | mul24.lo.s32 3 | mad.lo.s32 4
mad.hi.cc.u32 4 | madc.hi.u32 4 | fma.rn.relu.bf16x2 4 | fma.rn.f32.f16 4 | div.rn.f32 3 | div.approx.ftz.f32 3
div.full.f32 3 | sqrt.approx.f32 2 | rsqrt.approx.ftz.f64 2 | rcp.rn.f64 2 | rcp.approx.ftz.f64 2
ex2.approx.ftz.f16x2 2 | min.NaN.xorsign.abs.f16 3 | max.f32 4 | min.relu.s32 3 | copysign.f32 3
testp.infinite.f32 2 | tanh.approx.bf16 2 | setp.lt.s32 3 | setp.gtu.and.f64 4 | setp.eq.f16x2 3
set.eq.f16.f16 3 | set.lt.u32.f32 3 | selp.f64 4 | slct.f32.s32 4 | lop3.b32 5 | lop3.or.b32 6
shf.l.wrap.b32 4 | shl.b64 3 | shr.s16 3 | bfe.u32 4 | bfi.b64 5 | bfind.shiftamt.u32 2 | brev.b64 2
popc.b32 2 | clz.b64 2 | fns.b32 4 | prmt.b32 4 | prmt.b32.f4e 4 | szext.clamp.u32 3 | bmsk.clamp.b32 3
dp4a.u32.s32 4 | dp2a.lo.s32.u32 4 | cnot.b32 2 | not.pred 2 | mov.b128 2 | mov.pred 2 | cvt.rn.f32.f64 2
cvt.rzi.s32.f32 2 | cvt.u64.u32 2 | cvt.rn.f16x2.f32 3 | cvt.rna.tf32.f32 2 | cvt.sat.u8.s32 2
cvt.rn.satfinite.e4m3x2.f32 3 | cvt.rn.relu.f16x2.e5m2x2 2 | cvt.rn.bf16.f32 2 | cvt.ftz.f32.f16 2
cvt.rpi.f32.f32 2 | cvt.pack.sat.s16.s32 3 | cvta.to.global.u64 2 | cvta.shared.u64 2
isspacep.shared::cluster 2 | mapa.shared::cluster.u32 3 | ld.global.nc.v4.f32 2 | ld.param.v2.u64 2
ld.volatile.shared.u32 2 | ld.acquire.gpu.global.u32 2 | ld.relaxed.sys.u64 2
ld.global.L1::no_allocate.L2::128B.v4.u32 2 | ld.global.ca.L2::cache_hint.u32 3 | ld.u8 2 | ld.weak.const.b16 2
st.release.gpu.u32 2 | st.global.cs.v2.f64 2 | st.wt.f32 2 | st.volatile.global.u32 2
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 3 | ldu.global.u32 2 | prefetch.global.L2 1
prefetchu.L1 1 | discard.global.L2 2 | createpolicy.fractional.L2::evict_last.b64 2 | bra 1 | bra.uni 1
brx.idx 2 | call.uni 3 | call 4 | ret 0 | ret.uni 0 | exit 0 | trap 0 | brkpt 0 | nanosleep.u32 1 | bar.sync 1
bar.arrive 2 | bar.red.popc.u32 3 | bar.red.and.pred 4 | bar.warp.sync 1 | barrier.sync.aligned 2
barrier.sync 1 | barrier.cluster.arrive.release.aligned 0 | barrier.cluster.wait 0 | membar.gl 0
fence.acq_rel.gpu 0 | fence.sc.sys 0 | fence.proxy.async 0 | fence.proxy.async.shared::cta 0
fence.mbarrier_init.release.cluster 0 | fence.proxy.alias 0 | atom.global.add.f32 3 | atom.add.release.gpu.u32 3
atom.cas.acquire.gpu.b32 4 | atom.global.cas.b128 4 | atom.shared.inc.u32 3 | atom.add.noftz.f16 3
atom.global.v2.f32.add 3 | atom.max.acquire.sys.u64 3 | atom.exch.b128 3 | red.global.add.f64 2
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 3
red.relaxed.gpu.global.add.s32 2 | vote.sync.ballot.b32 3 | vote.all.pred 2 | match.any.sync.b64 3
match.all.sync.b32 3 | activemask.b32 1 | redux.sync.add.s32 3 | redux.sync.min.abs.NaN.f32 3 | elect.sync 2
shfl.sync.down.b32 5 | shfl.idx.b32 4 | griddepcontrol.wait 0 | mbarrier.init.shared.b64 2
mbarrier.arrive.shared::cta.b64 2 | mbarrier.try_wait.shared.b64 3 | mbarrier.inval.b64 1
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 3 | mbarrier.test_wait.parity.shared::cta.b64 3
cp.async.ca.shared.global 3 | cp.async.cg.shared.global.L2::128B 4 | cp.async.commit_group 0
cp.async.wait_group 1 | cp.async.wait_all 0 | cp.async.mbarrier.arrive.noinc.shared.b64 1
cp.async.bulk.commit_group 0 | cp.async.bulk.wait_group.read 1
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes 4
cp.async.bulk.global.shared::cta.bulk_group 3
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes 3
cp.async.bulk.tensor.1d.global.shared::cta.bulk_group 2 | wmma.load.a.sync.aligned.row.m16n16k16.global.f16 3
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 4 | wmma.store.d.sync.aligned.row.m16n16k16.global.f32 3
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 4
mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 4 | ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 2
stmatrix.sync.aligned.m8n8.x2.shared.b16 2 | movmatrix.sync.aligned.m8n8.trans.b16 2
wgmma.fence.sync.aligned 0 | wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 8
wgmma.wait_group.sync.aligned 1 | tex.2d.v4.f32.f32 2 | tex.level.2d.v4.f32.f32 3 | tld4.r.2d.v4.f32.f32 2
suld.b.2d.b32.trap 2 | sust.b.2d.b32.trap 2 | txq.width.b32 2
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 2 | tcgen05.fence::before_thread_sync 0
vadd4.u32.u32.u32 4 | vabsdiff4.u32.u32.u32.add 4 | vset2.s32.u32.ge 4 | vmin.s32.s32.s32 3
setmaxnreg.inc.sync.aligned.u32 1 | stacksave.u64 1 | pmevent 1 | alloca.u64 2
multimem.ld_reduce.relaxed.sys.global.add.v4.f32 2
"""


def split(text: str) -> list[tuple[str, int]]:
    items = [item.split() for line in text.strip().splitlines() for item in line.split("|")]
    return [(name, int(count)) for name, count in items]


@pytest.mark.parametrize(("name", "count"), split(KNOWN))
def test_known(name: str, count: int) -> None:
    opcode, *modifiers = name.split(".")
    form = grammar.form_of(opcode, tuple(modifiers), count)
    assert form is not None, grammar.problem(opcode, tuple(modifiers), count)
    assert form.section.startswith("9.7.")


@pytest.mark.parametrize(
    ("name", "count"),
    split(
        "add 3 | add.s32.s32 3 | add.rn.s32 3 | mul.s32 3 | fma.f32 4 | setp.s32 3 | shl.u32 3 | ld.global 2 |"
        "bar.sync 0 | ret 1 | cvt.f32 2 | mov 2 | atom.add 3 | bra 0 | vote.sync.all.b32 3 | div.approx.f64 3 |"
        "min.s8 3 | shfl.sync.b32 5"
    ),
)
def test_unknown(name: str, count: int) -> None:
    opcode, *modifiers = name.split(".")
    assert grammar.form_of(opcode, tuple(modifiers), count) is None
    assert grammar.problem(opcode, tuple(modifiers), count)


@pytest.mark.parametrize(
    ("name", "count", "written"),
    [
        ("add.s32", 3, "100"),
        ("st.global.u32", 2, "00"),
        ("setp.lt.s32", 3, "100"),
        ("bar.red.popc.u32", 3, "100"),
        ("bar.sync", 1, "0"),
        ("cp.async.ca.shared.global", 3, "000"),
        ("elect.sync", 2, "10"),
        ("red.global.add.u32", 2, "00"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 5, "10000"),
        ("dp4a.u32.u32", 4, "1000"),
        ("discard.global.L2", 2, "00"),
        ("call", 3, "100"),
    ],
)
def test_destinations(name: str, count: int, written: str) -> None:
    opcode, *modifiers = name.split(".")
    form = grammar.form_of(opcode, tuple(modifiers), count)
    assert form is not None
    assert "".join(str(int(kind.written)) for kind in form.operands[:count]) == written


def test_accumulators_are_read_too() -> None:
    form = grammar.form_of("wgmma", ("mma_async", "sync", "aligned", "m64n8k16", "f32", "f16", "f16"), 4)
    assert form is not None and form.operands[0].written and form.operands[0].read


def test_every_line_of_the_tables_is_a_form() -> None:
    for opcode in grammar.opcodes():
        for form in grammar.forms(opcode):
            required = [sorted(group.choices)[0] for group in form.groups if not group.optional]
            assert form.takes(tuple(required)), form.syntax
            assert form.least <= len(form.operands)
            assert form.section
