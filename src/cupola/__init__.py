"""Drive CUDA GPUs from Python, and run the same programs where there is no GPU.

The names below are imported when they are first used, so ``import cupola`` is fast. The first call that needs CUDA
loads it.
"""

import sys as _sys
from importlib import import_module as _import_module

from cupola import _above

# Type checkers take the names from here; at run time __getattr__ finds them. (typing is slow to import.)
TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola import bindings as bindings
    from cupola import checkpoint as checkpoint
    from cupola import cpu as cpu
    from cupola import graph as graph
    from cupola import numpy as numpy
    from cupola import pathfinder as pathfinder
    from cupola import system as system
    from cupola import texture as texture
    from cupola import typing as typing
    from cupola import utils as utils
    from cupola.core._compile import compile as compile
    from cupola.core.array._array import Array as Array
    from cupola.core.base._errors import CompilerWarning as CompilerWarning
    from cupola.core.base._errors import CUDAError as CUDAError
    from cupola.core.base._errors import CUDAWarning as CUDAWarning
    from cupola.core.base._errors import NVRTCError as NVRTCError
    from cupola.core.base._errors import OutOfMemoryError as OutOfMemoryError
    from cupola.core.device._context import Context as Context
    from cupola.core.device._device import Device as Device
    from cupola.core.device._event import Event as Event
    from cupola.core.device._memory_resource import MemoryResource as MemoryResource
    from cupola.core.device._options import ContextOptions as ContextOptions
    from cupola.core.device._options import EventOptions as EventOptions
    from cupola.core.device._options import SMResourceOptions as SMResourceOptions
    from cupola.core.device._options import StreamOptions as StreamOptions
    from cupola.core.device._options import WorkqueueResourceOptions as WorkqueueResourceOptions
    from cupola.core.device._resources import DeviceResources as DeviceResources
    from cupola.core.device._resources import SMResource as SMResource
    from cupola.core.device._resources import WorkqueueResource as WorkqueueResource
    from cupola.core.device._stream import LEGACY_DEFAULT_STREAM as LEGACY_DEFAULT_STREAM
    from cupola.core.device._stream import PER_THREAD_DEFAULT_STREAM as PER_THREAD_DEFAULT_STREAM
    from cupola.core.device._stream import Stream as Stream
    from cupola.core.exchange._tensor_map import TensorMapDescriptor as TensorMapDescriptor
    from cupola.core.exchange._tensor_map_options import TensorMapDescriptorOptions as TensorMapDescriptorOptions
    from cupola.core.graphics._graphics_resource import GraphicsResource as GraphicsResource
    from cupola.core.launch._arguments import In as In
    from cupola.core.launch._arguments import InOut as InOut
    from cupola.core.launch._arguments import Out as Out
    from cupola.core.launch._launch import launch as launch
    from cupola.core.launch._launch_config import LaunchConfig as LaunchConfig
    from cupola.core.memory._buffer import Buffer as Buffer
    from cupola.core.memory._device_memory import DeviceMemoryResource as DeviceMemoryResource
    from cupola.core.memory._graph_memory import GraphMemoryResource as GraphMemoryResource
    from cupola.core.memory._host import Host as Host
    from cupola.core.memory._managed_memory import ManagedBuffer as ManagedBuffer
    from cupola.core.memory._managed_memory import ManagedMemoryResource as ManagedMemoryResource
    from cupola.core.memory._options import DeviceMemoryResourceOptions as DeviceMemoryResourceOptions
    from cupola.core.memory._options import ManagedMemoryResourceOptions as ManagedMemoryResourceOptions
    from cupola.core.memory._options import PinnedMemoryResourceOptions as PinnedMemoryResourceOptions
    from cupola.core.memory._options import VirtualMemoryResourceOptions as VirtualMemoryResourceOptions
    from cupola.core.memory._pinned_memory import PinnedMemoryResource as PinnedMemoryResource
    from cupola.core.memory._unpooled import LegacyPinnedMemoryResource as LegacyPinnedMemoryResource
    from cupola.core.memory._virtual_memory import VirtualMemoryResource as VirtualMemoryResource
    from cupola.core.program._kernel import Kernel as Kernel
    from cupola.core.program._linker import Linker as Linker
    from cupola.core.program._linker_options import LinkerOptions as LinkerOptions
    from cupola.core.program._object_code import ObjectCode as ObjectCode
    from cupola.core.program._program import Program as Program
    from cupola.core.program._program_options import ProgramOptions as ProgramOptions

    __version__: str

