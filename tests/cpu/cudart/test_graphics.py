"""Graphics interop through the runtime, which has the driver's functions under other names."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.bindings import driver, runtime
from examples import opengl
from tests.cpu.cudart.calls import ok, status


def test_a_buffer(gl):
    name = gl.buffer(64, np.full(64, 5, np.uint8))
    resource = ok(runtime.cudaGraphicsGLRegisterBuffer(name, 0))
    assert status(runtime.cudaGraphicsUnmapResources(1, resource, 0)) == "cudaErrorNotMapped"
    ok(runtime.cudaGraphicsResourceSetMapFlags(resource, 0))
    ok(runtime.cudaGraphicsMapResources(1, resource, 0))
    assert status(runtime.cudaGraphicsMapResources(1, resource, 0)) == "cudaErrorAlreadyMapped"
    pointer, size = ok(runtime.cudaGraphicsResourceGetMappedPointer(resource))
    assert size == 64
    ok(runtime.cudaMemset(pointer, 7, 32))
    ok(runtime.cudaGraphicsUnmapResources(1, resource, 0))
    assert gl.read_buffer(name, 64).tolist() == [7] * 32 + [5] * 32
    ok(runtime.cudaGraphicsUnregisterResource(resource))


def test_an_image(gl):
    name = gl.name("Textures")
    gl.BindTexture(opengl.TEXTURE_2D, name)
    gl.TexStorage2D(opengl.TEXTURE_2D, 2, opengl.RGBA8, 16, 8)
    resource = ok(runtime.cudaGraphicsGLRegisterImage(name, opengl.TEXTURE_2D, 4))
    ok(runtime.cudaGraphicsMapResources(1, resource, 0))
    array = ok(runtime.cudaGraphicsSubResourceGetMappedArray(resource, 0, 1))
    _, extent, flags = ok(runtime.cudaArrayGetInfo(array))
    assert (extent.width, extent.height, extent.depth, flags) == (8, 4, 0, runtime.cudaArraySurfaceLoadStore)
    whole = ok(runtime.cudaGraphicsResourceGetMappedMipmappedArray(resource))
    level = ok(runtime.cudaGetMipmappedArrayLevel(whole, 1))  # of a GPU another handle of the same memory
    texels, read = np.arange(4 * 8 * 4, dtype=np.uint8), np.zeros(4 * 8 * 4, np.uint8)
    ok(runtime.cudaMemcpy2DToArray(array, 0, 0, texels.ctypes.data, 32, 32, 4, runtime.cudaMemcpyKind(1)))
    ok(runtime.cudaMemcpy2DFromArray(read.ctypes.data, 32, level, 0, 0, 32, 4, runtime.cudaMemcpyKind(2)))
    assert (read == texels).all()
    assert status(runtime.cudaGraphicsResourceGetMappedPointer(resource)) == "cudaErrorNotMappedAsPointer"
    ok(runtime.cudaGraphicsUnmapResources(1, resource, 0))
    ok(runtime.cudaGraphicsUnregisterResource(resource))


def test_devices(gl):
    count, devices = ok(runtime.cudaGLGetDevices(4, runtime.cudaGLDeviceList.cudaGLDeviceListAll))
    assert (count, devices[:count]) == (count, list(range(count)))
    gl.release()
    none = status(runtime.cudaGLGetDevices(4, runtime.cudaGLDeviceList.cudaGLDeviceListAll))
    assert none == "cudaErrorDeviceUninitialized"  # where the driver has CUDA_ERROR_INVALID_GRAPHICS_CONTEXT


@pytest.mark.cpu_only
def test_the_array_of_a_resource_is_not_freed(gl):
    name = gl.name("Textures")
    gl.BindTexture(opengl.TEXTURE_2D, name)
    gl.TexStorage2D(opengl.TEXTURE_2D, 1, opengl.RGBA8, 16, 8)
    resource = ok(driver.cuGraphicsGLRegisterImage(name, opengl.TEXTURE_2D, 0))
    ok(driver.cuGraphicsMapResources(1, resource, 0))
    whole = ok(driver.cuGraphicsResourceGetMappedMipmappedArray(resource))
    assert status(runtime.cudaFreeMipmappedArray(whole)) == "cudaErrorInvalidValue"
    ok(driver.cuGraphicsUnmapResources(1, resource, 0))
    ok(driver.cuGraphicsUnregisterResource(resource))
