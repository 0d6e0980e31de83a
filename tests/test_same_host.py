"""Arrays between processes of a machine: offers that nobody claims, and machines where memory cannot be shared.

The rest is tested where it is used, in tests/dask and tests/ray.
"""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("numpy", reason="arrays need NumPy")

import cupola.numpy as np
from cupola import CUDAError, Device, _same_host
from tests import limits

pytestmark = pytest.mark.usefixtures("device")  # a context, which other tests may have taken away


def test_what_nobody_claims_is_let_go_of(monkeypatch):
    """Without another offer behind it."""
    monkeypatch.setattr(_same_host, "UNCLAIMED", 0.04)
    offers = _same_host._Offers()
    offers.offer(np.arange(10.0), 1, False)
    limits.until(lambda: not offers.kept)


@pytest.mark.parametrize(("name", "shared"), [("CUDA_ERROR_NOT_SUPPORTED", False), ("CUDA_ERROR_OUT_OF_MEMORY", True)])
def test_machines_where_memory_cannot_be_shared(monkeypatch, caplog, name, shared):
    """One warning, and arrays go through the host from then on; any other error is one."""

    def refuse(*arguments):
        raise CUDAError("refused", name=name)

    monkeypatch.setattr(_same_host, "_unable", False)
    monkeypatch.setattr(_same_host._Offers, "pool", refuse)
    for call in (lambda: _same_host.pool(Device(0)), lambda: _same_host.offer(np.arange(3.0))):
        if shared:
            with pytest.raises(CUDAError, match="refused"):
                call()
        else:
            with caplog.at_level(logging.WARNING, "cupola"):
                assert call() is None
    assert caplog.text.count("cannot be shared between processes") == (not shared)
