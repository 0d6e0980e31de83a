"""Conversions of half precision on a processor that has no instructions for them."""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import pytest

from cupola.cpu.compiler.objects import machine

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors always have the instructions")

IR = """
define void @widen(ptr %from, ptr %to) {
  %half = load half, ptr %from
  %float = fpext half %half to float
  store float %float, ptr %to
  ret void
}
define void @narrow(ptr %from, ptr %to) {
  %float = load float, ptr %from
  %half = fptrunc float %float to half
  store half %half, ptr %to
  ret void
}
"""


@pytest.fixture(scope="module")
def engine():
    llvm = machine.llvm()
    machine.link_half_conversions()
    plain = llvm.Target.from_default_triple().create_target_machine(cpu="x86-64", features="", opt=2, jit=True)
    assert "__truncsfhf2" in plain.emit_assembly(llvm.parse_assembly(IR))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(IR), plain)
    engine.finalize_object()
    return engine


def apply(engine, name: str, values: np.ndarray, dtype: type) -> np.ndarray:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address(name))
    results = np.zeros(len(values), dtype)
    for index in range(len(values)):
        function(values.ctypes.data + index * values.itemsize, results.ctypes.data + index * results.itemsize)
    return results


def test_every_half(engine) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    expected = halves.view(np.float16).astype(np.float32)
    result = apply(engine, "widen", halves, np.float32)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(result.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])
    assert np.isnan(result[nan]).all()


def test_floats(engine) -> None:
    """Ties, their neighbors, and what is too small or too large."""
    rng = np.random.default_rng(0)
    halves = np.arange(0x7C00, dtype=np.uint16)
    ties = (halves.view(np.float16).astype(np.float64) + (halves + 1).view(np.float16).astype(np.float64)) / 2
    ties = ties[np.isfinite(ties)].astype(np.float32)[::7]
    near = [ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))]
    random = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([0, -0.0, 65519.996, 65520, 1e30, np.inf, -np.inf, 2**-25, 2**-26, 1e-40], np.float32)
    floats = np.concatenate([*near, *(-x for x in near), random[~np.isnan(random)], special])
    with np.errstate(over="ignore", under="ignore"):
        expected = floats.astype(np.float16)
    np.testing.assert_array_equal(apply(engine, "narrow", floats, np.uint16), expected.view(np.uint16))


def test_nans_stay_nans(engine) -> None:
    nans = np.array([0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F802000], np.uint32).view(np.float32)
    assert np.isnan(apply(engine, "narrow", nans, np.uint16).view(np.float16)).all()
