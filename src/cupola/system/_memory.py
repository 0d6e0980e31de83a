"""The memory of a device, and who uses it."""

from __future__ import annotations

from cupola.bindings import nvml

from ._library import Unpicklable


class MemoryInfo(Unpicklable):
    """Device memory when it was asked, in bytes (``nvmlDeviceGetMemoryInfo_v2``)."""

    def __init__(self, handle: int) -> None:
        self._info = nvml.device_get_memory_info_v2(handle)

    @property
    def free(self) -> int:
        """int: bytes that can be allocated."""
        return self._info.free

    @property
    def total(self) -> int:
        """int: bytes that the device has."""
        return self._info.total

    @property
    def used(self) -> int:
        """int: bytes that are allocated."""
        return self._info.used

    @property
    def reserved(self) -> int:
        """int: bytes that the driver and the firmware keep for themselves."""
        return self._info.reserved


class BAR1MemoryInfo(MemoryInfo):
    """The window through which others reach device memory (``nvmlDeviceGetBAR1MemoryInfo``)."""

    def __init__(self, handle: int) -> None:
        self._window = nvml.device_get_bar1_memory_info(handle)

    @property
    def free(self) -> int:
        """int: bytes of the window that are not mapped."""
        return self._window.bar1_free

    @property
    def total(self) -> int:
        """int: bytes of the window."""
        return self._window.bar1_total

    @property
    def used(self) -> int:
        """int: bytes of the window that are mapped."""
        return self._window.bar1_used

    @property
    def reserved(self) -> int:
        """NVML keeps no such number of the window: raises `NotSupportedError`."""
        raise nvml.NotSupportedError(nvml.Return.ERROR_NOT_SUPPORTED)


class ProcessInfo(Unpicklable):
    """A process that computes on a device (``nvmlDeviceGetComputeRunningProcesses_v3``)."""

    def __init__(self, pid: int, used: int, instances: tuple[int, int] | None) -> None:
        self._pid = pid
        self._used = used
        self._instances = instances

    @property
    def pid(self) -> int:
        """int: the number of the process."""
        return self._pid

    @property
    def used_gpu_memory(self) -> int:
        """int: bytes of device memory that it uses."""
        return self._used

    @property
    def gpu_instance_id(self) -> int:
        """int: the GPU instance of a MIG device that it runs on; `NotSupportedError` elsewhere."""
        return self._instance(0)

    @property
    def compute_instance_id(self) -> int:
        """int: the compute instance of a MIG device that it runs on; `NotSupportedError` elsewhere."""
        return self._instance(1)

    def _instance(self, place: int) -> int:
        if self._instances is None:
            raise nvml.NotSupportedError(nvml.Return.ERROR_NOT_SUPPORTED)
        return self._instances[place]


def running_processes(handle: int) -> list[ProcessInfo]:
    """The processes that compute on a device."""
    mig = bool(nvml.device_is_mig_device_handle(handle))
    return [
        ProcessInfo(info.pid, info.used_gpu_memory, (info.gpu_instance_id, info.compute_instance_id) if mig else None)
        for info in nvml.device_get_compute_running_processes_v3(handle)
    ]


class Utilization(Unpicklable):
    """How busy a device was during the last sample period (``nvmlDeviceGetUtilizationRates``)."""

    def __init__(self, handle: int) -> None:
        self._rates = nvml.device_get_utilization_rates(handle)

    @property
    def gpu(self) -> int:
        """int: percent of the time in which a kernel ran."""
        return self._rates.gpu

    @property
    def memory(self) -> int:
        """int: percent of the time in which device memory was read or written."""
        return self._rates.memory


class RepairStatus(Unpicklable):
    """Whether memory repairs wait for a reset (``nvmlDeviceGetRepairStatus``)."""

    def __init__(self, handle: int) -> None:
        self._status = nvml.device_get_repair_status(handle)

    @property
    def channel_repair_pending(self) -> bool:
        """bool: whether a memory channel waits to be repaired."""
        return bool(self._status.b_channel_repair_pending)

    @property
    def tpc_repair_pending(self) -> bool:
        """bool: whether a cluster of multiprocessors waits to be repaired."""
        return bool(self._status.b_tpc_repair_pending)
