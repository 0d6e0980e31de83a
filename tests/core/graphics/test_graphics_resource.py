"""Buffers and images of OpenGL in kernels: registered, mapped, unmapped; what is refused, and what ends when."""

from __future__ import annotations

import gc
import threading
import warnings

import numpy as np
import pytest

from cupola import CUDAError, CUDAWarning, GraphicsResource, LaunchConfig, Program, launch
from cupola.bindings import driver
from cupola.texture import ResourceDescriptor
from examples import opengl
from tests.conftest import on_cpu_device

SOURCE = r"""
extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void slowly(float* x) {
    for (int i = 0; i < 100000; i++) __nanosleep(1);
    x[threadIdx.x] *= 2;
}
extern "C" __global__ void paint(cudaSurfaceObject_t picture) {
    surf2Dwrite(make_uchar4(threadIdx.x, threadIdx.y, 7, 255), picture, 4 * threadIdx.x, threadIdx.y);
}
extern "C" __global__ void look(cudaTextureObject_t picture, uchar4* out) {
    out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D<uchar4>(picture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}
"""
CONFIG = LaunchConfig(grid=1, block=16)
SQUARE = LaunchConfig(grid=1, block=(16, 16))


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    Device(0).set_current()
    return Program(SOURCE, "c++").compile("cubin")


@pytest.fixture
def numbers(gl):
    """A buffer of OpenGL with 0 to 15."""
    return gl.buffer(64, np.arange(16, dtype=np.float32))


def seen(gl, name) -> list[float]:
    return gl.read_buffer(name, 64).view(np.float32).tolist()


@pytest.fixture
def picture(gl):
    """A texture of OpenGL, 16 x 16, RGBA8, of which each pixel is (x, y, 0, 255)."""
    name = gl.name("Textures")
    gl.BindTexture(opengl.TEXTURE_2D, name)
    gl.TexStorage2D(opengl.TEXTURE_2D, 1, opengl.RGBA8, 16, 16)
    y, x = np.indices((16, 16))
    pixels = np.stack([x, y, 0 * x, 0 * x + 255], axis=-1).astype(np.uint8)
    gl.TexSubImage2D(opengl.TEXTURE_2D, 0, 0, 0, 16, 16, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
    gl.check()
    return name


def pixels_of(gl, name) -> np.ndarray:
    back = np.zeros((16, 16, 4), np.uint8)
    gl.BindTexture(opengl.TEXTURE_2D, name)
    gl.GetTexImage(opengl.TEXTURE_2D, 0, opengl.RGBA, opengl.UNSIGNED_BYTE, back.ctypes.data)
    return back


def test_a_kernel_changes_a_buffer(gl, stream, code, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers)
    assert (resource.is_mapped, resource.is_closed) == (False, False)
    assert resource.handle == resource.resource_handle != 0
    for times in (2, 4):
        buffer = resource.map(stream=stream)
        assert resource.is_mapped
        assert (buffer.size, buffer.memory_resource) == (64, None)
        assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, False)
        launch(stream, CONFIG, code.get_kernel("twice"), buffer)
        resource.unmap()
        assert (resource.is_mapped, buffer.is_closed) == (False, True)
        assert seen(gl, numbers) == [times * i for i in range(16)]
    resource.close()
    resource.close()
    assert (resource.handle, resource.is_closed) == (0, True)
    gl.check()


def test_unmapping_is_behind_the_work_in_the_stream(gl, stream, code, numbers):
    with GraphicsResource.from_gl_buffer(numbers) as resource:
        launch(stream, CONFIG, code.get_kernel("slowly"), resource.map(stream=stream))
        resource.unmap()
        assert seen(gl, numbers) == [2 * i for i in range(16)]


def test_the_buffer_governs_the_mapping(gl, stream, code, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers)
    with resource.map(stream=stream) as buffer:
        launch(stream, CONFIG, code.get_kernel("twice"), buffer)
    assert not resource.is_mapped
    assert seen(gl, numbers) == [2 * i for i in range(16)]
    resource.map(stream=stream)  # dropped, but the resource has it
    gc.collect()
    assert resource.is_mapped
    resource.close()


def test_with_and_a_stream_of_its_own(gl, stream, code, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers, stream=stream)
    with resource as buffer:
        launch(stream, CONFIG, code.get_kernel("twice"), buffer)
    assert (resource.is_closed, buffer.is_closed) == (True, True)
    assert seen(gl, numbers) == [2 * i for i in range(16)]


def test_the_memory_stays_mapped_as_long_as_something_has_it(gl, device, stream, code, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers)
    buffer = resource.map(stream=stream)
    descriptor = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1)
    texture = device.create_texture_object(resource=descriptor)
    buffer.close()
    assert resource.is_mapped
    texture.close()
    assert not resource.is_mapped
    resource.close()


def test_an_older_mapping_does_not_end_the_next(gl, device, stream, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers)
    buffer = resource.map(stream=stream)
    descriptor = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1)
    texture = device.create_texture_object(resource=descriptor)
    resource.unmap()
    resource.map(stream=stream)
    texture.close()
    assert resource.is_mapped
    resource.close()


