"""Logic, shifts, moves and conversions between registers (PTX ISA 9.7.8, 9.7.9)."""

INSTRUCTIONS = """
# 9.7.8 Logic and Shift
and.pred|<bits> d, a, b
or.pred|<bits> d, a, b
xor.pred|<bits> d, a, b
not.pred|<bits> d, a
cnot.<bits> d, a
lop3.b32 d, a, b, c, table
lop3.or|and.b32 d|p, a, b, c, table, q
shf.l|r.clamp|wrap.b32 d, a, b, c
shl.<bits> d, a, b
shr.<bits>|<int> d, a, b

# 9.7.9 Data Movement and Conversion: between registers
mov.pred|<type> d, a
prmt.b32 d, a, b, c
prmt.b32.f4e|b4e|rc8|ecl|ecr|rc16 d, a, b, c
cvt{.<rounding>}{.ftz}{.sat}.<converted>.<converted> d, a
cvt{.<rounding>}{.relu}{.satfinite|sat}.<converted>.<converted> d, a{, b}
cvt.rs{.relu}{.satfinite}.f16x2|bf16x2.f32 d, a, b, bits
cvt.rs{.relu}.satfinite.<narrow_four>.f32 d, a, bits
cvt.rn.satfinite{.relu}.<narrow_pair>.f32 d, a, b
cvt.rn.satfinite{.relu}.<narrow_pair>.f16x2|bf16x2 d, a
cvt.rn{.relu}.f16x2.<narrow_pair> d, a
cvt.rn{.relu}{.satfinite}.bf16x2.<narrow_pair>|s2f6x2 d, a
cvt.rn{.relu}{.satfinite}.scaled::n2::ue8m0.bf16x2.<narrow_pair>|s2f6x2 d, a, scale
cvt.rz|rp{.satfinite}.ue8m0x2.f32 d, a, b
cvt.rz|rp{.satfinite}.ue8m0x2.bf16x2 d, a
cvt.rn.bf16x2.ue8m0x2 d, a
cvt.rn.satfinite{.relu}.s2f6x2.f32 d, a, b
cvt.rn.satfinite{.relu}.s2f6x2.bf16x2 d, a
cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.f32 d, a, b, scale
cvt.rn.satfinite{.relu}.scaled::n2::ue8m0.s2f6x2.bf16x2 d, a, scale
cvt{.<rounding>}{.ftz}{.relu}{.satfinite}.<converted>.<converted> d, a
cvt.pack.sat.u16|s16|u8|s8|u4|s4|u2|s2.s32{.b32} d, a, b{, c}
cvta.<space>.u32|u64 d, a
cvta.to.<space>.u32|u64 d, a
isspacep.<space> d, a
mapa{.<shared>}.u32|u64 d, a, b
getctarank{.<shared>}.u32|u64 d, a
"""
