"""Copy NumPy arrays to a device and back, through pinned memory: what all the examples share."""

from __future__ import annotations

from typing import Any

import numpy as np

from cupola import Buffer, Device, LegacyPinnedMemoryResource, ObjectCode, Program, ProgramOptions, Stream

_pinned = LegacyPinnedMemoryResource()


def build(dev: Device, source: str, *name_expressions: str) -> ObjectCode:
    """Compile CUDA C++ for the device; with line information, which the CPU device's diagnostics use."""
    options = ProgramOptions(std="c++17", arch=f"sm_{dev.arch}", lineinfo=True)
    return Program(source, code_type="c++", options=options).compile("cubin", name_expressions=name_expressions)


def to_device(dev: Device, array: np.ndarray[Any, Any], stream: Stream) -> Buffer:
    """Return a new device buffer that holds the array's elements in C order."""
    with _pinned.allocate(array.nbytes) as host:
        np.from_dlpack(host).view(array.dtype)[:] = array.ravel()
        buffer = dev.allocate(array.nbytes, stream=stream)
        buffer.copy_from(host, stream=stream)
        stream.sync()
    return buffer


def to_host(buffer: Buffer, dtype: Any, stream: Stream) -> np.ndarray[Any, Any]:
    """Return a new one-dimensional array of what the buffer holds once the stream has got there."""
    with _pinned.allocate(buffer.size) as host:
        buffer.copy_to(host, stream=stream)
        stream.sync()
        copy: np.ndarray[Any, Any] = np.from_dlpack(host).view(dtype).copy()
    return copy
