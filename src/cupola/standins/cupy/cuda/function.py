"""Kernels and modules of machine code, with CuPy's interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy

from cupola.core.array._array import Array
from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.core.program._object_code import ObjectCode
from cupola.numpy._ndarray import ndarray
from cupola.numpy._sharing import handed_over
from cupola.standins.cupy._errors import CUDADriverError, as_cupy
from cupola.standins.cupy.cuda.memory import MemoryPointer, UnownedMemory, pointer_of
from cupola.standins.cupy.cuda.stream import core_stream


def arguments_of(args: Any, queue: Any) -> list[Any]:
    """What a kernel is given: arrays as pointers, Python's numbers as CuPy passes them."""
    given: list[Any] = []
    for value in args:
        if isinstance(value, ndarray):
            given.append(handed_over(value, queue))
        elif isinstance(value, (Array, numpy.generic)):
            given.append(value)
        elif isinstance(value, (MemoryPointer, UnownedMemory)):
            given.append(int(value))
        elif isinstance(value, bool):
            given.append(numpy.bool_(value))
        elif isinstance(value, int):
            given.append(value)
        elif isinstance(value, float):
            given.append(numpy.float64(value))
        elif isinstance(value, complex):
            given.append(numpy.complex128(value))
        elif isinstance(value, numpy.ndarray):
            if value.ndim:
                raise TypeError("an array of NumPy, which is in the memory of the host: cupy.asarray(a) copies it")
            given.append(value[()])
        else:
            given.append(value)
    return given


def launch_kernel(
    kernel: Any, grid: Any, block: Any, args: Any, shared_mem: int, stream: Any, cooperative: bool = False
) -> None:
    """Launch as CuPy does: grid and block are tuples of one to three ints."""
    queue = core_stream(stream)
    config = LaunchConfig(
        grid=tuple(map(int, grid)), block=tuple(map(int, block)), shmem_size=shared_mem, is_cooperative=cooperative
    )
    with as_cupy(CUDADriverError):
        launch(queue, config, kernel, *arguments_of(args, queue))


class Function:
    """A kernel of a module, which is called with grid, block and arguments."""

    def __init__(self, kernel: Any, module: Any = None) -> None:
        self._kernel, self.module = kernel, module

    @property
    def ptr(self) -> int:
        """int: the handle of the driver."""
        return int(self._kernel.handle)

    def __call__(
        self,
        grid: Any,
        block: Any,
        args: Any,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        launch_kernel(self._kernel, grid, block, args, shared_mem, stream, enable_cooperative_groups)


def load_object(code: bytes) -> ObjectCode:
    """Machine code or PTX, by how it begins."""
    if code[:4] == b"\x7fELF":
        return ObjectCode.from_cubin(code)
    if code[:4] == b"\x50\xed\x55\xba":
        return ObjectCode.from_fatbin(code)
    return ObjectCode.from_ptx(code)


class Module:
    """Machine code, or PTX, that was loaded."""

    def __init__(self) -> None:
        self._code: Any = None

    @property
    def ptr(self) -> int:
        """int: the handle of the driver."""
        return int(self._code.get_module())

    def load_file(self, filename: str) -> None:
        """Load a file."""
        self._code = load_object(Path(filename).read_bytes())

    def load(self, cubin: bytes | str) -> None:
        """Load code from memory."""
        self._code = load_object(cubin.encode() if isinstance(cubin, str) else cubin)

    def get_function(self, name: str) -> Function:
        """A kernel."""
        with as_cupy(CUDADriverError):
            return Function(self._code.get_kernel(name), self)

    def get_global_var(self, name: str) -> MemoryPointer:
        """A variable of the device."""
        with as_cupy(CUDADriverError):
            return pointer_of(self._code.get_global(name))
