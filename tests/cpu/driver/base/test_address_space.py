"""Processes whose addresses are limited (``ulimit -v``): the error names the limit."""

from __future__ import annotations

import sys

import pytest

from tests import processes

pytestmark = pytest.mark.cpu_only

PROGRAM = """
import resource, sys
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
result = driver.cuInit(0)
if not result[0]:
    result = driver.cuDevicePrimaryCtxRetain(0)
    if not result[0]:
        driver.cuCtxSetCurrent(result[1])
        result = driver.cuMemAlloc(1 << 20)
print(result[0].name, explanation(result))
"""


@pytest.mark.parametrize("limit", [3 << 30, 8 << 30])
def test_the_limit_of_addresses_is_named(limit):
    done = processes.run([sys.executable, "-c", PROGRAM, limit])
    assert done.stdout.startswith("CUDA_ERROR_OUT_OF_MEMORY"), done.stdout + done.stderr
    assert f"`ulimit -v` limits the process to {limit >> 10} KiB of addresses" in done.stdout
