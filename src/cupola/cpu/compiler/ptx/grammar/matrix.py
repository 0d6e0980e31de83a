"""Matrices held by a warp (PTX ISA 9.7.14)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.14 Warp Level Matrix Multiply-Accumulate
wmma.load.a|b|c.sync.aligned.row|col.<wmma_shape>{.global|<shared>}.<wmma_type> d, [a]{, stride}
wmma.store.d.sync.aligned.row|col.<wmma_shape>{.global|<shared>}.f16|f32|s32|f64 [a], b{, stride}
wmma.mma.sync.aligned.row|col.row|col.<wmma_shape>{.rn}.<wmma_type>.<wmma_type>{.satfinite} d, a, b, c
wmma.mma.sync.aligned.row|col.row|col.<wmma_shape>{.<ieee>}.<wmma_type>.<wmma_type>.<wmma_type>.<wmma_type>{.satfinite} d, a, b, c
wmma.mma.xor|and{.popc}.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32{.popc} d, a, b, c
mma.sync.aligned.<mma_shape>.row|col.row|col{.<ieee>}{.satfinite}.<mma_type>.<mma_type>.<mma_type>.<mma_type> d, a, b, c
mma.sync.aligned.<mma_shape>.row.col{.kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4}{.block_scale}{.scale_vec::1X|scale_vec::2X|scale_vec::4X}.<mma_type>.<mma_type>.<mma_type>.<mma_type>{.ue8m0|ue4m3} d, a, b, c{, scale_a}{, select_a}{, scale_b}{, select_b}
mma.sync.aligned.<mma_shape>.row.col{.satfinite}.s32.b1|u4|s4|u8|s8.b1|u4|s4|u8|s8.s32.xor|and{.popc} d, a, b, c
mma.sync.aligned.m8n8k128|m16n8k128|m16n8k256.row.col.s32.b1.b1.s32.xor|and.popc d, a, b, c
mma.sp|sp::ordered_metadata.sync.aligned.<mma_shape>.row.col{.satfinite}{.kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4}{.block_scale}{.scale_vec::1X|scale_vec::2X|scale_vec::4X}.<mma_type>.<mma_type>.<mma_type>.<mma_type>{.ue8m0|ue4m3} d, a, b, c, metadata, selector{, scale_a}{, select_a}{, scale_b}{, select_b}
ldmatrix.sync.aligned.m8n8|m16n16|m8n16.x1|x2|x4{.trans}{.<shared>}.b16|b8 d, [a]
ldmatrix.sync.aligned.m8n16|m16n16.x1|x2|x4{.trans}{.<shared>}.b8x16.b6x16_p32|b4x16_p64 d, [a]
stmatrix.sync.aligned.m8n8|m16n8.x1|x2|x4{.trans}{.<shared>}.b16|b8 [a], b
movmatrix.sync.aligned.m8n8.trans.b16 d, a

# 9.7.15 Asynchronous Warpgroup Level Matrix Multiply-Accumulate
wgmma.mma_async.sync.aligned.<wgmma_shape>{.satfinite}.<mma_type>.<mma_type>.<mma_type>{.and}{.popc} =d, a, b{, scale_d}{, scale_a}{, scale_b}{, transpose_a}{, transpose_b}
wgmma.mma_async.sp.sync.aligned.<wgmma_shape>{.satfinite}.<mma_type>.<mma_type>.<mma_type> =d, a, b, metadata, selector{, scale_d}{, scale_a}{, scale_b}{, transpose_a}{, transpose_b}
wgmma.fence.sync.aligned
wgmma.commit_group.sync.aligned
wgmma.wait_group.sync.aligned count
"""
