"""Texture and surface references: what they are bound to, what is set of them, and kernels that use them.

CUDA C++ has none since CUDA 12; PTX still does.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, launch, ok, status
from tests.cpu.driver.texture.arrays import FORMAT, SURFACE, descriptor, numbers, read, write

BAD, MISSING, HANDLE = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_INVALID_HANDLE"
WRAP, CLAMP, MIRROR, BORDER = driver.CUaddress_mode
POINT, LINEAR = driver.CUfilter_mode
OVERRIDE = 1  # CU_TRSA_OVERRIDE_FORMAT

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .global .texref picture;
.visible .global .surfref board;
.visible .global .u32 number;

.visible .entry fetch(.param .u64 target)
{
    .reg .b32 %i;
    .reg .f32 %a, %b, %c, %d;
    .reg .b64 %to, %at;
    ld.param.u64 %to, [target];
    cvta.to.global.u64 %to, %to;
    mov.u32 %i, %tid.x;
    tex.1d.v4.f32.s32 {%a, %b, %c, %d}, [picture, {%i}];
    mad.wide.u32 %at, %i, 4, %to;
    st.global.f32 [%at], %a;
    ret;
}

.visible .entry sample(.param .u64 target)
{
    .reg .b32 %i;
    .reg .f32 %a, %b, %c, %d, %x;
    .reg .b64 %to, %at;
    ld.param.u64 %to, [target];
    cvta.to.global.u64 %to, %to;
    mov.u32 %i, %tid.x;
    cvt.rn.f32.u32 %x, %i;
    tex.1d.v4.f32.f32 {%a, %b, %c, %d}, [picture, {%x}];
    mad.wide.u32 %at, %i, 4, %to;
    st.global.f32 [%at], %a;
    ret;
}

.visible .entry draw()
{
    .reg .b32 %i, %x;
    mov.u32 %i, %tid.x;
    shl.b32 %x, %i, 2;
    sust.b.1d.b32.trap [board, {%x}], {%i};
    ret;
}
\0"""


@pytest.fixture
def module(context):
    made = ok(driver.cuModuleLoadData(PTX))
    yield made
    ok(driver.cuModuleUnload(made))


@pytest.fixture
def texture(module):
    return ok(driver.cuModuleGetTexRef(module, b"picture"))


@pytest.fixture
def array(context):
    made = ok(driver.cuArray3DCreate(descriptor(32, flags=SURFACE)))
    write(made, numbers((1, 1, 32)))
    yield made
    ok(driver.cuArrayDestroy(made))


@pytest.fixture
def buffer(context):
    made = ok(driver.cuMemAlloc(4096))
    yield int(made)
    ok(driver.cuMemFree(made))


def test_references_of_modules(module):
    texture, board = ok(driver.cuModuleGetTexRef(module, b"picture")), ok(driver.cuModuleGetSurfRef(module, b"board"))
    assert int(ok(driver.cuModuleGetTexRef(module, b"picture"))) == int(texture), "always the same"
    assert int(ok(driver.cuModuleGetSurfRef(module, b"board"))) == int(board)
    for get, name in (
        (driver.cuModuleGetTexRef, b"nothing"),
        (driver.cuModuleGetSurfRef, b"nothing"),
        (driver.cuModuleGetTexRef, b"number"),
    ):
        result = get(module, name)
        assert status(result) == MISSING
        assert not on_cpu_device() or f"no variable '{name.decode()}'" in explanation(result)


