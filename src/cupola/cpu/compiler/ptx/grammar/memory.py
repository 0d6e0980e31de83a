"""Loads, stores and cache control (PTX ISA 9.7.9)."""

# ruff: noqa: E501

INSTRUCTIONS = """
# 9.7.9 Data Movement and Conversion: memory
ld{.mmio}{.weak|volatile|<order>}{.<scope>}{.<space>}{.<cache_ld>}{.<evict1>}{.<evict2>}{.<hint>}{.<prefetch>}{.unified}{.<vector>}.<type> d, [a]{, policy}
ld.global{.ca|cg|cs}{.nc}{.<evict1>}{.<evict2>}{.<hint>}{.<prefetch>}{.<vector>}.<type> d, [a]{, policy}
ldu{.global}{.<vector>}.<type> d, [a]
st{.mmio}{.weak|volatile|<order>}{.<scope>}{.<space>}{.<cache_st>}{.<evict1>}{.<evict2>}{.<hint>}{.<vector>}.<type> [a], b{, policy}
prefetch{.global|local|const|param}{.L1|L2|L2::evict_last|L2::evict_normal|tensormap} [a]
prefetchu.L1 [a]
applypriority{.global}.L2::evict_normal [a], size
discard{.global}.L2 [a], size
createpolicy.fractional.<evict2>|L2::evict_unchanged{.L2::evict_first|L2::evict_unchanged}.b64 d{, fraction}
createpolicy.range{.global}.<evict2>|L2::evict_unchanged{.<evict2>|L2::evict_unchanged}.b64 d, [a], primary, total
createpolicy.cvt.L2.b64 d, a
multimem.ld_reduce{.weak|<order>}{.<scope>}{.global}.min|max|add|and|or|xor{.acc::f32|acc::f16}{.<vector>}.<type>|e4m3|e5m2|e4m3x4|e5m2x4 d, [a]
multimem.st{.weak|<order>}{.<scope>}{.global}{.<vector>}.<type> [a], b
multimem.red{.<order>}{.<scope>}{.global}.min|max|add|and|or|xor{.<vector>}.<type> [a], b

# 9.7.17 Stack Manipulation
stacksave.u32|u64 d
stackrestore.u32|u64 a
alloca.u32|u64 d, size{, alignment}
"""
