"""Facts of the whole machine: versions, processes, and what devices are to each other."""

from __future__ import annotations

import locale
import os
import threading

from cupola.bindings import nvml

from ._device import Device
from ._library import initialize
from ._names import P2P_CAPS, P2P_STATUSES, TOPOLOGY_LEVELS
from .typing import GpuP2PCapsIndex, GpuP2PStatus, GpuTopologyLevel

CUDA_BINDINGS_NVML_IS_COMPATIBLE = True
"""Whether the bindings have all of NVML that this package needs; cupola brings its own, which do."""

_locale_lock = threading.Lock()


def get_user_mode_driver_version() -> tuple[int, int]:
    """Ask which CUDA the driver's libraries support, such as (13, 0) (``nvmlSystemGetCudaDriverVersion_v2``)."""
    initialize()
    version = nvml.system_get_cuda_driver_version_v2()
    return version // 1000, version // 10 % 100


def get_kernel_mode_driver_version() -> tuple[int, ...]:
    """Ask for the version of the driver in the kernel, such as (580, 65, 6) (``nvmlSystemGetDriverVersion``)."""
    initialize()
    return _numbers(nvml.system_get_driver_version())


def get_nvml_version() -> tuple[int, ...]:
    """Ask for the version of the NVML library (``nvmlSystemGetNVMLVersion``). Does not initialize NVML."""
    return _numbers(nvml.system_get_nvml_version())


def get_driver_branch() -> str:
    """Ask for the driver's branch, such as ``"r580_00"`` (``nvmlSystemGetDriverBranch``)."""
    initialize()
    return nvml.system_get_driver_branch()


def get_num_devices() -> int:
    """Count the devices (``nvmlDeviceGetCount_v2``), those that CUDA_VISIBLE_DEVICES hides included."""
    return Device.get_device_count()


def get_process_name(pid: int) -> str:
    """Ask for the name of a process that uses a device (``nvmlSystemGetProcessName``).

    Parameters
    ----------
    pid
        The number of the process.

    Raises
    ------
    NotFoundError
        When NVML knows no such process.
    """
    for device in Device.get_all_devices():
        device.compute_running_processes  # noqa: B018, NVML knows the names of processes that it has listed
    if "microsoft" not in os.uname().release.lower():
        return nvml.system_get_process_name(pid)
    with _locale_lock:  # On WSL, NVML gives the name in the characters of the process's locale.
        known = locale.setlocale(locale.LC_ALL)
        locale.setlocale(locale.LC_ALL, "C")
        try:
            return nvml.system_get_process_name(pid)
        finally:
            locale.setlocale(locale.LC_ALL, known)


def _handles(device1: Device, device2: Device) -> tuple[int, int]:
    for name, device in (("device1", device1), ("device2", device2)):
        if not isinstance(device, Device):
            raise TypeError(f"{name} must be a system.Device, not {type(device).__name__}")
    return device1._handle, device2._handle


def get_topology_common_ancestor(device1: Device, device2: Device) -> GpuTopologyLevel:
    """Find the lowest part of the computer that two devices have in common. Linux only.

    Parameters
    ----------
    device1, device2
        The devices.
    """
    return TOPOLOGY_LEVELS.member(nvml.device_get_topology_common_ancestor(*_handles(device1, device2)))


def get_p2p_status(device1: Device, device2: Device, index: GpuP2PCapsIndex | str) -> GpuP2PStatus:
    """Ask what a device may do with the memory of another (``nvmlDeviceGetP2PStatus``).

    Parameters
    ----------
    device1, device2
        The devices.
    index
        What it is to do.
    """
    return P2P_STATUSES.member(nvml.device_get_p2p_status(*_handles(device1, device2), P2P_CAPS.number(index)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
