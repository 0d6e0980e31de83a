"""What machine code and the runtime share, as ``engine/abi.h`` lays it out (a test compares the two)."""

from __future__ import annotations

from typing import Final

CONTEXT: Final = {
    "ctaid.x": 0,
    "ctaid.y": 4,
    "ctaid.z": 8,
    "shared_size": 12,
    "ntid.x": 16,
    "ntid.y": 20,
    "ntid.z": 24,
    "dynamic_shared": 28,
    "nctaid.x": 32,
    "nctaid.y": 36,
    "nctaid.z": 40,
    "local_size": 44,
    "grid_id": 48,
    "variables": 56,
    "thread_ids.x": 64,
    "thread_ids.y": 72,
    "thread_ids.z": 80,
    "params": 88,
    "budget": 96,
    "multiprocessor": 100,
    "grid_workspace": 104,
    "clusterid.x": 112,
    "clusterid.y": 116,
    "clusterid.z": 120,
    "cluster_ctarank": 124,
    "nclusterid.x": 128,
    "nclusterid.y": 132,
    "nclusterid.z": 136,
    "cluster_nctarank": 140,
    "cluster_ctaid.x": 144,
    "cluster_ctaid.y": 148,
    "cluster_ctaid.z": 152,
    "is_explicit_cluster": 156,
    "cluster_nctaid.x": 160,
    "cluster_nctaid.y": 164,
    "cluster_nctaid.z": 168,
    "nsmid": 172,
    "units_end": 176,
    "row_end": 184,
    "current_graph": 192,
    "counters": 200,
    "quiet": 208,
}
"""Offsets in ``cpu_context``."""

WARP: Final = {
    "state": 0,
    "first": 4,
    "tid.x": 8,
    "tid.y": 12,
    "tid.z": 16,
    "mask": 20,
    "barrier": 24,
    "expected": 28,
    "votes": 32,
    "agreed": 36,
    "voters": 40,
    "diverged": 44,
    "site": 48,
    "watches": 52,
    "turn": 56,
    "local": 64,
    "frames": 72,
}
"""Offsets in ``cpu_warp``."""

WARP_BYTES: Final = 136
"""Size of a ``cpu_warp``."""

SITE_CACHE_BYTES: Final = 32

DONE, BARRIER, YIELD, INDEPENDENT, WAITING, FAULT, SYNC, CLUSTER, WARPGROUP = range(9)
"""Kinds of ``cpu_state``."""

RESULT_NONE, RESULT_COUNT, RESULT_ALL, RESULT_ANY = range(4)
"""What a lane that waits at a barrier receives (``cpu_result``)."""

SPACES: Final = {"global": 0, "shared": 1, "local": 2, "const": 3, "param": 4, "generic": 5, "cluster": 5}
"""``cpu_space``, and ``CPU_SITE_GENERIC``, which is what the shared memory of a cluster is addressed by."""

SITE_WRITE: Final = 1
SITE_CONTIGUOUS: Final = 2
SITE_FOR_STORES: Final = 4
SITE_STRONG: Final = 8
SITE_UNUSED_SHIFT: Final = 4

MBARRIER_DROP: Final = 1
MBARRIER_NO_COMPLETE: Final = 2
MBARRIER_PARITY: Final = 4
MBARRIER_TOGETHER: Final = 8
MBARRIER_COUNT_BITS: Final = 20

SHARED_WINDOW: Final = 1 << 56
LOCAL_WINDOW: Final = 1 << 57
RANK_SHIFT: Final = 24
CODE_WINDOW: Final = 1 << 58

SIGNATURE: Final = (
    "ptr noalias %context, ptr noalias %{warp}, ptr noalias readonly align 16 dereferenceable({param_bytes}) %params, "
    "ptr noalias align 64 %shared, ptr noalias align 64 %frame, ptr noalias align 32 %sites"
)


def state(kind: int, index: int = 0) -> int:
    """A ``cpu_state`` as a signed i32."""
    return kind << 24 | index


def with_unused(packed: int, other: int) -> int:
    """A site's description with the unused elements of another one's."""
    mask = -1 << 56 + SITE_UNUSED_SHIFT
    return packed & ~mask | other & mask


def pack_site(
    index: int,
    size: int,
    element: int,
    space: str,
    *,
    write: bool,
    contiguous: bool,
    for_stores: bool = False,
    strong: bool = False,
    unused: int = 0,
) -> int:
    """The description of an access site that the helpers take; the last ``unused`` elements are not wanted."""
    flags = write * SITE_WRITE | contiguous * SITE_CONTIGUOUS | for_stores * SITE_FOR_STORES | strong * SITE_STRONG
    flags |= unused << SITE_UNUSED_SHIFT
    return index | size << 32 | element << 40 | SPACES[space] << 48 | flags << 56
