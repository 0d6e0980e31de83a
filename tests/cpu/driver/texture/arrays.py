"""CUDA arrays in tests: descriptors, and copies of whole arrays from and to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from cupola.bindings import driver
from tests.cpu.driver.calls import ok

FORMAT = driver.CUarray_format
TYPE = driver.CUmemorytype
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8  # the flags CUDA_ARRAY3D_*

DTYPES = {
    "UNSIGNED_INT8": np.uint8,
    "UNSIGNED_INT16": np.uint16,
    "UNSIGNED_INT32": np.uint32,
    "SIGNED_INT8": np.int8,
    "SIGNED_INT16": np.int16,
    "SIGNED_INT32": np.int32,
    "HALF": np.float16,
    "FLOAT": np.float32,
}


def descriptor(
    width: int, height: int = 0, depth: int = 0, format: str | int = "FLOAT", channels: int = 1, flags: int = 0
) -> Any:
    d = driver.CUDA_ARRAY3D_DESCRIPTOR()
    d.Width, d.Height, d.Depth = width, height, depth
    d.Format = getattr(FORMAT, f"CU_AD_FORMAT_{format}") if isinstance(format, str) else format
    d.NumChannels, d.Flags = channels, flags
    return d


def fields(d: Any) -> tuple[Any, ...]:
    return (d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags)


def host_side(form: Any, side: str, data: np.ndarray[Any, Any]) -> None:
    """Memory of the host as one side of a form: data[slice, row, byte], without gaps but in its rows and slices."""
    setattr(form, f"{side}MemoryType", TYPE.CU_MEMORYTYPE_HOST)
    setattr(form, f"{side}Host", data.ctypes.data)
    setattr(form, f"{side}Pitch", data.strides[1])
    setattr(form, f"{side}Height", data.strides[0] // data.strides[1])


def array_side(form: Any, side: str, array: Any, x: int = 0, y: int = 0, z: int = 0) -> None:
    setattr(form, f"{side}MemoryType", TYPE.CU_MEMORYTYPE_ARRAY)
    setattr(form, f"{side}Array", array)
    for name, value in (("XInBytes", x), ("Y", y), ("Z", z)):
        setattr(form, f"{side}{name}", value)


def device_side(form: Any, side: str, address: int, pitch: int, height: int) -> None:
    setattr(form, f"{side}MemoryType", TYPE.CU_MEMORYTYPE_DEVICE)
    setattr(form, f"{side}Device", address)
    setattr(form, f"{side}Pitch", pitch)
    setattr(form, f"{side}Height", height)


def box(width: int, height: int = 1, depth: int = 1) -> Any:
    form = driver.CUDA_MEMCPY3D()
    form.WidthInBytes, form.Height, form.Depth = width, height, depth
    return form


def write(array: Any, data: np.ndarray[Any, Any]) -> None:
    """Fill an array from data[slice or layer, row, texel...]."""
    rows = as_bytes(data)
    form = box(rows.shape[2], rows.shape[1], rows.shape[0])
    host_side(form, "src", rows)
    array_side(form, "dst", array)
    ok(driver.cuMemcpy3D(form))
    ok(driver.cuCtxSynchronize())  # the copy of pageable memory may return before the array has it


def read(array: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """All of an array, as data[slice or layer, row, texel...]."""
    data = np.zeros(shape, dtype)
    rows = as_bytes(data)
    form = box(rows.shape[2], rows.shape[1], rows.shape[0])
    array_side(form, "src", array)
    host_side(form, "dst", rows)
    ok(driver.cuMemcpy3D(form))
    return data


def as_bytes(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    assert data.flags.c_contiguous
    return data.view(np.uint8).reshape(data.shape[0], data.shape[1], -1)


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, start: int = 0) -> np.ndarray[Any, Any]:
    """Small numbers, other ones for other places."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 + start) % 127).astype(dtype).reshape(shape)
