"""Which version of PTX and which targets an instruction needs (PTX ISA, "PTX ISA Notes" and "Target ISA Notes").

A row is a pattern and what all instructions need that fit it. Those that fit several rows need what each of them says.
A pattern is written

==============  =====================================================================================================
``min|max``     one of these opcodes; ``*`` any
``.a.b|c``      the modifiers ``a``, and ``b`` or ``c``, wherever they stand; types (``.f32.bf16``) in this order
``.!a``         the modifier ``a`` is missing
``/4``          with at least four operands
==============  =====================================================================================================

Special registers are opcodes (``%clusterid``). After the pattern come the alternatives, of which one must hold: ``7.1:80`` is PTX 7.1 for ``sm_80`` and all that are newer,
``7.1`` alone for any target. ``90a`` is that target in whatever version has it, ``100f`` the targets ``sm_100f`` and
``sm_100a`` with the newer ones of their family.

Nothing is said of what all versions since PTX 6.3 and all targets since sm_75 have. Rows with opcodes and modifiers that
the grammar does not have are there so that an error can say how new they are. The table is taken from what NVIDIA's
assembler says: tests/ptx/needs.txt has its answers, and tools/record_ptx_needs.py asks for them.
"""

from __future__ import annotations

import re
from functools import cache

from cupola.cpu.compiler.ptx.grammar.sets import SETS, TYPES
from cupola.cpu.compiler.records import dataclass

