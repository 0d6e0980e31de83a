"""Integer arithmetic (PTX ISA 9.7.1, 9.7.2)."""

INSTRUCTIONS = """
# 9.7.1 Integer Arithmetic
add{.sat}.s32 d, a, b
add.<int>|u16x2|s16x2 d, a, b
add{.sat}.u16x2|s16x2|u32 d, a, b
sub{.sat}.s32 d, a, b
sub.<int> d, a, b
sub{.sat}.u16x2|s16x2|u32 d, a, b
add{.sat}.u8x4|s8x4 d, a, b
sub.u8x4|s8x4 d, a, b
mul.lo|hi.<int> d, a, b
mul.wide.u16|u32|s16|s32 d, a, b
mad.lo|hi.<int> d, a, b, c
mad.wide.u16|u32|s16|s32 d, a, b, c
mad.hi.sat.s32 d, a, b, c
mul24.lo|hi.u32|s32 d, a, b
mad24.lo|hi.u32|s32 d, a, b, c
mad24.hi.sat.s32 d, a, b, c
sad.<int> d, a, b, c
div.<int> d, a, b
rem.<int> d, a, b
abs.<signed> d, a
neg.<signed>|s16x2|s8x4 d, a
min.<int>|u16x2|s16x2|u8x4|s8x4 d, a, b
min.relu.s16x2|s32 d, a, b
max.<int>|u16x2|s16x2|u8x4|s8x4 d, a, b
max.relu.s16x2|s32 d, a, b
popc.b32|b64 d, a
clz.b32|b64 d, a
bfind{.shiftamt}.u32|u64|s32|s64 d, a
fns.b32 d, mask, base, offset
brev.b32|b64 d, a
bfe.u32|u64|s32|s64 d, a, b, c
bfi.b32|b64 d, a, b, position, length
szext.clamp|wrap.u32|s32 d, a, b
bmsk.clamp|wrap.b32 d, a, b
dp4a.u32|s32.u32|s32 d, a, b, c
clmad.lo|hi.u64|s64 d, a, b, c
dp2a.lo|hi.u32|s32.u32|s32 d, a, b, c

# 9.7.2 Extended-Precision Integer Arithmetic
add.cc.u32|s32|u64|s64 d, a, b
addc{.cc}.u32|s32|u64|s64 d, a, b
sub.cc.u32|s32|u64|s64 d, a, b
subc{.cc}.u32|s32|u64|s64 d, a, b
mad.lo|hi.cc.u32|s32|u64|s64 d, a, b, c
madc.lo|hi{.cc}.u32|s32|u64|s64 d, a, b, c
"""
