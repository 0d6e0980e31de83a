"""``cupyx.jit``: kernels written in Python, translated to CUDA C++ and compiled by NVRTC.

Arguments say what types parameters have, and C++ what types expressions have. A name is declared where it is first
assigned, and lives to the end of that block. What is not translated is a NotImplementedError with its line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.numpy._ndarray import ndarray
from cupola.numpy._sharing import handed_over
from cupola.standins.cupy._kernels import TYPES, compiled, layout, scalar
from cupola.standins.cupy.cuda.stream import core_stream
from cupola.standins.cupyx.jit._builtins import PREAMBLE as _PREAMBLE
from cupola.standins.cupyx.jit._builtins import atomic_add as atomic_add
from cupola.standins.cupyx.jit._builtins import atomic_and as atomic_and
from cupola.standins.cupyx.jit._builtins import atomic_cas as atomic_cas
from cupola.standins.cupyx.jit._builtins import atomic_dec as atomic_dec
from cupola.standins.cupyx.jit._builtins import atomic_exch as atomic_exch
from cupola.standins.cupyx.jit._builtins import atomic_inc as atomic_inc
from cupola.standins.cupyx.jit._builtins import atomic_max as atomic_max
from cupola.standins.cupyx.jit._builtins import atomic_min as atomic_min
from cupola.standins.cupyx.jit._builtins import atomic_or as atomic_or
from cupola.standins.cupyx.jit._builtins import atomic_sub as atomic_sub
from cupola.standins.cupyx.jit._builtins import atomic_xor as atomic_xor
from cupola.standins.cupyx.jit._builtins import blockDim as blockDim
from cupola.standins.cupyx.jit._builtins import blockIdx as blockIdx
from cupola.standins.cupyx.jit._builtins import grid as grid
from cupola.standins.cupyx.jit._builtins import gridDim as gridDim
from cupola.standins.cupyx.jit._builtins import gridsize as gridsize
from cupola.standins.cupyx.jit._builtins import laneid as laneid
from cupola.standins.cupyx.jit._builtins import range as range
from cupola.standins.cupyx.jit._builtins import shared_memory as shared_memory
from cupola.standins.cupyx.jit._builtins import shfl_down_sync as shfl_down_sync
from cupola.standins.cupyx.jit._builtins import shfl_sync as shfl_sync
from cupola.standins.cupyx.jit._builtins import shfl_up_sync as shfl_up_sync
from cupola.standins.cupyx.jit._builtins import shfl_xor_sync as shfl_xor_sync
from cupola.standins.cupyx.jit._builtins import syncthreads as syncthreads
from cupola.standins.cupyx.jit._builtins import syncwarp as syncwarp
from cupola.standins.cupyx.jit._builtins import threadIdx as threadIdx
from cupola.standins.cupyx.jit._builtins import warpsize as warpsize
from cupola.standins.cupyx.jit._translate import Translator as _Translator

__name__ = "cupyx.jit"


class _JitRawKernel:
    """A kernel in Python.

    Parameters
    ----------
    function : callable
        The function.
    device : bool
        Whether kernels call it, and the host does not.
    """

    def __init__(self, function: Callable[..., Any], device: bool) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self._function, self._device = function, device
        self._sources: dict[Any, str] = {}

    def _translated(self) -> str:
        return _Translator(self._function).device()

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0, stream: Any = None) -> None:
        if self._device:
            raise RuntimeError(f"{self.__name__} is a function of the device: kernels call it")
        parameters = self._function.__code__.co_argcount
        if len(args) != parameters:
            raise TypeError(f"{self.__name__}() takes {parameters} arguments, and {len(args)} were given")
        queue = core_stream(stream)
        passed: list[Any] = []
        types: list[tuple[str, int | None]] = []
        for value in args:
            if isinstance(value, ndarray):
                value._compute_now()
                plain = handed_over(value, queue)
                types.append((TYPES[value.dtype.char], value.ndim))
                passed.append(layout(int(plain.handle) if plain.size else 0, plain.size, plain.shape, plain.strides))
            elif isinstance(value, (bool, int, float, complex, numpy.generic)):
                dtype = numpy.asarray(value).dtype
                if dtype.char not in TYPES:
                    raise TypeError(f"an argument of {self.__name__}() is a {dtype}, which kernels have not")
                types.append((TYPES[dtype.char], None))
                passed.append(scalar(value, dtype))
            else:
                raise TypeError(
                    f"an argument of {self.__name__}() is a {type(value).__name__}: arrays and numbers are taken"
                )
        key = tuple(types)
        if key not in self._sources:
            made = _Translator(self._function).kernel(self.__name__, types)
            self._sources[key] = f"#include <cupy/carray.cuh>\n{_PREAMBLE}\n{made}"
        kernel = compiled(self._sources[key], self.__name__, (), queue.device.device_id)
        launch(queue, LaunchConfig(grid=grid, block=block, shmem_size=shared_mem), kernel, *passed)

    def __getitem__(self, shape: Any) -> Callable[..., None]:
        grid, block, *more = shape
        grid, block = ((one,) if isinstance(one, int) else tuple(one) for one in (grid, block))
        return lambda *args: self(grid, block, args, *more)

    @property
    def cached_codes(self) -> dict[Any, str]:
        """dict: the CUDA C++ for each types of arguments that there were."""
        return dict(self._sources)

    @property
    def cached_code(self) -> str:
        """str: the CUDA C++, if there was one kind of arguments."""
        if len(self._sources) != 1:
            raise RuntimeError(f"{self.__name__} was called with {len(self._sources)} kinds of arguments: cached_codes")
        return next(iter(self._sources.values()))


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], _JitRawKernel]:
    """Make a kernel of a Python function, or with ``device=True`` a function that kernels call."""
    if mode not in ("cuda", "numpy"):
        raise ValueError(f"mode is {mode!r}: cuda and numpy are known")
    if mode == "numpy":
        raise NotImplementedError("rawkernel(mode='numpy'): types are those of C++ here, mode='cuda'")
    return lambda function: _JitRawKernel(function, device)


def __getattr__(name: str) -> Any:
    from cupola.numpy._known import nearest

    instead = {"cg": "syncthreads and syncwarp are there", "cub": "shuffles and shared memory are there",
               "thrust": "cupy has sorts and searches"}.get(name)  # fmt: skip
    near = "" if name.startswith("_") else nearest(name, globals(), instead)
    raise AttributeError(f"cupola's stand-in for CuPy has no cupyx.jit.{name}{near}")