# ruff: noqa: E501
_ROWS = """
# Modifiers of many instructions
ld|st|atom|red|mbarrier|cvta|isspacep|ldmatrix|stmatrix|wmma.shared::cta  7.8
cp.mbarrier.shared::cta                                     7.8:80
*.shared::cluster                                           90
*.L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate  7.4
*.L2::64B|L2::128B                                          7.4
*.L2::256B                                                  7.4:80
*.L2::cache_hint                                            7.4:80
*.b128.!b32.!pred                                           8.3
*.noftz.f32                                                 9.4:90

# Integers
add|min|max.u16x2|s16x2                                     8.0:90
add.sat.u16x2|s16x2|u32                                     9.2:107f 9.2:120f
add|sub|min|max.u8x4|s8x4                                   9.2:107f 9.2:120f
neg.s8x4                                                    9.2:107f 9.2:120f
min|max.relu                                                8.0:90
szext|bmsk                                                  7.6
clmad                                                       9.3:80

# Floating-point numbers
add|sub|mul|fma.f32x2                                       100
add|sub|fma.f32x2.f16x2|bf16x2                              107f
add|sub|mul.f16x2|bf16x2.f32x2                              107f
mul.bf16x2.f16x2                                            107f
mul.f16x2.bf16x2                                            107f
add|sub|fma.f32.f16|bf16                                    100
add|sub|mul.bf16|bf16x2                                     90
fma|abs|neg.bf16|bf16x2                                     80
fma.relu                                                    80
fma.oob                                                     8.1:90
abs.f16|f16x2                                               6.5
min|max.f16|f16x2|bf16|bf16x2                               80
min|max.NaN                                                 80
min|max.xorsign                                             7.2:86
min|max.abs.!xorsign                                        8.8:100
min|max/4                                                   8.8:100
ex2|tanh.f16|f16x2                                          7.0
tanh.f32                                                    7.0
ex2|tanh.bf16|bf16x2                                        90
sin|cos.2pi                                                 9.5
set.u16|s16|u32|s32.f16                                     6.5
set.u32|s32.f16x2                                           6.5
set|setp.bf16|bf16x2                                        90
set.u8x4|s8x4|u16x2|s16x2                                   107f

# Conversions
cvt.f16x2|bf16x2.f32                                        80
cvt.bf16|bf16x2|tf32                                        80
cvt.relu                                                    80
cvt.tf32.rn|rz                                              90
cvt.tf32.satfinite                                          8.1:80
cvt.tf32.satfinite.rn|rz                                    100
cvt.f16.f32.satfinite                                       8.1
cvt.f16x2|bf16|bf16x2.f32.satfinite                         8.1:80
cvt.f32.bf16                                                7.1:80
cvt.bf16.f32.rm|rp                                          90
cvt.bf16.<int>|u8|s8|f16|f64|bf16                           90
cvt.<int>|u8|s8|f16|f64.bf16                                90
cvt.e4m3x2|e5m2x2                                           7.8:90 8.1:89
cvt.e4m3x2|e5m2x2.bf16x2                                    9.1:100f 9.1:110f 9.1:120f
cvt.bf16x2.e4m3x2|e5m2x2                                    9.2:100f 9.2:110f 9.2:120f
cvt.e4m3x2|e5m2x2.rz                                        107f
cvt.e2m1x2|e2m3x2|e3m2x2|ue8m0x2                            100f 110f 120f
cvt.e2m1x2|e2m3x2|e3m2x2.f16x2|bf16x2                       9.1:100f 9.1:110f 9.1:120f
cvt.bf16x2.e2m1x2|e2m3x2|e3m2x2                             9.2:100f 9.2:110f 9.2:120f
cvt.e2m1x2|e2m3x2|e3m2x2.rz                                 107f
cvt.s2f6x2                                                  9.1:100a 9.1:103a 107a 9.1:110a 9.1:120a 9.1:121a
cvt.rs                                                      8.7:100a 103a 107a
cvt.pzo                                                     107f
cvt.ue5m3x2                                                 107f
cvt.scaled::n1::ue8m0                                       107f
cvt.scaled::n2::ue8m0                                       9.1:100f 9.1:110f 9.1:120f
cvt.pack                                                    6.5
lop3/6                                                      8.2

# Addresses
cvta|isspacep.param                                         7.7
cvta|isspacep.param::entry                                  8.3
mapa|getctarank                                             90

# Memory
ld|st.volatile.local                                        9.1
ld|st.cluster                                               90
ld|st.mmio                                                  8.2
ld.mmio.acquire                                             9.3
st.mmio.release.!async                                      9.3
ld.param::entry                                             8.3
ld.unified                                                  8.0:90
ld|st.v8                                                    8.8:100
ld|st.v4.b64|u64|s64|f64                                    8.8:100
ld|st.L2::evict_normal|L2::evict_first|L2::evict_last       8.8:100
ld.proxy::readonly                                          9.4:90
st.async                                                    8.1:90
st.async.release                                            8.7:100
st.bulk                                                     100
prefetch.L2::evict_last|L2::evict_normal                    7.4:80
prefetch.tensormap                                          8.0:90
prefetch.valid_addr                                         9.4:90
applypriority                                               7.4:80
applypriority.async                                         107f
discard|createpolicy                                        7.4:80
multimem                                                    8.1:90
multimem.e4m3|e5m2|e4m3x2|e5m2x2|e4m3x4|e5m2x4              100f 110f 120a 121a
multimem.acc::f16                                           100f 110f 120a 121a
multimem.acc::f32                                           8.2:90
multimem.cp                                                 9.1:90
multimem.async.!cp                                          9.3:100
stacksave|stackrestore|alloca                               7.3
fabric                                                      9.3:100
fabric.commit_group|sync_restrict::read                     9.5:100

# Asynchronous copies
cp                                                          80
cp.L2::64B|L2::128B|L2::256B                                7.4:80
cp.bulk                                                     8.0:90
cp.bulk.shared::cta.!bulk_group.!shared::cluster.!prefetch  8.6:90
cp.cp_mask                                                  100
cp.tile::gather4|im2col::w|im2col::w::128                   100
cp.tile::gather4|im2col::w|im2col::w::128.shared::cluster   100f 110f
cp.tile::gather4|im2col::w|im2col::w::128.prefetch          100f 110f
cp.tile::scatter4                                           100f 110f
cp.cta_group::1|cta_group::2                                100f 110f
cp.ignore_oob                                               9.2:90
cp.weak|relaxed                                             9.3:90
cp.multicast::cluster::16b                                  9.4:90
cp.multicast::cluster::32b                                  107f
cp.bulk.L2::evict_last                                      107f
cp.im2col_no_offs::w                                        107f
cp.override::global_address                                 107f
cp.mbarrier::report::disabled                               107f
cp.mbarrier::report::validity::per_16bytes::8               107f
cp.mbarrier::report::validity::per_16bytes::80000000        107f
cp.sync_restrict::proxy::async                              9.5:90
tensormap.cp_fenceproxy                                     8.3:90
tensormap.replace                                           8.3:90a 100f 110f 120f
tensormap.replace.swizzle_atomicity                         100f 110f 120f
tensormap.alloc_same|alloc_small|alloc_large|query          9.5:90a 9.5:100f 9.5:110f 9.5:120f
spcompress|spdecompress                                     107a

# Textures and surfaces
sured.b64|s64                                               8.1
sured.min|max.u64                                           8.1

# Synchronization
bar|barrier.cta                                             7.8
barrier.cluster                                             90
barrier.cluster.acquire|release|relaxed                     8.0:90
membar|fence.proxy                                          7.5
fence.cluster                                               90
fence.proxy.async|async::generic                            8.0:90
fence.mbarrier_init                                         8.0:90
fence.tensormap::generic                                    8.3:90
fence.acquire|release.!mbarrier_init.!proxy.!alias          8.6:90
fence.sync_restrict::shared::cta|sync_restrict::shared::cluster  8.6:90
fence.proxy.alias.acquire|release.!generic::fabric.!fabric::generic.!fabric::fabric  9.4:90
fence.sync_restrict::shared::cta::read|sync_restrict::shared::cluster::read  9.4:90
fence.generic::fabric|fabric::generic|fabric::fabric        9.3:100
fence.alias.sync_restrict::read                             9.5:90
membar.proxy.async|async::generic                           8.0:90
atom|red.cluster                                            90
atom|red.bf16|bf16x2                                        90
atom|red.v2|v4|v8                                           8.1:90
atom.b128                                                   90
red.async                                                   8.1:90
red.async.release                                           8.7:100
redux                                                       80
redux.f32                                                   100f
elect                                                       8.0:90
griddepcontrol                                              90
setmaxnreg                                                  90a 100f 110f 120f
mbarrier                                                    80
mbarrier.test_wait.parity                                   7.1:80
mbarrier.try_wait                                           90
mbarrier.arrive|arrive_drop.!noComplete.!expect_tx/3        90
mbarrier.expect_tx|complete_tx                              8.0:90
mbarrier.acquire|release|relaxed                            8.0:80
mbarrier.cluster                                            8.0:90
mbarrier.relaxed.arrive|arrive_drop|test_wait|try_wait      8.6:90
mbarrier.phase_type::primary|phase_type::conditional        9.3:90
mbarrier.layout::v0|layout::v1                              9.3:90
mbarrier.multicast::cluster::32b                            107f
clusterlaunchcontrol                                        100
clusterlaunchcontrol.multicast::cluster::all                100f 110f 120f

# Matrices of a warp
wmma.and                                                    7.1:80
wmma.bf16|tf32|f64                                          80
mma                                                         6.4
mma.m16n8k8|m8n8k16|m8n8k32                                 6.5
mma.m8n8k128                                                7.0
mma.m16n8k4|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256  80
mma.bf16|tf32|f64                                           80
mma.f64.m16n8k4|m16n8k8|m16n8k16                            90
mma.and                                                     7.1:80
mma.sp                                                      7.1:80
mma.sp::ordered_metadata                                    8.5:80
mma.e4m3|e5m2.!kind::f8f6f4                                 8.4:89
mma.e4m3|e5m2.m16n8k16                                      8.7:89
mma.f16.e4m3|e5m2.!kind::f8f6f4                             8.7:89
mma.e4m3|e5m2.sp::ordered_metadata                          8.5:89
mma.kind::f8f6f4                                            100f 110f 120f
mma.e2m1|e2m3|e3m2                                          120f
mma.block_scale                                             120f
mma.scale_vec::4X.ue8m0                                     9.1:120f
mma.sp::ordered_metadata.kind::mxf4|kind::mxf4nvf4          120a 121a
ldmatrix                                                    6.5
ldmatrix.m16n16|m8n16.!s8                                   100f 110f 120f
ldmatrix.s8                                                 9.4:90a 9.4:100f 9.4:110f 9.4:120f
stmatrix                                                    90
stmatrix.m16n8                                              100f 110f 120f
movmatrix                                                   7.8

# Matrices of a warpgroup, and tensor memory
wgmma                                                       90a
wgmma.sp                                                    8.2:90a
wgmma.s32.u8.s8                                             8.4:90a
wgmma.s32.s8.u8                                             8.4:90a
tcgen05                                                     100f 110f
tcgen05.red                                                 103f 110f
tcgen05.shift                                               100a 103a 107a 110a
tcgen05.kind::i8                                            100a 110a
tcgen05.scale_vec::1X|scale_vec::2X|scale_vec::4X           100a 103a 107a 110a
tcgen05.scale_vec::4X                                       8.7:100a 103a 107a 110a
tcgen05.kind::mxf4nvf4                                      8.7:100f 110f
tcgen05.sp.kind::mxf4|kind::mxf4nvf4                        100a 103a 107a 110a
tcgen05.block16|block32                                     8.8:100f 8.8:110f
tcgen05.exclusive                                           9.4:100f 9.4:110f
tcgen05.kind::ti16|decompress::lut::b|multicast::cluster::32b|sync_restrict::shared::read::mma::a  107f
tcgen05.collector::b::fill|collector::b::use|collector::b::lastuse|collector::b::discard  107f
tcgen05.spcompress                                          107a

# Special registers
%clusterid|%nclusterid|%cluster_ctaid|%cluster_nctaid|%cluster_ctarank|%cluster_nctarank|%is_explicit_cluster  90
%aggr_smem_size                                             8.1:90
%current_graph_exec                                         8.0
%reserved_smem_offset_begin|%reserved_smem_offset_end|%reserved_smem_offset_cap  7.6:80
%reserved_smem_offset_0|%reserved_smem_offset_1             7.6:80
%locality_domain_id|%locality_domain_supplemental_sm        9.5:100
"""

