"""Arrays for programs of packages above CUDA, which take anything that says where its memory is."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.core import Device, PinnedMemoryResource

device = Device()
device.set_current()
stream = device.create_stream()


class Array:
    """An array in memory that the host and the device can use, with Triton's and CUDA's interfaces."""

    def __init__(self, host: np.ndarray) -> None:
        self._buffer = PinnedMemoryResource().allocate(host.nbytes, stream=stream)
        stream.sync()  # it is used by the host, and in other streams
        self.host: Any = np.from_dlpack(self._buffer).view(host.dtype)[: host.size].reshape(host.shape)
        self.host[...] = host
        self.dtype, self.shape = host.dtype, host.shape
        self.__cuda_array_interface__ = {
            "shape": host.shape,
            "typestr": host.dtype.str,
            "data": (self.data_ptr(), False),
            "version": 3,
        }

    def data_ptr(self) -> int:
        return int(self._buffer.handle)

    def stride(self, axis: int) -> int:
        return int(self.host.strides[axis] // self.host.itemsize)


random = np.random.default_rng(5)


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return Array(random.standard_normal(shape).astype(dtype))


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return Array(np.zeros(shape, dtype))


def agree(found: Array, expected: np.ndarray, error: float) -> None:
    """Wait for the device, and compare."""
    device.sync()
    np.testing.assert_allclose(found.host.astype(np.float64), expected, rtol=error, atol=error)


def softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def main(programs: dict[str, Any], names: list[str]) -> None:
    """Run the programs of these names, or all of them."""
    for name in names or programs:
        programs[name]()
        print(name, "agrees with NumPy")
