"""``cupy.cuda``: devices, streams, events, memory, graphs and the functions of CUDA."""

from __future__ import annotations

from typing import Any

from cupola.standins.cupy.cuda import compiler as compiler
from cupola.standins.cupy.cuda import device as device
from cupola.standins.cupy.cuda import driver as driver
from cupola.standins.cupy.cuda import function as function
from cupola.standins.cupy.cuda import graph as graph
from cupola.standins.cupy.cuda import memory as memory
from cupola.standins.cupy.cuda import memory_hook as memory_hook
from cupola.standins.cupy.cuda import memory_hooks as memory_hooks
from cupola.standins.cupy.cuda import nvtx as nvtx
from cupola.standins.cupy.cuda import pinned_memory as pinned_memory
from cupola.standins.cupy.cuda import profiler as profiler
from cupola.standins.cupy.cuda import runtime as runtime
from cupola.standins.cupy.cuda import stream as stream
from cupola.standins.cupy.cuda.device import Device as Device
from cupola.standins.cupy.cuda.device import get_device_id as get_device_id
from cupola.standins.cupy.cuda.function import Function as Function
from cupola.standins.cupy.cuda.function import Module as Module
from cupola.standins.cupy.cuda.graph import Graph as Graph
from cupola.standins.cupy.cuda.memory import BaseMemory as BaseMemory
from cupola.standins.cupy.cuda.memory import ManagedMemory as ManagedMemory
from cupola.standins.cupy.cuda.memory import Memory as Memory
from cupola.standins.cupy.cuda.memory import MemoryAsync as MemoryAsync
from cupola.standins.cupy.cuda.memory import MemoryAsyncPool as MemoryAsyncPool
from cupola.standins.cupy.cuda.memory import MemoryPointer as MemoryPointer
from cupola.standins.cupy.cuda.memory import MemoryPool as MemoryPool
from cupola.standins.cupy.cuda.memory import PythonFunctionAllocator as PythonFunctionAllocator
from cupola.standins.cupy.cuda.memory import UnownedMemory as UnownedMemory
from cupola.standins.cupy.cuda.memory import alloc as alloc
from cupola.standins.cupy.cuda.memory import get_allocator as get_allocator
from cupola.standins.cupy.cuda.memory import malloc_async as malloc_async
from cupola.standins.cupy.cuda.memory import malloc_managed as malloc_managed
from cupola.standins.cupy.cuda.memory import set_allocator as set_allocator
from cupola.standins.cupy.cuda.memory import using_allocator as using_allocator
from cupola.standins.cupy.cuda.memory_hook import MemoryHook as MemoryHook
from cupola.standins.cupy.cuda.pinned_memory import PinnedMemory as PinnedMemory
from cupola.standins.cupy.cuda.pinned_memory import PinnedMemoryPointer as PinnedMemoryPointer
from cupola.standins.cupy.cuda.pinned_memory import PinnedMemoryPool as PinnedMemoryPool
from cupola.standins.cupy.cuda.pinned_memory import alloc_pinned_memory as alloc_pinned_memory
from cupola.standins.cupy.cuda.pinned_memory import set_pinned_memory_allocator as set_pinned_memory_allocator
from cupola.standins.cupy.cuda.profiler import profile as profile
from cupola.standins.cupy.cuda.stream import Event as Event
from cupola.standins.cupy.cuda.stream import ExternalStream as ExternalStream
from cupola.standins.cupy.cuda.stream import Stream as Stream
from cupola.standins.cupy.cuda.stream import get_current_stream as get_current_stream
from cupola.standins.cupy.cuda.stream import get_elapsed_time as get_elapsed_time

_ELSEWHERE = {
    "CFunctionAllocator": "PythonFunctionAllocator",
    "cublas": "cupola.bindings.cublas",
    "get_cublas_handle": "cupola.bindings.cublas",
    "cub": "sums, sorts and running totals are kernels of cupola",
    "thrust": "sorts are kernels of cupola",
    "cufft": "cupola.bindings.cufft, and cupyx.scipy.fft.get_fft_plan",
    "curand": "cupola.bindings.curand",
    "cusolver": "cupola.bindings.cusolver_dn",
    "cusparse": "cupola.bindings.cusparse",
    "cutensor": "cupy.einsum",
    "cudnn": "cupy.einsum, and cupyx.scipy.signal for convolutions",
    "nvrtc": "cupola.bindings.nvrtc",
    "nccl": "cupola.bindings.nccl",
    "texture": "cupola.texture",
}


def is_available() -> bool:
    """Whether there is a device."""
    return bool(runtime.getDeviceCount() > 0)


def get_local_runtime_version() -> int:
    """The version of the CUDA runtime."""
    return int(runtime.runtimeGetVersion())


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise AttributeError(f"cupola's stand-in for CuPy has no cupy.cuda.{name}: there is {_ELSEWHERE[name]}")
    raise AttributeError(f"module 'cupy.cuda' has no attribute {name!r} in cupola's stand-in")
