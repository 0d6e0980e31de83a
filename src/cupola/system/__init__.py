"""The machine and its devices as NVML sees them: identity, memory, processes, clocks, temperatures, events.

Importing this needs neither a GPU nor a driver, and nothing here makes a CUDA context. NVML is loaded by the first
call; on the CPU device it is an emulated one, of the modeled GPU.

Examples
--------
>>> from cupola import system
>>> for device in system.Device.get_all_devices():
...     print(device.index, device.memory_info.used // 2**20, "MiB used")
0 ... MiB used
"""

from __future__ import annotations

from importlib import import_module as _import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.bindings.nvml import AlreadyInitializedError as AlreadyInitializedError
    from cupola.bindings.nvml import ArgumentVersionMismatchError as ArgumentVersionMismatchError
    from cupola.bindings.nvml import CorruptedInforomError as CorruptedInforomError
    from cupola.bindings.nvml import DeprecatedError as DeprecatedError
    from cupola.bindings.nvml import DriverNotLoadedError as DriverNotLoadedError
    from cupola.bindings.nvml import FreqNotSupportedError as FreqNotSupportedError
    from cupola.bindings.nvml import FunctionNotFoundError as FunctionNotFoundError
    from cupola.bindings.nvml import GpuIsLostError as GpuIsLostError
    from cupola.bindings.nvml import GpuNotFoundError as GpuNotFoundError
    from cupola.bindings.nvml import InsufficientPowerError as InsufficientPowerError
    from cupola.bindings.nvml import InsufficientResourcesError as InsufficientResourcesError
    from cupola.bindings.nvml import InsufficientSizeError as InsufficientSizeError
    from cupola.bindings.nvml import InUseError as InUseError
    from cupola.bindings.nvml import InvalidArgumentError as InvalidArgumentError
    from cupola.bindings.nvml import InvalidStateError as InvalidStateError
    from cupola.bindings.nvml import IrqIssueError as IrqIssueError
    from cupola.bindings.nvml import LibraryNotFoundError as LibraryNotFoundError
    from cupola.bindings.nvml import LibRmVersionMismatchError as LibRmVersionMismatchError
    from cupola.bindings.nvml import MemoryError as MemoryError
    from cupola.bindings.nvml import NoDataError as NoDataError
    from cupola.bindings.nvml import NoPermissionError as NoPermissionError
    from cupola.bindings.nvml import NotFoundError as NotFoundError
    from cupola.bindings.nvml import NotReadyError as NotReadyError
    from cupola.bindings.nvml import NotSupportedError as NotSupportedError
    from cupola.bindings.nvml import NvmlError as NvmlError
    from cupola.bindings.nvml import OperatingSystemError as OperatingSystemError
    from cupola.bindings.nvml import ResetRequiredError as ResetRequiredError
    from cupola.bindings.nvml import ResetTypeNotSupportedError as ResetTypeNotSupportedError
    from cupola.bindings.nvml import TimeoutError as TimeoutError
    from cupola.bindings.nvml import UninitializedError as UninitializedError
    from cupola.bindings.nvml import UnknownError as UnknownError
    from cupola.bindings.nvml import VgpuEccNotSupportedError as VgpuEccNotSupportedError
    from cupola.system._device import Device as Device
    from cupola.system._machine import CUDA_BINDINGS_NVML_IS_COMPATIBLE as CUDA_BINDINGS_NVML_IS_COMPATIBLE
    from cupola.system._machine import get_driver_branch as get_driver_branch
    from cupola.system._machine import get_kernel_mode_driver_version as get_kernel_mode_driver_version
    from cupola.system._machine import get_num_devices as get_num_devices
    from cupola.system._machine import get_nvml_version as get_nvml_version
    from cupola.system._machine import get_p2p_status as get_p2p_status
    from cupola.system._machine import get_process_name as get_process_name
    from cupola.system._machine import get_topology_common_ancestor as get_topology_common_ancestor
    from cupola.system._machine import get_user_mode_driver_version as get_user_mode_driver_version
    from cupola.system._pci import NvlinkInfo as NvlinkInfo
    from cupola.system._system_events import register_events as register_events

# Name -> module that has it.
_HOMES = {
    "CUDA_BINDINGS_NVML_IS_COMPATIBLE": "_machine",
    "Device": "_device",
    "NvlinkInfo": "_pci",
    "get_driver_branch": "_machine",
    "get_kernel_mode_driver_version": "_machine",
    "get_num_devices": "_machine",
    "get_nvml_version": "_machine",
    "get_p2p_status": "_machine",
    "get_process_name": "_machine",
    "get_topology_common_ancestor": "_machine",
    "get_user_mode_driver_version": "_machine",
    "register_events": "_system_events",
}

# Classes of errors, which the bindings have.
_ERRORS = frozenset({
    "AlreadyInitializedError", "ArgumentVersionMismatchError", "CorruptedInforomError", "DeprecatedError",
    "DriverNotLoadedError", "FreqNotSupportedError", "FunctionNotFoundError", "GpuIsLostError", "GpuNotFoundError",
    "InUseError", "InsufficientPowerError", "InsufficientResourcesError", "InsufficientSizeError",
    "InvalidArgumentError", "InvalidStateError", "IrqIssueError", "LibRmVersionMismatchError", "LibraryNotFoundError",
    "MemoryError", "NoDataError",
    "NoPermissionError", "NotFoundError", "NotReadyError", "NotSupportedError", "NvmlError", "OperatingSystemError",
    "ResetRequiredError", "ResetTypeNotSupportedError", "TimeoutError", "UninitializedError", "UnknownError",
    "VgpuEccNotSupportedError",
})  # fmt: skip

__all__ = sorted([*_HOMES, *_ERRORS])


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(_import_module(f"cupola.system.{_HOMES[name]}"), name)
    elif name in _ERRORS:
        value = getattr(_import_module("cupola.bindings.nvml"), name)
    elif name == "typing":
        return _import_module("cupola.system.typing")
    else:
        raise AttributeError(f"module 'cupola.system' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "typing"]