def test_what_is_set(texture):
    ok(driver.cuTexRefSetFilterMode(texture, LINEAR))
    assert ok(driver.cuTexRefGetFilterMode(texture)) == LINEAR
    for dim, mode in enumerate((WRAP, MIRROR)):
        ok(driver.cuTexRefSetAddressMode(texture, dim, mode))
        assert ok(driver.cuTexRefGetAddressMode(texture, dim)) == mode
    ok(driver.cuTexRefSetFlags(texture, 2))
    assert ok(driver.cuTexRefGetFlags(texture)) == 2
    ok(driver.cuTexRefSetFormat(texture, FORMAT.CU_AD_FORMAT_UNSIGNED_INT16, 2))
    assert ok(driver.cuTexRefGetFormat(texture)) == (FORMAT.CU_AD_FORMAT_UNSIGNED_INT16, 2)
    ok(driver.cuTexRefSetMaxAnisotropy(texture, 4))
    assert ok(driver.cuTexRefGetMaxAnisotropy(texture)) == 4
    ok(driver.cuTexRefSetMipmapFilterMode(texture, LINEAR))
    assert ok(driver.cuTexRefGetMipmapFilterMode(texture)) == LINEAR
    ok(driver.cuTexRefSetMipmapLevelBias(texture, 0.5))
    assert ok(driver.cuTexRefGetMipmapLevelBias(texture)) == 0.5
    ok(driver.cuTexRefSetMipmapLevelClamp(texture, 1.0, 3.0))
    assert ok(driver.cuTexRefGetMipmapLevelClamp(texture)) == (1.0, 3.0)


def test_what_a_texture_is_bound_to(texture, array, buffer):
    for get in (driver.cuTexRefGetArray, driver.cuTexRefGetAddress, driver.cuTexRefGetMipmappedArray):
        assert status(get(texture)) == BAD
    ok(driver.cuTexRefSetArray(texture, array, OVERRIDE))
    assert int(ok(driver.cuTexRefGetArray(texture))) == int(array)
    assert ok(driver.cuTexRefGetFormat(texture)) == (FORMAT.CU_AD_FORMAT_FLOAT, 1)
    ok(driver.cuTexRefSetFormat(texture, FORMAT.CU_AD_FORMAT_FLOAT, 1))
    assert ok(driver.cuTexRefSetAddress(texture, buffer + 512, 1024)) == 0
    assert int(ok(driver.cuTexRefGetAddress(texture))) == buffer + 512
    assert status(driver.cuTexRefGetArray(texture)) == BAD, "it is bound to something else now"
    assert ok(driver.cuTexRefSetAddress(texture, buffer + 528, 1024)) == 16, "the texture begins before"


@pytest.mark.cpu_only
def test_mistakes_that_drivers_let_pass(texture, buffer):
    for call, text in (
        (lambda: driver.cuTexRefSetAddress(texture, buffer, 8192), "past the end"),
        (lambda: driver.cuTexRefDestroy(texture), "belongs to a module"),
    ):
        result = call()
        assert status(result) == BAD and text in explanation(result)
    ok(driver.cuTexRefSetAddress(texture, buffer, 1024))
    ok(driver.cuTexRefSetAddress(texture, 0, 0))
    assert "bound to nothing" in explanation(driver.cuTexRefGetAddress(texture))


def test_mistakes(texture, array, buffer):
    plain = ok(driver.cuArray3DCreate(descriptor(8)))
    shape = driver.CUDA_ARRAY_DESCRIPTOR()
    shape.Width, shape.Height, shape.NumChannels, shape.Format = 8, 4, 1, FORMAT.CU_AD_FORMAT_FLOAT
    cases = [
        (lambda: driver.cuTexRefSetArray(texture, array, 2), BAD, "Flags may be CU_TRSA_OVERRIDE_FORMAT"),
        (lambda: driver.cuTexRefSetArray(texture, 0, OVERRIDE), HANDLE, "the CUDA array is null"),
        (lambda: driver.cuTexRefSetMipmappedArray(texture, 0, OVERRIDE), HANDLE, "array is null"),
        (lambda: driver.cuTexRefSetAddressMode(texture, 3, WRAP), BAD, "dim is 3"),
        (lambda: driver.cuTexRefSetFlags(texture, 0x100), BAD, "unknown bits: 0x100"),
        (lambda: driver.cuTexRefSetFormat(texture, FORMAT.CU_AD_FORMAT_FLOAT, 3), BAD, "not 3"),
        (lambda: driver.cuTexRefSetAddress2D(texture, shape, buffer, 33), BAD, "pitchInBytes is 33"),
    ]
    ok(driver.cuTexRefSetAddress2D(texture, shape, buffer, 64))
    for call, expected, text in cases:
        result = call()
        assert status(result) == expected
        assert not on_cpu_device() or text in explanation(result), explanation(result)
        assert int(ok(driver.cuTexRefGetAddress(texture))) == buffer, "it is bound to what it was"
    ok(driver.cuArrayDestroy(plain))


