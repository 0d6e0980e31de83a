"""How many blocks of a kernel a multiprocessor of the modeled GPU holds, and what limits that.

The rules are those of ``cpu/driver/module/occupancy.c``; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WARP, PARTITIONS, REGISTER_LOT = 32, 4, 256


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How much of a multiprocessor a kernel can use.

    Attributes
    ----------
    blocks, warps
        That it holds at a time.
    share
        Of the warps that it could hold.
    limits
        How many blocks each of threads, blocks, registers and shared memory would allow.
    limited_by
        Those of them that allow no more than there are.
    """

    blocks: int
    warps: int
    share: float
    limits: dict[str, int]
    limited_by: tuple[str, ...]


def occupancy(model: dict[str, Any], *, threads: int, registers: int, shared: int) -> Occupancy:
    """The occupancy of blocks with so many threads, registers of a thread, and bytes of shared memory."""
    warps = -(-threads // WARP)
    limits = {"threads": model["threads"] // WARP // warps, "blocks": model["blocks"]}
    if registers:
        each = -(-registers * WARP // REGISTER_LOT) * REGISTER_LOT
        fits = each * -(-warps // PARTITIONS) * PARTITIONS <= model["registers_per_block"]
        limits["registers"] = model["registers"] // PARTITIONS // each * PARTITIONS // warps if fits else 0
    lot = 128 if model["major"] >= 8 else 256
    used = -(-(shared + model["shared_reserved"]) // lot) * lot
    if used:
        limits["shared memory"] = model["shared"] // used
    blocks = min(limits.values())
    by = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps * WARP / model["threads"], limits, by)
