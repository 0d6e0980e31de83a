"""Names for annotations, and the strings that options take, as enums.

The enums are :class:`enum.StrEnum`: members equal their strings, and every API takes either.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol, SupportsInt, TypeAlias

if TYPE_CHECKING:
    from cupola.core.device._resources import SMResource, WorkqueueResource

#: An address on the device, as an int or as a ``cupola.bindings.driver.CUdeviceptr``.
DevicePointerType: TypeAlias = SupportsInt | None
#: What a green context is made of (:class:`.ContextOptions`).
DeviceResourcesType: TypeAlias = Sequence["SMResource | WorkqueueResource"]
ProcessStateType: TypeAlias = Literal["running", "locked", "checkpointed", "failed"]


class IsStreamType(Protocol):
    """Any object with a stream: ``__cuda_stream__()`` returns the pair (0, address of the ``CUstream``)."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the pair (0, address of the ``CUstream``)."""
        ...


class SourceCodeType(StrEnum):
    """What a :class:`.Program` is made from."""

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(StrEnum):
    """What an :class:`.ObjectCode` holds."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"


class CompilerBackendType(StrEnum):
    """The library that compiles or links."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class PCHStatusType(StrEnum):
    """The status of a precompiled header."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"


class GraphConditionalType(StrEnum):
    """Kinds of conditional graph nodes."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


class GraphMemoryType(StrEnum):
    """The kind of memory of a graph's allocation."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"


class ManagedMemoryLocationType(StrEnum):
    """The preferred location of managed memory."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


class VirtualMemoryHandleType(StrEnum):
    """How virtual memory is shared between processes."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryLocationType(StrEnum):
    """Where virtual memory is backed."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"


class VirtualMemoryGranularityType(StrEnum):
    """How virtual memory sizes are rounded."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryAccessType(StrEnum):
    """What may be done with mapped virtual memory."""

    READ_WRITE = "rw"
    READ = "r"


class VirtualMemoryAllocationType(StrEnum):
    """How virtual memory is allocated."""

    PINNED = "pinned"
    MANAGED = "managed"


class WorkqueueSharingScopeType(StrEnum):
    """Which contexts share the work queues of a device."""

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"


class ArrayFormatType(StrEnum):
    """Type of an element of a texture."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class AddressModeType(StrEnum):
    """What a texture gives outside its bounds."""

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"


class FilterModeType(StrEnum):
    """How a texture interpolates."""

    POINT = "point"
    LINEAR = "linear"


class ReadModeType(StrEnum):
    """What a texture read gives."""

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"


__all__ = [
    "AddressModeType",
    "ArrayFormatType",
    "CompilerBackendType",
    "DevicePointerType",
    "DeviceResourcesType",
    "FilterModeType",
    "GraphConditionalType",
    "GraphMemoryType",
    "IsStreamType",
    "ManagedMemoryLocationType",
    "ObjectCodeFormatType",
    "PCHStatusType",
    "ProcessStateType",
    "ReadModeType",
    "SourceCodeType",
    "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType",
    "VirtualMemoryGranularityType",
    "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
    "WorkqueueSharingScopeType",
]
