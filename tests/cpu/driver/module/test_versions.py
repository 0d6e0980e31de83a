"""The versions that a function tells: the virtual architecture of its PTX, and the architecture of its machine code."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

pytestmark = pytest.mark.cpu_only

PROGRAM = """
import cupola.cpu
cupola.cpu.use({model!r})
from cupola.bindings import driver as d
from cupola.cpu.compiler.images.containers import make_cubin

ptx = ".version 8.3 .target {target} .address_size 64 .visible .entry k() {{ ret; }}"
assert d.cuInit(0) == (0,)
assert d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1]) == (0,)
status, module = d.cuModuleLoadData(make_cubin(ptx, {cubin}) if {cubin} else ptx.encode() + bytes(1))
assert status == 0, status
function = d.cuModuleGetFunction(module, b"k")[1]
A = d.CUfunction_attribute
print(*(d.cuFuncGetAttribute(getattr(A, "CU_FUNC_ATTRIBUTE_" + n), function)[1] for n in ("PTX_VERSION", "BINARY_VERSION")))
"""  # noqa: E501


@pytest.mark.parametrize(
    ("model", "target", "cubin", "versions"),
    [
        ("h200", "sm_90", 0, "90 90"),
        ("h200", "sm_90a", 0, "90 90"),
        ("h200", "sm_52", 0, "52 90"),  # compiled for the device that loads it
        ("h200", "sm_90", 90, "90 90"),
        ("t4", "sm_70", 0, "70 75"),
        ("t4", "sm_70", 70, "70 70"),  # machine code runs on later devices of its generation
        ("a100", "sm_75", 0, "75 80"),
    ],
)
def test_versions(
    run_python: Callable[..., CompletedProcess[str]], model: str, target: str, cubin: int, versions: str
) -> None:
    done = run_python(PROGRAM.format(model=model, target=target, cubin=cubin))
    assert done.stdout.strip() == versions, done.stdout + done.stderr
