"""Arrays, textures, surfaces and tensor maps for the tests of instructions, by the driver API; on both devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.driver.texture.arrays import CUBEMAP, DTYPES, GATHER, LAYERED, SURFACE, descriptor, read, write

FORMATS = {np.dtype(type): name for name, type in DTYPES.items()}
ADDRESS = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
FLAGS = {"layered": LAYERED, "surface": SURFACE, "cubemap": CUBEMAP, "gather": GATHER}


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
    anisotropy: int = 0

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
        description.maxAnisotropy = self.anisotropy
        return description


def _with_channels(data: np.ndarray, dimensions: int) -> np.ndarray:
    return data if data.ndim > dimensions else data[..., None]


def _description(data: np.ndarray, shape: str, flags: Sequence[str]) -> driver.CUDA_ARRAY3D_DESCRIPTOR:
    """For texels in the order [slice or layer][row][column][channel]."""
    *extents, channels = data.shape
    height = extents[-2] if shape in ("2d", "3d") else 0
    depth = extents[0] if shape == "3d" or "layered" in flags or "cubemap" in flags else 0
    return descriptor(
        extents[-1], height, depth, FORMATS[data.dtype], channels, flags=sum(FLAGS[flag] for flag in flags)
    )


def _format(data: np.ndarray) -> driver.CUarray_format:
    return driver.CUarray_format[f"CU_AD_FORMAT_{FORMATS[data.dtype]}"]


def _by_slices(data: np.ndarray) -> np.ndarray:
    return data.reshape((1, 1, *data.shape)[-4:])


def fill(array: driver.CUarray, data: np.ndarray) -> None:
    """Copy texels, which have channels, to an array."""
    write(array, _by_slices(data))


def fetch(array: driver.CUarray, data: np.ndarray) -> np.ndarray:
    """The texels of an array, by channels, as many as ``data`` has."""
    return read(array, _by_slices(data).shape, data.dtype).reshape(data.shape)


class Textures:
    """Makes objects, and destroys all of them at the end."""

    def __init__(self, device: int = 0) -> None:
        Device(device).set_current()
        self._cleanup = contextlib.ExitStack()

    def close(self) -> None:
        self._cleanup.close()

    def _later(self, function: object, handle: object) -> None:
        self._cleanup.callback(lambda: ok(function(handle)))  # type: ignore[operator]

    def array(self, data: np.ndarray, shape: str, *flags: str) -> driver.CUarray:
        """An array of shape "1d", "2d" or "3d", which tells whether texels have channels."""
        data = np.ascontiguousarray(_with_channels(data, int(shape[0]) + bool({"layered", "cubemap"} & set(flags))))
        array = ok(driver.cuArray3DCreate(_description(data, shape, flags)))
        self._later(driver.cuArrayDestroy, array)
        fill(array, data[:, None] if shape == "1d" and "layered" in flags else data)
        return array

    def packed(
        self, rows: np.ndarray, width: int, height: int, format: str, channels: int, *flags: str
    ) -> driver.CUarray:
        """A 2D array of another format, filled with rows of bytes: of blocks, where the format has them."""
        wanted = descriptor(width, height, 0, format, channels, sum(FLAGS[flag] for flag in flags))
        array = ok(driver.cuArray3DCreate(wanted))
        self._later(driver.cuArrayDestroy, array)
        write(array, rows[None])
        return array

    def mipmapped(self, levels: Sequence[np.ndarray], shape: str, *flags: str) -> driver.CUmipmappedArray:
        """A mipmapped array."""
        dimensions = int(shape[0]) + bool({"layered", "cubemap"} & set(flags))
        levels = [np.ascontiguousarray(_with_channels(level, dimensions)) for level in levels]
        array = ok(driver.cuMipmappedArrayCreate(_description(levels[0], shape, flags), len(levels)))
        self._later(driver.cuMipmappedArrayDestroy, array)
        for number, level in enumerate(levels):
            one = ok(driver.cuMipmappedArrayGetLevel(array, number))
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
        linear.format, linear.numChannels = _format(data), data.shape[-1]
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
        pitched.format, pitched.numChannels = _format(data), channels
        pitched.width, pitched.height, pitched.pitchInBytes = columns, rows, 512
        return self._texture(resource, sampler)

    def surface(self, array: driver.CUarray) -> np.uint64:
        """A surface of an array made with the flag "surface"."""
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = array
        surface = ok(driver.cuSurfObjectCreate(resource))
        self._later(driver.cuSurfObjectDestroy, surface)
        return np.uint64(int(surface))

    def tensor_map(self, data: np.ndarray, encode: Callable[[int], bytes]) -> int:
        """The address of a tensor map that ``encode`` makes for a tensor, 256 bytes in front of the tensor."""
        address = int(self._memory(np.concatenate([np.zeros(256, np.uint8), data])))
        encoded = np.frombuffer(encode(address + 256), np.uint8)
        ok(driver.cuMemcpyHtoD(address, encoded.ctypes.data, encoded.nbytes))
        return address

    def _memory(self, data: np.ndarray) -> driver.CUdeviceptr:
        pointer = ok(driver.cuMemAlloc(data.nbytes))
        self._later(driver.cuMemFree, pointer)
        ok(driver.cuMemcpyHtoD(pointer, np.ascontiguousarray(data).ctypes.data, data.nbytes))
        ok(driver.cuCtxSynchronize())  # as in `write`
        return pointer

    def _texture(self, resource: driver.CUDA_RESOURCE_DESC, sampler: Sampler) -> np.uint64:
        texture = ok(driver.cuTexObjectCreate(resource, sampler.descriptor(), None))
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
