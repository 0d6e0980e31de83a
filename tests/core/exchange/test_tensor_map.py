"""Tensor maps of views: what is checked, in which order, and what kernels get."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cupola
from cupola import CUDAError, LaunchConfig, Program, ProgramOptions, TensorMapDescriptor, launch
from cupola import TensorMapDescriptorOptions as Options
from cupola.core.exchange._tensor_map import (
    TensorMapDataType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from cupola.utils import StridedMemoryView as View

SLICES = TensorMapInterleave.INTERLEAVE_16B
NAN = TensorMapOOBFill.NAN_REQUEST_ZERO_FMA


@pytest.fixture
def buffer(device, stream):
    with device.allocate(1 << 16, stream=stream) as made:
        yield made


@pytest.fixture
def view(buffer):
    """64 rows of 64 floats."""
    return view_of(buffer)


def view_of(buffer, shape=(64, 64), dtype="f4", strides=None):
    return View.from_buffer(buffer, shape, strides, dtype=np.dtype(dtype))


def test_repr_and_device(view, device):
    made = view.as_tensor_map((8, 16), swizzle=TensorMapSwizzle.SWIZZLE_64B)
    assert repr(made) == "TensorMapDescriptor(tiled, rank=2, dtype=FLOAT32, swizzle=SWIZZLE_64B)"
    assert made.device == device
    assert made != view.as_tensor_map((8, 16))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        *[(name, name.upper()) for name in ("uint8", "uint16", "uint32", "int32", "uint64", "int64")],
        *[(name, name.upper()) for name in ("float16", "float32", "float64")],
    ],
)
def test_types_are_those_of_the_view(buffer, dtype, name):
    for view in (view_of(buffer, dtype=dtype), View.from_any_interface(view_of(buffer, dtype=dtype), -1)):
        assert f"dtype={name}," in repr(view.as_tensor_map((4, 16)))


@pytest.mark.parametrize("data_type", [np.int32, "i4", np.dtype("i4"), TensorMapDataType.INT32])
def test_another_type(view, data_type):
    assert "dtype=INT32" in repr(view.as_tensor_map((8, 16), data_type=data_type))
    assert "dtype=INT32" in repr(view.as_tensor_map(options={"box_dim": (8, 16), "data_type": data_type}))


def test_options_are_the_same_as_arguments(view):
    words = {
        "swizzle": TensorMapSwizzle.SWIZZLE_64B,
        "element_strides": (1, 1),
        "l2_promotion": TensorMapL2Promotion.L2_64B,
    }
    for made in (
        view.as_tensor_map((8, 16), **words),
        view.as_tensor_map(options=Options((8, 16), **words)),
        view.as_tensor_map(options={"box_dim": [8, 16], **words}),
        view.as_tensor_map(options={"box_dim": [8, 16], **words}, oob_fill=TensorMapOOBFill.NONE),
    ):
        assert "SWIZZLE_64B" in repr(made)


def test_options_are_a_dataclass_that_checks_types():
    options = Options(range(1, 3), data_type="f4")
    assert options.box_dim == (1, 2) and options.data_type == np.dtype("f4")
    assert options == Options((1, 2), data_type=np.float32)
    for arguments, words in [
        (((1, 2.0),), {}),
        (((1, np.int64(2)),), {}),
        ((3,), {}),
        (((1, 2),), {"element_strides": 1}),
        (((1, 2),), {"swizzle": 1}),
        (((1, 2),), {"swizzle": None}),
        (((1, 2),), {"interleave": TensorMapSwizzle.NONE}),
        (((1, 2),), {"data_type": 7}),
        (((1, 2),), {"data_type": "nothing"}),
    ]:
        with pytest.raises(TypeError):
            Options(*arguments, **words)


@pytest.mark.parametrize(
    ("arguments", "words", "text"),
    [
        ((), {}, "box_dim"),
        (((8, 16),), {"options": {"box_dim": (8, 16)}}, "not both"),
        ((), {"options": Options((8, 16)), "data_type": "f4"}, "not both"),
        ((), {"options": 3}, "TensorMapDescriptorOptions"),
        ((), {"options": {"box_dim": (8, 16), "swizle": 1}}, "did you mean 'swizzle'"),
        (((8, 16.0),), {}, "box_dim must be a tuple of ints, not of float"),
        (((8, 16),), {"swizzle": 1}, "swizzle must be a TensorMapSwizzle, not int"),
    ],
)
def test_wrong_types(view, arguments, words, text):
    with pytest.raises(TypeError, match=text):
        view.as_tensor_map(*arguments, **words)


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "box", "words", "text"),
    [
        ((64, 64), None, "i1", (8, 16), {}, r"no type for dtype\('int8'\)"),
        ((64, 64), None, ">f4", (8, 16), {}, "no type"),
        ((2, 2, 2, 2, 2, 4), None, "f4", (1,), {}, "1 to 5 dimensions, the view has 6"),
        ((), None, "f4", (), {}, "1 to 5 dimensions, the view has 0"),
        ((64, 64), None, "f4", (8,), {}, "box_dim has 1 entries; the tensor has 2"),
        ((64, 64), None, "f4", (0, 16), {}, r"box_dim\[0\] is 0; it must be from 1 to 256"),
        ((64, 64), None, "f4", (8, 257), {}, r"box_dim\[1\] is 257"),
        ((64, 64), None, "f4", (8, 16), {"element_strides": (1,)}, "element_strides has 1 entries"),
        ((64, 32), (64, 2), "f4", (8, 16), {}, "2 elements apart"),
    ],
)
def test_what_is_refused_before_the_driver_is_asked(buffer, shape, strides, dtype, box, words, text):
    with pytest.raises(ValueError, match=text):
        view_of(buffer, shape, dtype, strides).as_tensor_map(box, **words)


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "box", "words", "text"),
    [
        ((64, 64), (66, 1), "f4", (8, 16), {}, "the stride of dimension 0 is 264 bytes; it must be a multiple of 16"),
        ((4, 8, 64), (512, 66, 1), "f4", (1, 8, 16), {}, "the stride of dimension 1 is 264 bytes"),
        ((64, 64), (-64, 1), "f4", (8, 16), {}, "the stride of dimension 0 is -256 bytes.*not negative"),
        ((64, 64), None, "f4", (8, 3), {}, r"box_dim\[1\] is 3 elements of 4 bytes, 12 bytes; .* multiple of 16 bytes"),
        ((64, 64), None, "f4", (8, 32), {"swizzle": TensorMapSwizzle.SWIZZLE_64B}, "SWIZZLE_64B it must be 64 bytes"),
        ((64, 64), None, "f4", (8, 16), {"element_strides": (9, 1)}, r"element_strides\[0\] is 9; .* from 1 to 8"),
        ((64, 64), None, "f4", (8, 16), {"interleave": SLICES}, "3 dimensions or more"),
        ((64, 64), None, "i4", (8, 16), {"oob_fill": NAN}, "for floating types, not for INT32"),
    ],
)
def test_what_the_driver_refuses_is_explained(buffer, shape, strides, dtype, box, words, text):
    if strides is not None and strides[0] < 0:
        view = view_of(buffer).view(view_of(buffer)._layout[::-1])
    else:
        view = view_of(buffer, shape, dtype, strides)
    with pytest.raises(CUDAError, match=text) as error:
        view.as_tensor_map(box, **words)
    assert error.value.name == "CUDA_ERROR_INVALID_VALUE" and error.value.call == "cuTensorMapEncodeTiled"


def test_the_memory(view, buffer):
    with pytest.raises(ValueError, match="memory of the host"):
        View.from_array_interface(np.zeros((8, 16), np.float32)).as_tensor_map((8, 16))
    with pytest.raises(ValueError, match="no multiple of 16 bytes"):
        view.view(view._layout[:, 1:]).as_tensor_map((8, 3))
    buffer.close()
    with pytest.raises(RuntimeError, match="closed"):
        view.as_tensor_map((8, 16))


def test_a_context_must_be_current(run_python):
    program = """
