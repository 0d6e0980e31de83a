"""Tile kernels, as NVIDIA's tile compiler makes them for cuTile: launched with blocks of one thread."""

from __future__ import annotations

import ctypes
import logging

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, launch, ok, status

pytestmark = pytest.mark.cpu_only  # for GPUs the tile compiler makes machine code, and no PTX

TEXT = """.version 9.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p%s)
.reqntid 64, 2
.minnctapersm 1
%s
{
.reg .b64 %%rd<2>;
.reg .b32 %%r<2>;
ld.param.b64 %%rd1, [p];
atom.global.add.u32 %%r1, [%%rd1], 1;
ret;
}
"""


@pytest.mark.parametrize(
    ("language", "block", "threads"),
    [
        (".language 7", 1, 128),
        (".language 7", (64, 2, 1), 128),
        (".language 7", (2, 1, 1), None),
        (".language 0", 1, None),
        ("", 1, None),
    ],
)
def test_launches_of_one_thread_get_the_kernels_own_block(context, make_stream, memory, language, block, threads):
    module = ok(driver.cuModuleLoadData((TEXT % ("", language)).encode()))
    stream = make_stream()
    function = ok(driver.cuModuleGetFunction(module, b"k"))
    result = launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory)), grid=3, block=block)
    if threads is None:
        assert status(result) == "CUDA_ERROR_INVALID_VALUE" and "requires blocks of (64, 2, 1)" in explanation(result)
    else:
        ok(result)
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 3 * (threads or 0)
    ok(driver.cuModuleUnload(module))


def test_hidden_parameters_are_refused(context, caplog):
    """By an explanation, and on the logger, too, since cuTile raises an error of its own."""
    text = TEXT % (",\n.hidden .param .align 64 .b8 q[128]", ".language 7")
    with caplog.at_level(logging.WARNING, "cupola"):
        result = driver.cuModuleLoadData(text.encode())
    assert status(result) == "CUDA_ERROR_INVALID_PTX"
    assert "hidden parameters" in explanation(result) and "--model a100" in explanation(result)
    assert "allow_tma=False" in caplog.text
