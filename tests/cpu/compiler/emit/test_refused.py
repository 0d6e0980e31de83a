"""Instructions that the CPU device cannot run are refused when the module is loaded, by name, line and reason."""

from __future__ import annotations

import pytest

# ruff: noqa: E501
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.modules import load_image

PTX = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry kernel()
{{
    .reg .b64 %a, %b, %p;
    .reg .b32 %s, %t, %n;
    .reg .b16 %h;
    .reg .f32 %f<8>;
    .reg .b64 %w<4>;
    .reg .b128 %q;
    {instruction};
    ret;
}}
"""

REFUSED = {
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%s], [%a, {%t}], [%n]": "it takes 2 coord",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%s], [%a], [%n]": "such as [map, {x, y}]",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%s], [%a, {%t, %t, %t, %t, %t}], [%n]": "'.tile::gather4' needs compute capability 10.0",
    "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%a, {%t, %t, %t, %t, %t}], [%s]": "'.tile::scatter4' needs compute capability 10.0",
    "cp.async.bulk.tensor.3d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [%s], [%a, {%t, %t, %t}], [%n], {%h, %h}": "'.im2col::w' needs compute capability 10.0",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::1 [%s], [%a, {%t, %t}], [%n]": "'.cta_group::1' needs compute capability 10.0",
    "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%s], [%a, {%t, %t}], [%n], {%h}": "images have 3 dimensions or more",
    "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%s], [%a, {%t, %t, %t, %t}], [%n], {%h}": "it takes 2 offsets of pixels",
    "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%a], 1": "needs compute capability 10.0",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%a], 5, %t": "a constant from 0 to 4",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%a], 13": "a constant from 0 to 12",
    "tensormap.replace.tile.rank.global.b1024.b32 [%a], 1, %t": "takes 2 operands",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%a], [%s], 64": "128 bytes",
    "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%a], [%s], 16, %h": "compute capability 10.0",
    "ld.shared.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%s]": "256 bits in the state space '.global'",
    "st.v4.b64 [%a], {%w0, %w1, %w2, %w3}": "256 bits in the state space '.global'",
    "ld.global.v8.b64 {%w0, %w1, %w2, %w3, %w0, %w1, %w2, %w3}, [%a]": "256 bits in the state space '.global'",
    "ld.global.v8.f32 {%f0, %f1, %f2, %f3}, [%a]": "it is for 8 values, but names 4",
    "st.bulk.weak.shared::cta [%s], 64, 1": "the last operand must be 0",
    "st.bulk.weak.shared::cluster [%s], 64, 0": "the block's own shared memory",
    "st.async.mmio.release.sys.global.u32 [%a], %t": "compute capability 10.0",
    "cp.async.cg.shared.global [%s], [%a], 8": "it copies 16 bytes",
    "cp.async.ca.shared.global [%s], [%a], 12": "it copies 4 or 8 or 16 bytes",
    "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a]": "an object and coordinates",
    "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a, %b, {%t}]": "independent texture mode",
    "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a+8, {%t}]": "without an offset",
    "tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a, {%t}]": "takes 2 coordinates, not 1",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2}, [%a, {%f4, %f5}]": "it gives 4 values, but names 3",
    "tex.2d.v4.f16x2.f32 {%s, %t, %n, %s}, [%a, {%f4, %f5}]": "come as '.v2'",
    "tex.2d.v4.s16.f32 {%h, %h, %h, %h}, [%a, {%f4, %f5}]": "no results of 16-bit integers",
    "tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a, {%s, %t, %n, %n}]": "multisample arrays",
    "tex.cube.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%a, {%s, %t, %n, %n}]": "directions into a cubemap are floats",
    "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f4, %f5, %f6, %f6}], {1, 1}": "cubemaps take no offsets",
    "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f4, %f5}], {1}": "takes 2 offsets, not 1",
    "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f4, %f5, %f6, %f6}], %f7": "in up to two dimensions",
    "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f4, %f5}], {%f6}, {%f7}": "two gradients of 2 numbers",
    "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%a, {%f4, %f5}], {1, 1}": "it takes a level",
    "txq.width.b32 %t, [%a+4]": "without an offset",
    "suld.b.cube.b32.trap %t, [%a, {%s, %t, %n, %n}]": "are layers, '.a2d'",
    "suld.b.2d.v4.b64.zero {%w0, %w1, %w2, %w3}, [%a, {%s, %t}]": "up to 128 bits",
    "suld.p.2d.b32.zero %t, [%a, {%s, %t}]": "only stores are formatted",
    "sust.b.2d.v2.b32.zero [%a, {%s, %t}], %n": "it is for 2 values, but names 1",
    "sured.b.add.2d.s64.zero [%a, {%s, %t}], %w0": "is not for the type 's64'",
    "sured.p.add.2d.u32.zero [%a, {%s, %t}], %n": "'sured.p.add' is not for the type 'u32'",
    "sured.b.add.a2d.u32.zero [%a, {%s, %t, %n, %n}], %n": "reductions know no layers",
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%s], [%t]": "10.0",
}


@pytest.mark.parametrize("instruction", REFUSED)
def test_refused(instruction: str) -> None:
    with pytest.raises(ImageError) as caught:
        load_image(PTX.format(instruction=instruction).encode())
    text = str(caught.value)
    assert f"unsupported PTX instruction '{instruction.split()[0]}' in kernel 'kernel'" in text
    assert "PTX line 12" in text and REFUSED[instruction] in text


@pytest.mark.parametrize(
    "instruction",
    [
        "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a]",
        "ld.global.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%a]",
        "st.global.v4.b64 [%a], {%w0, %w1, %w2, %w3}",
        "setmaxnreg.inc.sync.aligned.u32 64",
        "discard.global.L2 [%a], 128",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
        "barrier.cluster.arrive.relaxed.aligned",
    ],
)
def test_accepted(instruction: str) -> None:
    assert load_image(PTX.format(instruction=instruction).encode()).kernels[0].name == "kernel"


def test_directives_about_clusters() -> None:
    header = ".visible .entry kernel()\n"
    for directives, expected in {
        ".explicitcluster .reqnctapercluster 2, 3\n": ((2, 3, 1), 0, False),
        ".explicitcluster\n": (None, 0, True),
        ".maxclusterrank 4\n": (None, 4, False),
    }.items():
        text = PTX.format(instruction="bar.sync 0").replace(header, header + directives)
        info = load_image(text.encode()).kernels[0]
        assert (info.required_cluster, info.max_cluster, info.must_have_cluster) == expected