def test_read_only(gl, stream, code, numbers):
    with GraphicsResource.from_gl_buffer(numbers, flags="read_only") as resource:
        launch(stream, CONFIG, code.get_kernel("twice"), resource.map(stream=stream))
        resource.unmap()
    assert seen(gl, numbers) == list(range(16))


def test_a_kernel_paints_an_image(gl, device, stream, code, picture):
    with GraphicsResource.from_gl_image(picture, opengl.TEXTURE_2D, flags=("surface_load_store",)) as resource:
        array = resource.map_array(stream=stream)
        assert (array.shape, array.format, array.num_channels) == ((16, 16), "uint8", 4)
        assert array.is_surface_load_store
        with device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(array)) as surface:
            launch(stream, SQUARE, code.get_kernel("paint"), surface)
            resource.unmap()
        assert array.is_closed
    y, x = np.indices((16, 16))
    assert (pixels_of(gl, picture) == np.stack([x, y, 0 * x + 7, 0 * x + 255], axis=-1)).all()
    gl.check()


def test_a_kernel_looks_at_an_image(gl, device, stream, code, picture):
    with GraphicsResource.from_gl_image(picture, opengl.TEXTURE_2D, flags="read_only") as resource:
        array = resource.map_array(stream=stream)
        out = device.allocate(1024, stream=stream)
        with device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array)) as texture:
            launch(stream, SQUARE, code.get_kernel("look"), texture, out)
            copy = out.copy_to(np.zeros((16, 16, 4), np.uint8), stream=stream)
            stream.sync()
    assert (copy == pixels_of(gl, picture)).all()


def test_parts_of_an_image(gl, stream):
    name = gl.name("Textures")
    target = 0x8C1A  # GL_TEXTURE_2D_ARRAY
    gl.BindTexture(target, name)
    gl.TexStorage3D(target, 2, opengl.RGBA32F, 16, 8, 3)
    with GraphicsResource.from_gl_image(name, target) as resource:
        with pytest.raises(RuntimeError, match="not mapped"):
            resource.get_mapped_array()
        parts = [resource.map_array(stream=stream, index=2), resource.get_mapped_array(1, level=1)]
        assert [part.shape for part in parts] == [(16, 8), (8, 4)]
        for part in parts:
            part.copy_from(np.full(part.size_bytes, 3, np.uint8), stream=stream)
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            resource.get_mapped_array(3)
        resource.unmap()
        assert all(part.is_closed for part in parts)
        back = resource.map_array(stream=stream, index=2)
        data = back.copy_to(np.zeros(back.size_bytes, np.uint8), stream=stream)
        assert (data == 3).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda name: GraphicsResource.from_gl_buffer(name, flags="nonsense"),
            ValueError,
            "'nonsense'.*: none,",
        ),
        (lambda name: GraphicsResource.from_gl_buffer(name, flags=("read_only", 5)), ValueError, "no flag 5"),
        (lambda name: GraphicsResource.from_gl_buffer(name, flags=5), TypeError, "iter"),
        (lambda name: GraphicsResource.from_gl_buffer("x"), TypeError, "gl_buffer must be an int, not str"),
        (lambda name: GraphicsResource.from_gl_buffer(-1), OverflowError, "gl_buffer"),
        (lambda name: GraphicsResource.from_gl_image(name, None), TypeError, "target must be an int"),
        (lambda name: GraphicsResource.from_gl_buffer(0), CUDAError, "INVALID_VALUE"),
        (lambda name: GraphicsResource.from_gl_buffer(9999), CUDAError, "INVALID_HANDLE"),
        (lambda name: GraphicsResource.from_gl_buffer(name, flags="texture_gather"), CUDAError, "INVALID_VALUE"),
        (lambda name: GraphicsResource.from_gl_image(9999, opengl.TEXTURE_2D), CUDAError, "INVALID_HANDLE"),
        (lambda name: GraphicsResource.from_gl_image(1, 0), CUDAError, "INVALID_VALUE"),
    ],
)
def test_what_is_not_registered(gl, numbers, call, error, text):
    with pytest.raises(error, match=text):
        call(numbers)
    gl.check()


def test_mistakes(gl, stream, numbers, picture):
    resource = GraphicsResource.from_gl_buffer(numbers)
    with pytest.raises(TypeError):
        resource.map()
    with pytest.raises(TypeError, match="a stream is required"):
        resource.map(stream=None)
    with pytest.raises(RuntimeError, match="not mapped"):
        resource.unmap()
    resource.map(stream=stream)
    with pytest.raises(RuntimeError, match="already mapped"):
        resource.map(stream=stream)
    assert "mapped>" in repr(resource)
    with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_MAPPED_AS_ARRAY"):
        resource.map_array(stream=stream)
    resource.close()
    for call in (lambda: resource.map(stream=stream), resource.unmap, lambda: resource.map_array(stream=stream)):
        with pytest.raises(RuntimeError, match="GraphicsResource has been closed"):
            call()
    assert repr(resource) == "<GraphicsResource handle=0x0 closed>"
    with GraphicsResource.from_gl_image(picture, opengl.TEXTURE_2D) as image:
        with pytest.raises(CUDAError, match=r"(?s)CUDA_ERROR_NOT_MAPPED_AS_POINTER.*map_array\(\)"):
            image.map(stream=stream)
        assert not image.is_mapped


