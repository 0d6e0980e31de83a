"""Drive CUDA GPUs from Python, and run the same programs where there is no GPU.

The names below are imported when they are first used, so ``import cupola`` costs next to nothing; CUDA itself is
loaded by the first call that needs it.
"""

import sys as _sys
from importlib import import_module as _import_module

# Type checkers take the names from here; at run time __getattr__ finds them. (typing is slow to import.)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola import bindings as bindings
    from cupola import cpu as cpu
    from cupola import graph as graph
    from cupola import pathfinder as pathfinder
    from cupola import typing as typing
    from cupola import utils as utils
    from cupola.core._buffer import Buffer as Buffer
    from cupola.core._context import Context as Context
    from cupola.core._device import Device as Device
    from cupola.core._device_memory import DeviceMemoryResource as DeviceMemoryResource
    from cupola.core._errors import CompilerWarning as CompilerWarning
    from cupola.core._errors import CUDAError as CUDAError
    from cupola.core._errors import CUDAWarning as CUDAWarning
    from cupola.core._errors import NVRTCError as NVRTCError
    from cupola.core._event import Event as Event
    from cupola.core._graph_memory import GraphMemoryResource as GraphMemoryResource
    from cupola.core._host import Host as Host
    from cupola.core._kernel import Kernel as Kernel
    from cupola.core._launch import launch as launch
    from cupola.core._launch_config import LaunchConfig as LaunchConfig
    from cupola.core._linker import Linker as Linker
    from cupola.core._linker_options import LinkerOptions as LinkerOptions
    from cupola.core._managed_memory import ManagedBuffer as ManagedBuffer
    from cupola.core._managed_memory import ManagedMemoryResource as ManagedMemoryResource
    from cupola.core._memory_resource import MemoryResource as MemoryResource
    from cupola.core._object_code import ObjectCode as ObjectCode
    from cupola.core._options import DeviceMemoryResourceOptions as DeviceMemoryResourceOptions
    from cupola.core._options import EventOptions as EventOptions
    from cupola.core._options import ManagedMemoryResourceOptions as ManagedMemoryResourceOptions
    from cupola.core._options import PinnedMemoryResourceOptions as PinnedMemoryResourceOptions
    from cupola.core._options import StreamOptions as StreamOptions
    from cupola.core._options import VirtualMemoryResourceOptions as VirtualMemoryResourceOptions
    from cupola.core._pinned_memory import PinnedMemoryResource as PinnedMemoryResource
    from cupola.core._program import Program as Program
    from cupola.core._program_options import ProgramOptions as ProgramOptions
    from cupola.core._stream import LEGACY_DEFAULT_STREAM as LEGACY_DEFAULT_STREAM
    from cupola.core._stream import PER_THREAD_DEFAULT_STREAM as PER_THREAD_DEFAULT_STREAM
    from cupola.core._stream import Stream as Stream
    from cupola.core._unpooled import LegacyPinnedMemoryResource as LegacyPinnedMemoryResource
    from cupola.core._virtual_memory import VirtualMemoryResource as VirtualMemoryResource

    __version__: str

# Name -> module that has it.
_HOMES = {
    "Buffer": "core._buffer",
    "CUDAError": "core._errors",
    "CUDAWarning": "core._errors",
    "CompilerWarning": "core._errors",
    "Context": "core._context",
    "Device": "core._device",
    "DeviceMemoryResource": "core._device_memory",
    "DeviceMemoryResourceOptions": "core._options",
    "Event": "core._event",
    "EventOptions": "core._options",
    "GraphMemoryResource": "core._graph_memory",
    "Host": "core._host",
    "Kernel": "core._kernel",
    "LEGACY_DEFAULT_STREAM": "core._stream",
    "LaunchConfig": "core._launch_config",
    "LegacyPinnedMemoryResource": "core._unpooled",
    "Linker": "core._linker",
    "LinkerOptions": "core._linker_options",
    "ManagedBuffer": "core._managed_memory",
    "ManagedMemoryResource": "core._managed_memory",
    "ManagedMemoryResourceOptions": "core._options",
    "MemoryResource": "core._memory_resource",
    "NVRTCError": "core._errors",
    "ObjectCode": "core._object_code",
    "PER_THREAD_DEFAULT_STREAM": "core._stream",
    "PinnedMemoryResource": "core._pinned_memory",
    "PinnedMemoryResourceOptions": "core._options",
    "Program": "core._program",
    "ProgramOptions": "core._program_options",
    "Stream": "core._stream",
    "StreamOptions": "core._options",
    "VirtualMemoryResource": "core._virtual_memory",
    "VirtualMemoryResourceOptions": "core._options",
    "launch": "core._launch",
}

_SUBMODULES = frozenset({"bindings", "cpu", "graph", "pathfinder", "typing", "utils"})

# Older places of names that have moved.
_MOVED = {"StridedMemoryView": "utils", "args_viewable_as_strided_memory": "utils"}

# Chapters of cuda.core that are not there yet.
_LATER = frozenset({
    "ContextOptions", "DeviceResources", "GraphicsResource", "SMResource", "SMResourceOptions", "TensorMapDescriptor",
    "TensorMapDescriptorOptions", "WorkqueueResource", "WorkqueueResourceOptions", "checkpoint", "system", "texture",
})  # fmt: skip

__all__ = sorted([*_HOMES, *_SUBMODULES])


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(_import_module(f"cupola.{home}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return _import_module(f"cupola.{name}")
    if name in _MOVED:
        import warnings

        warnings.warn(f"cupola.{name} is now cupola.{_MOVED[name]}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(_import_module(f"cupola.{_MOVED[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("cupola")
    if name in _LATER:
        raise AttributeError(f"cupola.{name} is not there yet: docs/migrate.md lists what differs from cuda.core")
    raise AttributeError(f"module 'cupola' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


# Completing a name at the prompt must not run properties. Where nobody completes names, this costs nothing.
if "rlcompleter" in _sys.modules or _sys.flags.interactive:
    from cupola import _completion as _completion
