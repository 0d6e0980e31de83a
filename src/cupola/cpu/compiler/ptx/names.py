"""The names PTX itself gives meaning to: special registers (PTX ISA 10) and the sizes of types (5.2)."""

from __future__ import annotations

TYPE_BITS = {
    "pred": 1,
    "b8": 8,
    "u8": 8,
    "s8": 8,
    "e4m3": 8,
    "e5m2": 8,
    "b16": 16,
    "u16": 16,
    "s16": 16,
    "f16": 16,
    "bf16": 16,
    "b32": 32,
    "u32": 32,
    "s32": 32,
    "f32": 32,
    "f16x2": 32,
    "bf16x2": 32,
    "tf32": 32,
    "u16x2": 32,
    "s16x2": 32,
    "b64": 64,
    "u64": 64,
    "s64": 64,
    "f64": 64,
    "f32x2": 64,
    "b128": 128,
    "texref": 64,
    "samplerref": 64,
    "surfref": 64,
}
"""Width of every type in bits; the opaque reference types are handles of 64 bits."""


def _words(text: str) -> list[str]:
    return text.split()


# Vectors have the components x, y, z and w.
_VECTORS = _words("tid ntid ctaid nctaid clusterid nclusterid cluster_ctaid cluster_nctaid")
_SCALARS = _words("""
    laneid warpid nwarpid smid nsmid gridid is_explicit_cluster cluster_ctarank cluster_nctarank
    lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt
    clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi
    total_smem_size aggr_smem_size dynamic_smem_size current_graph_exec
    reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap
    reserved_smem_offset_0 reserved_smem_offset_1
""")

SPECIAL_REGISTERS = frozenset(
    [f"%{name}.{part}" for name in _VECTORS for part in "xyzw"]
    + [f"%{name}" for name in _VECTORS]
    + [f"%{name}" for name in _SCALARS]
    + [f"%pm{n}" for n in range(8)]
    + [f"%pm{n}_64" for n in range(8)]
    + [f"%envreg{n}" for n in range(32)]
)