import numpy as np
from cupola import Device
from cupola.bindings import driver
from cupola.utils import StridedMemoryView as View
device = Device(0)
device.set_current()
view = View.from_buffer(device.allocate(4096, stream=device.default_stream), (32, 32), dtype=np.dtype("f4"))
made = view.as_tensor_map((8, 16))
driver.cuCtxSetCurrent(0)
for what in (lambda: view.as_tensor_map((8, 16)), lambda: made.replace_address(view)):
    try:
        what()
    except RuntimeError as error:
        print(error)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    assert "there is none: call Device.set_current()" in done.stdout and "none is current" in done.stdout


def test_another_device(run_on_devices):
    program = """
import numpy as np
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from cupola.utils import StridedMemoryView as View
one, two = Device(0), Device(1)
two.set_current()
stream = two.create_stream()
source = "struct alignas(64) M { char bytes[128]; }; extern \\"C\\" __global__ void f(const __grid_constant__ M m) {}"
kernel = Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin").get_kernel("f")
one.set_current()
view = View.from_buffer(one.allocate(4096, stream=one.default_stream), (32, 32), dtype=np.dtype("f4"))
made = view.as_tensor_map((8, 16))
two.set_current()
for what in (
    lambda: View.from_dlpack(view, -1).as_tensor_map((8, 16)),
    lambda: made.replace_address(view),
    lambda: launch(stream, LaunchConfig(grid=1, block=1), kernel, made),
):
    try:
        what()
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__, error)
"""
    done = run_on_devices(2, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ValueError the tensor is on device 0, the current one is 1",
        *["RuntimeError the tensor map was made in another context, of device 0; that of device 1 is current"] * 2,
    ]


