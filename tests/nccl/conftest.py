"""What the tests of NCCL have in common."""

from __future__ import annotations

import pytest

from cupola.bindings import nccl
from cupola.pathfinder import DynamicLibNotFoundError


@pytest.fixture(scope="session", autouse=True)
def library() -> None:
    """NCCL: on GPUs NVIDIA's, which a wheel brings."""
    try:
        nccl.ncclGetVersion()
    except DynamicLibNotFoundError as error:
        pytest.skip(f"needs NCCL: pip install nvidia-nccl-cu13 ({error})")
