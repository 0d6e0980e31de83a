"""Fifth generation tensor cores (PTX ISA 9.7.16)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.16 TensorCore 5th Generation
tcgen05.alloc{.cta_group::1|cta_group::2}.sync.aligned{.shared::cta}.b32 [a], columns
tcgen05.dealloc{.cta_group::1|cta_group::2}.sync.aligned.b32 a, columns
tcgen05.relinquish_alloc_permit{.cta_group::1|cta_group::2}.sync.aligned
tcgen05.ld.sync.aligned.<tcgen05_shape>.<tcgen05_count>{.pack::16b}.b32 d, [a]{, offset}
tcgen05.ld.red.sync.aligned.<tcgen05_shape>.<tcgen05_count>.min|max{.abs}{.NaN}.f32|u32|s32 d, d1, [a]{, offset}
tcgen05.st.sync.aligned.<tcgen05_shape>.<tcgen05_count>{.unpack::16b}.b32 [a], b{, c}
tcgen05.wait::ld|wait::st.sync.aligned
tcgen05.cp{.cta_group::1|cta_group::2}.128x256b|4x256b|128x128b|64x128b|32x128b{.warpx2::02_13|warpx2::01_23|warpx4}{.b8x16}{.b6x16_p32|b4x16_p64} [a], descriptor
tcgen05.shift{.cta_group::1|cta_group::2}.down [a]
tcgen05.mma{.sp}{.cta_group::1|cta_group::2}.kind::f16|kind::tf32|kind::f8f6f4|kind::i8|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4{.block_scale}{.scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32}{.collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard}{.ashift} [d], a, b, c, *
tcgen05.mma.ws{.sp}{.cta_group::1}.kind::f16|kind::tf32|kind::f8f6f4|kind::i8{.<tcgen05_collector>} [d], a, b, c, *
tcgen05.commit{.cta_group::1|cta_group::2}.mbarrier::arrive::one{.shared::cluster}{.multicast::cluster}.b64 [a]{, mask}
tcgen05.fence::before_thread_sync|fence::after_thread_sync
"""