TARGETS = {
    "sm_75": (6, 3), "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0), "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8), "sm_103": (8, 8),
    "sm_103a": (8, 8), "sm_103f": (8, 8), "sm_107": (9, 4), "sm_107a": (9, 4), "sm_107f": (9, 4), "sm_110": (9, 0),
    "sm_110a": (9, 0), "sm_110f": (9, 0), "sm_120": (8, 7), "sm_120a": (8, 7), "sm_120f": (8, 8), "sm_121": (8, 8),
    "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip
"""The first version of PTX that has a target. Older targets are in all versions since 6.3."""

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Target:
    """What comes after ``.target``: the number of ``sm_90a`` and its letter, if it has one."""

    number: int
    kind: str

    @classmethod
    def of(cls, name: str) -> Target:
        """The target of a name; one that names no architecture has none of what is newer than the oldest."""
        match = re.fullmatch(r"(?:sm|compute)_(\d{2,3})([af]?)", name)
        return cls(int(match[1]), match[2]) if match else cls(10, "")


@dataclass(frozen=True, slots=True)
class Alternative:
    """A version, and targets that have an instruction from then on."""

    version: Version
    target: Target

    def holds(self, version: Version, target: Target) -> bool:
        mine = self.target
        if version < self.version:
            return False
        if mine.kind == "a":
            return target == mine
        if mine.kind == "f":
            return target.kind != "" and target.number // 10 == mine.number // 10 and target.number >= mine.number
        return target.number >= mine.number

    def __str__(self) -> str:
        """``PTX 8.6 and sm_100``."""
        name = f"sm_{self.target.number}"
        first = TARGETS.get(name + self.target.kind.replace("f", "a"), (0, 0))
        major, minor = max(self.version, first)
        return f"PTX {major}.{minor}" + (f" and {name}{self.target.kind}" if self.target.number else "")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the table: each of ``words`` is the modifiers of which one must be there, or must not (``missing``)."""

    words: tuple[frozenset[str], ...]
    missing: frozenset[str]
    least: int
    alternatives: tuple[Alternative, ...]

    def fits(self, modifiers: tuple[str, ...], count: int) -> bool:
        if count < self.least or not self.missing.isdisjoint(modifiers):
            return False
        start = 0
        for word in self.words:
            if not word & TYPES:
                if word.isdisjoint(modifiers):
                    return False
                continue
            place = next((n for n in range(start, len(modifiers)) if modifiers[n] in word), None)
            if place is None:
                return False
            start = place + 1
        return True


@cache
def _rows() -> dict[str, tuple[_Row, ...]]:
    """The rows of each opcode, those of all under ``*``."""
    table: dict[str, list[_Row]] = {}
    for line in _ROWS.splitlines():
        if not line or line[0] == "#":
            continue
        pattern, *alternatives = line.split()
        pattern, _, least = pattern.partition("/")
        opcodes, *words = pattern.split(".")
        row = _Row(
            tuple(_choices(word) for word in words if word[0] != "!"),
            frozenset(word[1:] for word in words if word[0] == "!"),
            int(least or 0),
            tuple(map(alternative, alternatives)),
        )
        for opcode in opcodes.split("|"):
            table.setdefault(opcode, []).append(row)
    return {opcode: tuple(rows) for opcode, rows in table.items()}


def _choices(word: str) -> frozenset[str]:
    choices: set[str] = set()
    for choice in word.split("|"):
        choices |= SETS[choice[1:-1]] if choice[0] == "<" else {choice}
    return frozenset(choices)


def alternative(text: str) -> Alternative:
    """``7.1:80``, ``7.1`` or ``80``."""
    version, _, target = text.rpartition(":") if ":" in text or "." not in text else (text, "", "")
    major, _, minor = (version or "0.0").partition(".")
    return Alternative((int(major), int(minor)), Target.of(f"sm_{target}") if target else Target(0, ""))


def first_version(target: str) -> Version:
    """The first version of PTX that has a target."""
    return TARGETS.get(target, (0, 0))


def unmet(opcode: str, modifiers: tuple[str, ...], count: int, version: Version, target: Target) -> str:
    """What an instruction needs that PTX of a version and for a target does not have: ``needs ...``, or nothing."""
    rows = [
        row
        for row in (*_rows().get(opcode, ()), *_rows()["*"])
        if row.fits(modifiers, count) and not any(each.holds(version, target) for each in row.alternatives)
    ]
    return _describe(rows[-1], count) if rows else ""


def of_unknown(opcode: str, modifiers: tuple[str, ...], count: int, unknown: str) -> str:
    """What an instruction needs that has an opcode or modifier which is not in the grammar, if it is known to be newer.

    ``unknown`` is the modifier, or empty when it is the opcode.
    """
    for row in reversed(_rows().get(opcode, ())):
        if row.fits(modifiers, count) and (not unknown or any(unknown in word for word in row.words)):
            return _describe(row, count)
    return ""


def _describe(row: _Row, count: int) -> str:
    operands = f"with {count} operands " if row.least else ""
    return f"{operands}needs {' or '.join(map(str, row.alternatives))}"
