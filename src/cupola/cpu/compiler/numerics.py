"""Whether what the ISA calls approximate is to be what the hardware makes of it, or fast."""

from __future__ import annotations

import os

DEFAULT = "exact"


def numerics() -> str:
    """``"exact"`` or ``"fast"``, as CUPOLA_CPU_NUMERICS says; cuInit has refused anything else."""
    return os.environ.get("CUPOLA_CPU_NUMERICS") or DEFAULT


def is_exact() -> bool:
    """Whether the bits of an H200 are wanted."""
    return numerics() == "exact"
