"""Graphics resources of a context that ends."""

from __future__ import annotations

import pytest

PROGRAM = """
from cupola.bindings import driver
from examples.opengl import RGBA8, TEXTURE_2D, OpenGL

def register():
    name = gl.name("Textures")
    gl.BindTexture(TEXTURE_2D, name)
    gl.TexStorage2D(TEXTURE_2D, 1, RGBA8, 512, 512)
    buffer, resource = driver.cuGraphicsGLRegisterBuffer(gl.buffer(1 << 20), 0)
    image, picture = driver.cuGraphicsGLRegisterImage(name, TEXTURE_2D, 0)
    assert buffer == image == 0
    return resource, picture

def use(resource):
    calls = driver.cuGraphicsMapResources(1, [resource], 0), driver.cuGraphicsUnregisterResource(resource)
    return [call[0].name for call in calls]

driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
with OpenGL() as gl:
    before = register()
    assert driver.cuGraphicsMapResources(1, [before[1]], 0)[0] == 0
    assert driver.cuDevicePrimaryCtxReset(0)[0] == 0
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    for resource in before:
        assert use(resource) == ["CUDA_ERROR_INVALID_HANDLE"] * 2, use(resource)
    for resource in register():
        assert use(resource) == ["CUDA_SUCCESS", "CUDA_ERROR_ALREADY_MAPPED"], use(resource)
print("done")
"""


@pytest.mark.cpu_only
@pytest.mark.usefixtures("gl")
def test_they_end_with_a_reset_of_the_device(run_python):
    done = run_python(PROGRAM)
    assert done.stdout.split() == ["done"], done.stdout + done.stderr
