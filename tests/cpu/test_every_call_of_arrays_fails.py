"""The same as in `test_every_call_fails` for arrays: every call that an expression, a sum, a sort or a copy of
`cupola.numpy` makes fails once."""

from __future__ import annotations

import numpy as np
import pytest

import cupola.numpy as cnp
from cupola import Device

from .test_every_call_fails import test_every_call as every_call_fails

pytestmark = pytest.mark.cpu_only


def arrays(dev: Device) -> None:
    x = dev.zeros(16, np.float32, stream=dev.default_stream)
    assert not x.to_numpy().any()


def expressions(dev: Device) -> None:
    x = cnp.arange(64, dtype=np.float32).reshape(8, 8)
    y = (x * 2 + 1).sum(axis=0)
    assert float(cnp.sort(y[::-1])[0]) == 456


@pytest.mark.parametrize("scenario", [arrays, expressions], ids=lambda scenario: scenario.__name__)
def test_every_call_of_arrays(device: Device, scenario) -> None:
    every_call_fails(device, scenario)
