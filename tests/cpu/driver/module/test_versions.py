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


NEWER = """
import os
from cupola.bindings import driver as d
from cupola.cpu.compiler.images.containers import make_cubin
from tests.cpu.driver.calls import explanation, status
from tests.cpu.fuzz.image_mutation import fat_binary, fat_entry

def ptx(version):
    text = ".version {} .target sm_90 .address_size 64 .visible .entry k() {{ ret; }}"
    return b"// made by hand\\n" + text.format(version).encode()

def fat(*entries):
    return fat_binary(*[fat_entry(kind, data, architecture=number) for kind, number, data in entries])

def loaded(image):
    return status(d.cuModuleLoadData(image + bytes(1)))

assert d.cuInit(0) == (0,)
assert d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1]) == (0,)
newest, newer = os.environ["NEWEST"], os.environ["NEWER"]
cubin = make_cubin(ptx(newer).decode(), 90)
for image, expected in [
    (ptx(newest), "CUDA_SUCCESS"),
    (ptx(newer), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (cubin, "CUDA_SUCCESS"),
    (fat((1, 90, ptx(newest))), "CUDA_SUCCESS"),
    (fat((1, 90, ptx(newer))), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (fat((1, 90, ptx(newer)), (2, 90, cubin)), "CUDA_SUCCESS"),
    (fat((1, 90, ptx(newer)), (2, 80, cubin)), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
]:
    assert loaded(image) == expected, (image, loaded(image))

# A library is compiled when its first kernel is needed.
result, library = d.cuLibraryLoadData(ptx(newer) + bytes(1), None, None, 0, None, None, 0)
assert result == 0
found = d.cuLibraryGetKernel(library, b"k")
assert status(found) == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
print(explanation(found))

linked = d.cuLinkCreate(0, [], [])[1]
kind = d.CUjitInputType
added = d.cuLinkAddData(linked, kind.CU_JIT_INPUT_PTX, ptx(newer), len(ptx(newer)), b"new.ptx", 0, [], [])
assert status(added) == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", added
assert "'new.ptx'" in explanation(added)
assert d.cuLinkAddData(linked, kind.CU_JIT_INPUT_CUBIN, cubin, len(cubin), b"new.cubin", 0, [], []) == (0,)
"""


@pytest.mark.parametrize(
    ("cuda", "newest", "newer"),
    [
        ("", "9.5", "9.6"),
        ("13.0", "9.0", "9.1"),
        ("12.9", "8.8", "9.0"),
        ("12.6", "8.5", "8.6"),
        ("12.0", "8.0", "8.1"),
    ],
)
def test_newer_ptx_is_refused(
    run_python: Callable[..., CompletedProcess[str]], cuda: str, newest: str, newer: str
) -> None:
    done = run_python(
        NEWER, CUPOLA_DEVICE="cpu", CUPOLA_CPU_MODEL="h200", CUPOLA_CPU_CUDA_VERSION=cuda, NEWEST=newest, NEWER=newer
    )
    assert done.returncode == 0, done.stderr
    assert f"the PTX is of version {newer}, but the modelled driver, of CUDA {cuda or '13.5'}" in done.stdout
    assert f"takes PTX up to version {newest}" in done.stdout


OWN = """
import numpy
import cupola.numpy as np
from cupola.bindings import curand

x = np.arange(1000, dtype=np.float32)
made = np.sin(x * 0.37 - 2) ** 3 + np.cosh(x / 701)  # a kernel that did not come with the package
values = numpy.arange(1000, dtype=numpy.float32)
numpy.testing.assert_allclose(
    made.get(), numpy.sin(values * 0.37 - 2) ** 3 + numpy.cosh(values / 701), rtol=1e-3, atol=1e-3
)
generator = curand.create_generator(curand.RngType.PSEUDO_PHILOX4_32_10)
curand.generate_normal(generator, int(made.handle), 1000, 0.0, 1.0)
assert abs(made.get()).max() < 6
"""


def test_kernels_of_the_package_are_of_any_version(run_python: Callable[..., CompletedProcess[str]]) -> None:
    done = run_python(OWN, CUPOLA_DEVICE="cpu", CUPOLA_CPU_CUDA_VERSION="12.0")
    assert done.returncode == 0, done.stderr