# Name -> module that has it.
_HOMES = {
    "Array": "core.array._array",
    "Buffer": "core.memory._buffer",
    "CUDAError": "core.base._errors",
    "CUDAWarning": "core.base._errors",
    "CompilerWarning": "core.base._errors",
    "Context": "core.device._context",
    "ContextOptions": "core.device._options",
    "Device": "core.device._device",
    "DeviceMemoryResource": "core.memory._device_memory",
    "DeviceMemoryResourceOptions": "core.memory._options",
    "DeviceResources": "core.device._resources",
    "Event": "core.device._event",
    "EventOptions": "core.device._options",
    "GraphMemoryResource": "core.memory._graph_memory",
    "GraphicsResource": "core.graphics._graphics_resource",
    "Host": "core.memory._host",
    "In": "core.launch._arguments",
    "InOut": "core.launch._arguments",
    "Kernel": "core.program._kernel",
    "LEGACY_DEFAULT_STREAM": "core.device._stream",
    "LaunchConfig": "core.launch._launch_config",
    "LegacyPinnedMemoryResource": "core.memory._unpooled",
    "Linker": "core.program._linker",
    "LinkerOptions": "core.program._linker_options",
    "ManagedBuffer": "core.memory._managed_memory",
    "ManagedMemoryResource": "core.memory._managed_memory",
    "ManagedMemoryResourceOptions": "core.memory._options",
    "MemoryResource": "core.device._memory_resource",
    "NVRTCError": "core.base._errors",
    "ObjectCode": "core.program._object_code",
    "Out": "core.launch._arguments",
    "OutOfMemoryError": "core.base._errors",
    "PER_THREAD_DEFAULT_STREAM": "core.device._stream",
    "PinnedMemoryResource": "core.memory._pinned_memory",
    "PinnedMemoryResourceOptions": "core.memory._options",
    "Program": "core.program._program",
    "ProgramOptions": "core.program._program_options",
    "SMResource": "core.device._resources",
    "SMResourceOptions": "core.device._options",
    "Stream": "core.device._stream",
    "StreamOptions": "core.device._options",
    "TensorMapDescriptor": "core.exchange._tensor_map",
    "TensorMapDescriptorOptions": "core.exchange._tensor_map_options",
    "VirtualMemoryResource": "core.memory._virtual_memory",
    "VirtualMemoryResourceOptions": "core.memory._options",
    "WorkqueueResource": "core.device._resources",
    "WorkqueueResourceOptions": "core.device._options",
    "compile": "core._compile",
    "launch": "core.launch._launch",
}

# Other names that lower folders ask for (cupola._above): their methods return, or build on, classes above their own.
_ABOVE = {
    "ExecutableGraphNode": "graph._executable_nodes",
    "GraphBuilder": "graph._builder",
    "GraphDefinition": "graph._definition",
    "GraphNode": "graph._node",
    "StridedMemoryView": "core.exchange._view",
    "SynchronousMemoryResource": "core.memory._unpooled",
    "TextureObject": "core.texture._objects",
    "array_as_ndarray": "core.array._transfer",
    "array_on": "core.array._creation",
    "array_to_numpy": "core.array._transfer",
    "buffer_as_ndarray": "core.array._transfer",
    "complete_arrays": "numpy._namespace",
    "copy_array_to": "core.array._transfer",
    "copy_arrays": "core.exchange._copies",
    "copy_strided": "core.launch._strided_copy",
    "copy_to_array": "core.array._transfer",
    "create_mipmapped_array": "core.texture._array",
    "create_opaque_array": "core.texture._array",
    "create_surface_object": "core.texture._objects",
    "empty_on": "core.array._array",
    "export_buffer": "core.memory._ipc_memory",
    "first_elements": "core.array._transfer",
    "full_on": "core.array._creation",
    "html_of": "core._texts",
    "import_buffer": "core.memory._ipc_memory",
    "launch_with_copies": "core.launch._host_arrays",
    "launcher_of": "core.launch._launcher",
    "occupancy_of": "core.launch._occupancy",
    "prepare": "core.launch._prepared",
    "reduce_array": "core.array._creation",
    "reduce_buffer": "core.memory._ipc_memory",
    "reduce_sent": "core.memory._ipc_memory",
    "register_argument_type": "core.launch._arguments",
    "request": "bindings._provider",
    "resources_of_context": "core.device._resources",
    "system_device": "system._device",
    "text_of": "core._texts",
    "zeros_on": "core.array._creation",
}

_SUBMODULES = frozenset(
    {"bindings", "checkpoint", "cpu", "graph", "numpy", "pathfinder", "system", "texture", "typing", "utils"}
)

# Older places of names that have moved.
_MOVED = {"StridedMemoryView": "utils", "args_viewable_as_strided_memory": "utils"}

__all__ = sorted([*_HOMES, *_SUBMODULES])


def _look_up(name: str) -> object:
    return getattr(_import_module(f"cupola.{_HOMES.get(name) or _ABOVE[name]}"), name)


_above.hand_down(_look_up)


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
    advice = "" if name.startswith("__") else _import_module("cupola._signposts").advice("", name)
    raise AttributeError(f"module 'cupola' has no attribute {name!r}{advice}", name=name, obj=_sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


# Completing a name at the prompt must not run properties. Outside of a prompt this costs nothing.
if "rlcompleter" in _sys.modules or _sys.flags.interactive:
    from cupola import _completion as _completion

# Errors in notebooks end where the program called cupola.
if "IPython" in _sys.modules:
    from cupola import _notebook as _notebook
