"""Arrays, textures and surfaces for the tests of their instructions, by the driver API; the same on both devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cupola import Device
from cupola.bindings import driver

from .kernels import check

FORMATS = {
    "u1": driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
    "u2": driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16,
    "u4": driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
    "i1": driver.CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
    "i2": driver.CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
    "i4": driver.CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
    "f2": driver.CUarray_format.CU_AD_FORMAT_HALF,
    "f4": driver.CUarray_format.CU_AD_FORMAT_FLOAT,
}
ADDRESS = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
FLAGS = {"layered": 1, "surface": 2, "cubemap": 4, "gather": 8}


@dataclass(frozen=True)
class Sampler:
    """What a texture does with its texels, in the words of CUDA_TEXTURE_DESC."""

    address: str = "clamp"
    linear: bool = False
    normalized: bool = False
    as_integer: bool = False
    srgb: bool = False
    seamless: bool = False
    mipmap_linear: bool = False
    bias: float = 0.0
    least_level: float = 0.0
    last_level: float = 0.0
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def descriptor(self) -> driver.CUDA_TEXTURE_DESC:
        description = driver.CUDA_TEXTURE_DESC()
        description.addressMode = [driver.CUaddress_mode(ADDRESS[self.address])] * 3
        description.filterMode = driver.CUfilter_mode(int(self.linear))
        description.mipmapFilterMode = driver.CUfilter_mode(int(self.mipmap_linear))
        description.flags = self.as_integer | self.normalized << 1 | self.srgb << 4 | self.seamless << 6
        description.mipmapLevelBias = self.bias
        description.minMipmapLevelClamp = self.least_level
        description.maxMipmapLevelClamp = self.last_level
        description.borderColor = list(self.border)
        return description


def _with_channels(data: np.ndarray, dimensions: int) -> np.ndarray:
    return data if data.ndim > dimensions else data[..., None]


def _description(data: np.ndarray, shape: str, flags: Sequence[str]) -> driver.CUDA_ARRAY3D_DESCRIPTOR:
    """For texels in the order [slice or layer][row][column][channel]."""
    description = driver.CUDA_ARRAY3D_DESCRIPTOR()
    *extents, channels = data.shape
    description.Width = extents[-1]
    description.Height = extents[-2] if shape in ("2d", "3d") else 0
    description.Depth = extents[0] if shape == "3d" or "layered" in flags or "cubemap" in flags else 0
    description.Format = FORMATS[data.dtype.str[1:]]
    description.NumChannels = channels
    description.Flags = sum(FLAGS[flag] for flag in flags)
    return description


def fill(array: driver.CUarray, data: np.ndarray) -> None:
    """Copy texels to an array, or from it with `fetch`."""
    _copy(array, data, to_array=True)


def fetch(array: driver.CUarray, data: np.ndarray) -> np.ndarray:
    """Copy the texels of an array into ``data``, which has channels last."""
    _copy(array, data, to_array=False)
    return data


def _copy(array: driver.CUarray, data: np.ndarray, *, to_array: bool) -> None:
    assert data.flags.c_contiguous
    slices, rows, columns, channels = (1, 1, *data.shape)[-4:]
    copy = driver.CUDA_MEMCPY3D()
    host, other = ("src", "dst") if to_array else ("dst", "src")
    setattr(copy, f"{host}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_HOST)
    setattr(copy, f"{host}Host", data.ctypes.data)
    setattr(copy, f"{host}Pitch", columns * channels * data.itemsize)
    setattr(copy, f"{host}Height", rows)
    setattr(copy, f"{other}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_ARRAY)
    setattr(copy, f"{other}Array", array)
    copy.WidthInBytes, copy.Height, copy.Depth = columns * channels * data.itemsize, rows, slices
    check(driver.cuMemcpy3D(copy))
    check(driver.cuCtxSynchronize())  # the copy of pageable memory may return before the array has it


class Textures:
    """Makes objects, and destroys all of them at the end."""

    def __init__(self, device: int = 0) -> None:
        Device(device).set_current()
        self._cleanup = contextlib.ExitStack()

    def close(self) -> None:
        self._cleanup.close()

    def _later(self, function: object, handle: object) -> None:
        self._cleanup.callback(lambda: check(function(handle)))  # type: ignore[operator]

    def array(self, data: np.ndarray, shape: str, *flags: str) -> driver.CUarray:
        """An array of shape "1d", "2d" or "3d", which tells whether texels have channels."""
        data = np.ascontiguousarray(_with_channels(data, int(shape[0]) + bool({"layered", "cubemap"} & set(flags))))
        status, array = driver.cuArray3DCreate(_description(data, shape, flags))
        check((status,))
        self._later(driver.cuArrayDestroy, array)
        fill(array, data[:, None] if shape == "1d" and "layered" in flags else data)
        return array

    def mipmapped(self, levels: Sequence[np.ndarray], shape: str, *flags: str) -> driver.CUmipmappedArray:
        """A mipmapped array."""
        dimensions = int(shape[0]) + bool({"layered", "cubemap"} & set(flags))
        levels = [np.ascontiguousarray(_with_channels(level, dimensions)) for level in levels]
        status, array = driver.cuMipmappedArrayCreate(_description(levels[0], shape, flags), len(levels))
        check((status,))
        self._later(driver.cuMipmappedArrayDestroy, array)
        for number, level in enumerate(levels):
            status, one = driver.cuMipmappedArrayGetLevel(array, number)
            check((status,))
            fill(one, level)
        return array

    def of_array(self, array: driver.CUarray | driver.CUmipmappedArray, sampler: Sampler = Sampler()) -> np.uint64:
        """A texture of an array, mipmapped or not."""
        resource = driver.CUDA_RESOURCE_DESC()
        kinds = driver.CUresourcetype
        if isinstance(array, driver.CUmipmappedArray):
            resource.resType = kinds.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            resource.res.mipmap.hMipmappedArray = array
        else:
            resource.resType = kinds.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = array
        return self._texture(resource, sampler)

    def of(self, data: np.ndarray, shape: str, *flags: str, sampler: Sampler = Sampler()) -> np.uint64:
        """A texture of an array of its own."""
        return self.of_array(self.array(data, shape, *flags), sampler)

    def linear(self, data: np.ndarray, sampler: Sampler = Sampler()) -> np.uint64:
        """A texture of linear memory, by rows of texels with channels."""
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        linear = resource.res.linear
        linear.devPtr = self._memory(data)
        linear.format, linear.numChannels = FORMATS[data.dtype.str[1:]], data.shape[-1]
        linear.sizeInBytes = data.nbytes
        return self._texture(resource, sampler)

    def pitched(self, data: np.ndarray, sampler: Sampler = Sampler()) -> np.uint64:
        """A texture of rows of memory, 512 bytes apart."""
        rows, columns, channels = data.shape
        padded = np.zeros((rows, 512), np.uint8)
        padded[:, : columns * channels * data.itemsize] = data.reshape(rows, -1).view(np.uint8)
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
        pitched = resource.res.pitch2D
        pitched.devPtr = self._memory(padded)
        pitched.format, pitched.numChannels = FORMATS[data.dtype.str[1:]], channels
        pitched.width, pitched.height, pitched.pitchInBytes = columns, rows, 512
        return self._texture(resource, sampler)

    def surface(self, array: driver.CUarray) -> np.uint64:
        """A surface of an array made with the flag "surface"."""
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = array
        status, surface = driver.cuSurfObjectCreate(resource)
        check((status,))
        self._later(driver.cuSurfObjectDestroy, surface)
        return np.uint64(int(surface))

    def _memory(self, data: np.ndarray) -> driver.CUdeviceptr:
        status, pointer = driver.cuMemAlloc(data.nbytes)
        check((status,))
        self._later(driver.cuMemFree, pointer)
        check(driver.cuMemcpyHtoD(pointer, np.ascontiguousarray(data).ctypes.data, data.nbytes))
        check(driver.cuCtxSynchronize())  # as in `_copy`
        return pointer

    def _texture(self, resource: driver.CUDA_RESOURCE_DESC, sampler: Sampler) -> np.uint64:
        status, texture = driver.cuTexObjectCreate(resource, sampler.descriptor(), None)
        check((status,))
        self._later(driver.cuTexObjectDestroy, texture)
        return np.uint64(int(texture))


@contextlib.contextmanager
def textures() -> Iterator[Textures]:
    """Objects for one test."""
    made = Textures()
    try:
        yield made
    finally:
        made.close()