@pytest.mark.cpu_only
def test_references_of_the_program(context, array):
    made = ok(driver.cuTexRefCreate())
    ok(driver.cuTexRefSetArray(made, array, OVERRIDE))
    assert int(ok(driver.cuTexRefGetArray(made))) == int(array)
    ok(driver.cuTexRefDestroy(made))
    result = driver.cuTexRefDestroy(made)
    assert status(result) == "CUDA_ERROR_INVALID_HANDLE" and "has been destroyed" in explanation(result)


@pytest.mark.cpu_only
def test_references_go_with_their_module(context, array):
    module = ok(driver.cuModuleLoadData(PTX))
    texture, board = ok(driver.cuModuleGetTexRef(module, b"picture")), ok(driver.cuModuleGetSurfRef(module, b"board"))
    ok(driver.cuTexRefSetArray(texture, array, OVERRIDE))
    ok(driver.cuSurfRefSetArray(board, array, 0))
    ok(driver.cuModuleUnload(module))
    for result in (driver.cuTexRefGetArray(texture), driver.cuSurfRefGetArray(board)):
        assert status(result) == "CUDA_ERROR_INVALID_HANDLE"


def test_surfaces(module, array):
    board = ok(driver.cuModuleGetSurfRef(module, b"board"))
    assert status(driver.cuSurfRefGetArray(board)) == BAD
    plain = ok(driver.cuArray3DCreate(descriptor(8)))
    assert status(driver.cuSurfRefSetArray(board, plain, 0)) == BAD, "it was not made for surfaces"
    ok(driver.cuSurfRefSetArray(board, array, 0))
    assert int(ok(driver.cuSurfRefGetArray(board))) == int(array)
    ok(driver.cuArrayDestroy(plain))


def run(function, *arguments):
    ok(launch(function, 0, *arguments, block=32))
    ok(driver.cuCtxSynchronize())


def test_kernels_read_through_references(module, texture, array, buffer):
    """Of an array, then of memory, then of the array again."""
    fetch, sample = (ok(driver.cuModuleGetFunction(module, name)) for name in (b"fetch", b"sample"))
    back = np.zeros(32, np.float32)
    other = numbers((32,), start=3)
    ok(driver.cuMemcpyHtoD(buffer + 2048, other.ctypes.data, other.nbytes))
    ok(driver.cuTexRefSetFormat(texture, FORMAT.CU_AD_FORMAT_FLOAT, 1))
    for bind, function, wanted in (
        (lambda: driver.cuTexRefSetArray(texture, array, OVERRIDE), sample, numbers((32,))),
        (lambda: driver.cuTexRefSetAddress(texture, buffer + 2048, 128), fetch, other),
        (lambda: driver.cuTexRefSetArray(texture, array, 0), sample, numbers((32,))),
    ):
        ok(bind())
        run(function, ctypes.c_uint64(buffer))
        ok(driver.cuMemcpyDtoH(back.ctypes.data, buffer, 128))
        assert (back == wanted).all()


def test_kernels_write_through_references(module, array):
    board = ok(driver.cuModuleGetSurfRef(module, b"board"))
    ok(driver.cuSurfRefSetArray(board, array, 0))
    run(ok(driver.cuModuleGetFunction(module, b"draw")))
    assert (read(array, (1, 1, 32), np.uint32).ravel() == np.arange(32)).all()
