"""Images of OpenGL whose parts do not fit together: they are refused, or taken as far as they fit."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int, c_uint, c_void_p
from typing import Any

import pytest

from cupola.bindings import driver
from examples import opengl

CUBE, FIRST_FACE, VOLUME, LAYERS = 0x8513, 0x8515, 0x806F, 0x8C1A
BYTES = (opengl.RGBA, opengl.UNSIGNED_BYTE)

pytestmark = pytest.mark.cpu_only


def texture(gl, target: int) -> int:
    name = gl.name("Textures")
    gl.BindTexture(target, name)
    return name


def register(name: int, target: int) -> tuple[str, Any]:
    status, resource = driver.cuGraphicsGLRegisterImage(name, target, 0)
    return status.name, resource


@pytest.mark.parametrize("extents", [(16, 1024), (1024, 16), (16, 0)])
def test_a_cube_needs_six_faces_that_are_alike(gl, extents):
    name = texture(gl, CUBE)
    for face, extent in enumerate((extents[0],) * 5 + extents[1:]):
        if extent:
            gl.TexImage2D(FIRST_FACE + face, 0, opengl.RGBA8, extent, extent, 0, *BYTES, None)
    gl.check()
    assert register(name, CUBE)[0] == "CUDA_ERROR_INVALID_VALUE"


@pytest.mark.parametrize("target", [VOLUME, LAYERS])
@pytest.mark.parametrize("depths, levels", [((16, 1024), 1), ((16, 4), 1), (None, 2)])
def test_a_level_must_follow_from_the_first_one(gl, target, depths, levels):
    """Else the copies of its texels would leave the array."""
    address = gl.egl.eglGetProcAddress(b"glTexImage3D")
    image = CFUNCTYPE(None, c_uint, *[c_int] * 6, c_uint, c_uint, c_void_p)(address)
    name = texture(gl, target)
    for level, depth in enumerate(depths or (16, 8 if target == VOLUME else 16)):
        image(target, level, opengl.RGBA8, 16 >> level, 16 >> level, depth, 0, *BYTES, None)
    gl.check()
    status, resource = register(name, target)
    assert status == "CUDA_SUCCESS"
    assert driver.cuGraphicsMapResources(1, [resource], 0)[0] == 0
    found = [driver.cuGraphicsSubResourceGetMappedArray(resource, 0, level)[0] for level in range(3)]
    assert [status == 0 for status in found] == [level < levels for level in range(3)]
    assert driver.cuGraphicsUnmapResources(1, [resource], 0)[0] == 0
    assert driver.cuGraphicsUnregisterResource(resource)[0] == 0
