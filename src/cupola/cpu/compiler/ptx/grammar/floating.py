"""Floating-point arithmetic, and comparison of all types (PTX ISA 9.7.3 to 9.7.7)."""

INSTRUCTIONS = """
# 9.7.3 Floating-Point
testp.finite|infinite|number|notanumber|normal|subnormal.<float> d, a
copysign.<float> d, a, b
add{.<ieee>}{.ftz}{.sat}.f32 d, a, b
add{.<ieee>}{.ftz}.f32x2 d, a, b
add{.<ieee>}.f64 d, a, b
sub{.<ieee>}{.ftz}{.sat}.f32 d, a, b
sub{.<ieee>}{.ftz}.f32x2 d, a, b
sub{.<ieee>}.f64 d, a, b
mul{.<ieee>}{.ftz}{.sat}.f32 d, a, b
mul{.<ieee>}{.ftz}.f32x2 d, a, b
mul{.<ieee>}.f64 d, a, b
fma.<ieee>{.ftz}{.sat}.f32 d, a, b, c
fma.<ieee>{.ftz}.f32x2 d, a, b, c
fma.<ieee>.f64 d, a, b, c
mad{.<ieee>}{.ftz}{.sat}.f32 d, a, b, c
mad.<ieee>.f64 d, a, b, c
div{.approx|full}{.<ieee>}{.ftz}.f32 d, a, b
div{.<ieee>}.f64 d, a, b
abs{.ftz}.f32 d, a
abs.f64 d, a
neg{.ftz}.f32 d, a
neg.f64 d, a
min{.ftz}{.NaN}{.xorsign}{.abs}.f32 d, a, b{, c}
min.f64 d, a, b
max{.ftz}{.NaN}{.xorsign}{.abs}.f32 d, a, b{, c}
max.f64 d, a, b
rcp{.approx}{.<ieee>}{.ftz}.f32 d, a
rcp{.approx}{.<ieee>}{.ftz}.f64 d, a
sqrt{.approx}{.<ieee>}{.ftz}.f32 d, a
sqrt{.<ieee>}.f64 d, a
rsqrt.approx{.ftz}.<float> d, a
sin.approx{.ftz}.f32 d, a
sin.approx.ftz.2pi.f32 d, a
cos.approx{.ftz}.f32 d, a
cos.approx.ftz.2pi.f32 d, a
lg2.approx{.ftz}.f32 d, a
ex2.approx{.ftz}.f32 d, a
tanh.approx.f32 d, a

# 9.7.4 Half Precision Floating-Point
add{.rn}{.ftz}{.sat}.<half> d, a, b
sub{.rn}{.ftz}{.sat}.<half> d, a, b
mul{.rn}{.ftz}{.sat}.<half> d, a, b
fma.rn{.ftz}{.sat}{.relu}.<half> d, a, b, c
fma.rn.oob{.relu}.<half> d, a, b, c
neg{.ftz}.<half> d, a
abs{.ftz}.<half> d, a
min{.ftz}{.NaN}{.xorsign}{.abs}.<half> d, a, b
max{.ftz}{.NaN}{.xorsign}{.abs}.<half> d, a, b
tanh.approx.<half> d, a
ex2.approx{.ftz}.<half> d, a

# 9.7.5 Mixed Precision Floating-Point
add{.<ieee>}{.sat}.f32.f16|bf16 d, a, c
sub{.<ieee>}{.sat}.f32.f16|bf16 d, a, c
fma.<ieee>{.sat}.f32.f16|bf16 d, a, b, c

# 9.7.6 Comparison and Selection
set.<compare>{.ftz}.u32|s32|f32.<type> d, a, b
set.<compare>.<boolean>{.ftz}.u32|s32|f32.<type> d, a, b, c
setp.<compare_int>.<int>|<bits> d|p, a, b
setp.<compare_int>.<boolean>.<int>|<bits> d|p, a, b, c
setp.<compare>{.ftz}.<float> d|p, a, b
setp.<compare>.<boolean>{.ftz}.<float> d|p, a, b, c
selp.<type> d, a, b, c
slct{.ftz}.<type>.s32|f32 d, a, b, c

# 9.7.7 Half Precision Comparison
set.<compare>{.ftz}.<half>|u16|s16|u32|s32.<half> d, a, b
set.<compare>.<boolean>{.ftz}.<half>|u16|s16|u32|s32.<half> d, a, b, c
setp.<compare>{.ftz}.<half> d|p, a, b
setp.<compare>.<boolean>{.ftz}.<half> d|p, a, b, c
"""
