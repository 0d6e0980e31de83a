"""Sets of modifiers that many instructions share."""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPACE = _set("const global local param shared shared::cta shared::cluster param::entry param::func")

SETS: dict[str, frozenset[str]] = {
    # Fundamental types, PTX ISA 5.2.1
    "int": _set("u16 u32 u64 s16 s32 s64"),
    "signed": _set("s16 s32 s64"),
    "bits": _set("b16 b32 b64"),
    "type": _set("b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64"),
    "float": _set("f32 f64"),
    "half": _set("f16 f16x2 bf16 bf16x2"),
    # Alternate and packed formats, PTX ISA 5.2.3
    "converted": _set("u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f64 tf32"),
    "narrow_pair": _set("e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2"),
    "narrow_four": _set("e4m3x4 e5m2x4 e2m1x4 e2m3x4 e3m2x4"),
    "rounding": _set("rn rz rm rp rna rs rni rzi rmi rpi"),
    "ieee": _set("rn rz rm rp"),
    # State spaces, PTX ISA 5.1
    "space": _SPACE,
    "shared": _set("shared shared::cta shared::cluster"),
    "memory": _set("global shared shared::cta shared::cluster"),
    # Memory operations, PTX ISA 8 and 9.7.9
    "vector": _set("v2 v4 v8"),
    "order": _set("relaxed acquire release acq_rel sc"),
    "scope": _set("cta cluster gpu sys"),
    "cache_ld": _set("ca cg cs lu cv"),
    "cache_st": _set("wb cg cs wt"),
    "evict1": _set("L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"),
    "evict2": _set("L2::evict_normal L2::evict_first L2::evict_last"),
    "hint": _set("L2::cache_hint"),
    "prefetch": _set("L2::64B L2::128B L2::256B"),
    # Comparisons, PTX ISA 9.3
    "compare_int": _set("eq ne lt le gt ge lo ls hi hs"),
    "compare": _set("eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"),
    "boolean": _set("and or xor"),
    # Textures, PTX ISA 9.7.10
    "geometry": _set("1d 2d 3d a1d a2d cube acube 2dms a2dms"),
}

SETS |= {
    "texel": _set("u32 s32 f32 f16x2 f16 u16 s16"),
    "surface_type": _set("b8 b16 b32 b64 u32 s32 f32"),
    # Matrices, PTX ISA 9.7.14 to 9.7.16
    "wmma_shape": _set("m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"),
    "wmma_type": _set("f16 bf16 tf32 f32 f64 s32 u8 s8 u4 s4 b1"),
    "mma_shape": _set("m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256"),
    "mma_type": _set("f16 bf16 tf32 f32 f64 s32 u8 s8 u4 s4 b1 e4m3 e5m2 e3m2 e2m3 e2m1"),
    "wgmma_shape": frozenset(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32, 64, 256)),
    "tcgen05_shape": _set("16x64b 16x128b 16x256b 32x32b 16x32bx2"),
    "tcgen05_count": _set("x1 x2 x4 x8 x16 x32 x64 x128"),
    "tcgen05_collector": frozenset(
        f"collector::b{n}::{use}" for n in range(4) for use in ("fill", "use", "lastuse", "discard")
    ),
}

TYPES = frozenset().union(
    *(SETS[name] for name in ("type", "converted", "narrow_pair", "narrow_four")),
    ("ue8m0x2", "s2f6x2", "u16x2", "s16x2", "u8x4", "s8x4", "f32x2"),
)
"""The types of instructions, whose order counts."""