def test_without_a_current_context_of_opengl(gl, stream, numbers):
    resource = GraphicsResource.from_gl_buffer(numbers)
    gl.release()
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"):
        resource.map(stream=stream)
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"):
        resource.close()
    assert resource.is_closed
    resource.close()
    with pytest.raises(CUDAError, match="context of OpenGL"):
        GraphicsResource.from_gl_buffer(numbers)


def test_unmapping_without_the_context_of_opengl(gl, stream, numbers, picture):
    resource, image = GraphicsResource.from_gl_buffer(numbers), GraphicsResource.from_gl_image(picture, 0x0DE1)
    mapped = [resource.map(stream=stream), image.map_array(stream=stream)]
    gl.release()
    for unmapped in (resource, image):
        with pytest.raises(CUDAError, match=r"(?s)CUDA_ERROR_INVALID_GRAPHICS_CONTEXT.*register the object"):
            unmapped.unmap()
        assert unmapped.is_closed and not unmapped.is_mapped  # a GPU's driver can do nothing with it any more
        unmapped.close()
    assert [memory.is_closed for memory in mapped] == [True, True]
    with pytest.raises(RuntimeError, match="has been closed"):
        resource.unmap()
    gl.make_current()
    with GraphicsResource.from_gl_buffer(numbers) as again:
        again.map(stream=stream).close()


@pytest.mark.parametrize("how", ["close the Buffer", "drop the resource"])
def test_what_ends_in_a_host_function_is_unmapped_later(gl, device, stream, numbers, how):
    resource = GraphicsResource.from_gl_buffer(numbers)
    handle = resource.handle
    held = [resource.map(stream=stream), resource]
    builder = device.create_stream().create_graph_builder().begin_building()
    builder.callback(held[0].close if how == "close the Buffer" else held.clear)
    graph = builder.end_building().complete()
    if how == "drop the resource":
        del resource
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph.launch(stream)
        stream.sync()
        for _ in range(1000):  # Python does what is pending on this thread
            pass
    assert caught == []
    if how == "close the Buffer":
        assert not resource.is_mapped
        resource.close()
    elif on_cpu_device():  # a GPU's driver crashes on handles that are gone
        assert driver.cuGraphicsResourceSetMapFlags(handle, 0)[0].name == "CUDA_ERROR_INVALID_HANDLE"


def test_what_ends_on_another_thread_warns(gl, stream, numbers):
    held = [GraphicsResource.from_gl_buffer(numbers)]
    thread = threading.Thread(target=held.clear)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        thread.start()
        thread.join()
    assert [warning.category for warning in caught] == [CUDAWarning]
    assert "INVALID_GRAPHICS_CONTEXT" in str(caught[0].message)


@pytest.mark.cpu_only
def test_without_egl_the_package_is_named(run_python):
    done = run_python(
        "from cupola import Device, GraphicsResource\n"
        "Device().set_current()\n"
        "try: GraphicsResource.from_gl_buffer(1)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    assert "CUDAError CUDA_ERROR_INVALID_VALUE" in done.stdout, done.stderr
    assert "libegl1 and libgl1-mesa-dri" in done.stdout


@pytest.mark.cpu_only
def test_a_fault_of_the_kernel_is_told_by_unmap(run_python):
    program = """
import numpy as np
from cupola import Device, GraphicsResource, LaunchConfig, Program, launch
from examples.opengl import NoOpenGL, OpenGL
dev = Device()
dev.set_current()
try: gl = OpenGL()
except NoOpenGL as error: raise SystemExit(print("skipped", error))
stream = dev.create_stream()
code = Program('extern "C" __global__ void behind(float* x) { x[threadIdx.x + 1] = 1; }', "c++").compile("cubin")
resource = GraphicsResource.from_gl_buffer(gl.buffer(64))
launch(stream, LaunchConfig(grid=1, block=16), code.get_kernel("behind"), resource.map(stream=stream))
try: resource.unmap()
except Exception as error: print(error)
"""
    done = run_python(program)
    if "skipped" in done.stdout:
        pytest.skip(done.stdout)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stderr
    assert "just past the end of a 64-byte allocation" in done.stdout


def test_the_device_of_these_tests(gl):
    status, count, *devices = driver.cuGLGetDevices(8, driver.CUGLDeviceList.CU_GL_DEVICE_LIST_ALL)
    assert not status
    assert count >= 1
    assert on_cpu_device() or 0 in [int(device) for device in np.ravel(devices)]