def test_it_keeps_the_view(device, stream):
    class Kept(View):
        pass

    exporter = device.allocate(4096, stream=stream)
    made = Kept.from_buffer(exporter, (32, 32), dtype=np.dtype("f4")).as_tensor_map((8, 16))
    gone = weakref.ref(exporter)
    del exporter
    gc.collect()
    assert gone() is not None
    del made
    gc.collect()
    assert gone() is None


SOURCE = r"""
struct alignas(64) TensorMap { char bytes[128]; };
extern "C" __global__ void copy_of(const __grid_constant__ TensorMap map, TensorMap* out) { *out = map; }
"""


@pytest.fixture(scope="module")
def copy_of():
    device = cupola.Device(0)
    device.set_current()
    return Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("copy_of")


def test_kernels_get_its_bytes(view, buffer, stream, device, copy_of):
    def bytes_of(made):
        with cupola.PinnedMemoryResource().allocate(128, stream=stream) as host:
            launch(stream, LaunchConfig(grid=1, block=1), copy_of, made, buffer)
            host.copy_from(view_of(buffer, (128,), "u1"), stream=stream)
            stream.sync()
            return np.from_dlpack(host).tobytes()

    first = bytes_of(view.as_tensor_map((8, 16)))
    assert first == bytes_of(view.as_tensor_map((8, 16))) != bytes_of(view.as_tensor_map((8, 8)))
    with device.allocate(1 << 14, stream=stream) as other:
        made = view.as_tensor_map((8, 16))
        made.replace_address(view_of(other))
        assert bytes_of(made) == bytes_of(view_of(other).as_tensor_map((8, 16))) != first
        made.replace_address(view)
        assert bytes_of(made) == first


def test_a_parameter_of_another_size(view, stream, device):
    source = 'extern "C" __global__ void k(float x) {}'
    kernel = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("k")
    with pytest.raises(TypeError, match="is 4 bytes .* but .*TensorMapDescriptor is 128 bytes"):
        launch(stream, LaunchConfig(grid=1, block=1), kernel, view.as_tensor_map((8, 16)))


def test_replacing_the_address_checks_first(view, buffer):
    made = view.as_tensor_map((8, 16))
    with pytest.raises(ValueError, match="memory of the host"):
        made.replace_address(np.zeros(16))
    with pytest.raises(ValueError, match="no multiple of 16"):
        made.replace_address(view.view(view._layout[:, 1:]))
    with pytest.raises(BufferError):
        made.replace_address(3)
    cube = view_of(buffer, (4, 8, 32))
    made = cube.as_tensor_map(
        (1, 8, 16), interleave=TensorMapInterleave.INTERLEAVE_32B, swizzle=TensorMapSwizzle.SWIZZLE_32B
    )
    with pytest.raises(ValueError, match="no multiple of 32"):
        made.replace_address(cube.view(cube._layout[:, :, 4:]))


def test_images(buffer):
    view = view_of(buffer, (2, 9, 10, 64), "f2")
    made = TensorMapDescriptor._from_im2col(view, (-1, -2), (-1, 0), 32, 16, swizzle=TensorMapSwizzle.SWIZZLE_64B)
    assert repr(made) == "TensorMapDescriptor(im2col, rank=4, dtype=FLOAT16, swizzle=SWIZZLE_64B)"
    with pytest.raises(ValueError, match="3 to 5 dimensions, the view has 2"):
        TensorMapDescriptor._from_im2col(view_of(buffer), (), (), 32, 16)
    with pytest.raises(ValueError, match="pixel_box_lower_corner has 1 entries"):
        TensorMapDescriptor._from_im2col(view, (-1,), (-1, -1), 32, 16)
    with pytest.raises(CUDAError, match="channels_per_pixel is 3 elements of 2 bytes"):
        TensorMapDescriptor._from_im2col(view, (-1, -1), (-1, -1), 3, 16)
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        TensorMapDescriptor._from_im2col(view, (-200, -1), (-1, -1), 32, 16)


def test_wide_images(buffer):
    view = view_of(buffer, (2, 9, 10, 64), "f2")
    made = TensorMapDescriptor._from_im2col_wide(view, -1, -1, 32, 16)
    assert repr(made) == "TensorMapDescriptor(im2col_wide, rank=4, dtype=FLOAT16, swizzle=SWIZZLE_128B)"
    with pytest.raises(TypeError, match="mode must be a TensorMapIm2ColWideMode"):
        TensorMapDescriptor._from_im2col_wide(view, -1, -1, 32, 16, mode=1)
