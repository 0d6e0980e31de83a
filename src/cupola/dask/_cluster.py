"""A cluster of Dask on this machine with a worker, a process of its own, for each device."""

from __future__ import annotations

import logging
import os
from typing import Any

import dask
from dask.utils import parse_bytes
from distributed import Nanny, Scheduler, SpecCluster
from distributed.system import MEMORY_LIMIT

from cupola import Device
from cupola.bindings import _provider
from cupola.dask._spilling import SpillToHost

# How many bytes of results one worker asks another for at a time. What was moved to the host comes back to the device
# for that, and a worker answers several others, so a message is a small share of what results may take.
MESSAGE, SHARE = "distributed.worker.transfer.message-bytes-limit", 16

# A worker pauses when its process is larger than a share of the limit, until it is smaller. What the driver and the
# libraries of CUDA take is never given back, so such a pause might not end; results are written to disk instead.
PAUSE = "distributed.worker.memory.pause"


class _Cluster(SpecCluster):
    """A cluster; while it runs, what Dask makes anew in this process is made on devices (``array.backend``)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self._backend: dask.config.set | None = dask.config.set({"array.backend": "cupola"})

    async def _close(self) -> None:
        backend, self._backend = getattr(self, "_backend", None), None  # none of a cluster that did not start
        if backend is not None:
            backend.__exit__(None, None, None)
        await super()._close()  # type: ignore[no-untyped-call]


def local_cluster(
    devices: int | None = None,
    *,
    device_memory_limit: float | str = 0.7,
    memory_limit: int | str | None = None,
    threads_per_worker: int = 1,
    dashboard_address: str | None = None,
    **options: Any,
) -> SpecCluster:
    """Start a scheduler and a worker for each device of this machine, as processes, and stop them at its end.

    Each worker's current device is its own; it sees the others behind it. What its results take of the device's memory
    beyond a limit goes to the host's memory, and from there to disk. Until the cluster is closed, Dask's functions that
    make arrays, such as ``da.ones`` and ``da.random``, make them on devices.

    Parameters
    ----------
    devices : int, optional
        How many workers; all devices by default. Devices are used in turns if there are fewer.
    device_memory_limit : float or str
        What a worker's results may take on its device: a share of its memory, or bytes, as ``"2 GB"``. Tasks need the
        rest.
    memory_limit : int or str, optional
        What a worker may take of the host's memory, in bytes or as ``"4 GB"``; an equal share by default. What the
        driver and the libraries of CUDA take is part of it.
    threads_per_worker : int
        How many tasks a worker does at a time.
    dashboard_address : str, optional
        Where the scheduler shows its pages, as ``":8787"``; nowhere by default.
    **options
        What ``distributed.Nanny`` takes.

    Returns
    -------
    distributed.SpecCluster
        What ``distributed.Client`` takes.

    Raises
    ------
    ValueError
        When a number or a limit makes no sense.

    Notes
    -----
    Workers are started by ``spawn``, so a program calls this under ``if __name__ == "__main__":``.
    """
    known = Device.get_all_devices()
    count = len(known) if devices is None else devices
    if count < 1 or threads_per_worker < 1:
        raise ValueError("a cluster has at least one device, and one thread for each")
    host_limit = MEMORY_LIMIT // count if memory_limit is None else parse_bytes(memory_limit)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(str(k) for k in range(len(known)))
    names = visible.split(",")[: len(known)]
    config = options.pop("config", {})
    provider = _provider.current() or "auto"  # what this process drives: GPUs that are hidden here stay so
    workers = {}
    for rank in range(count):
        own = rank % len(known)
        limit = _device_limit(device_memory_limit, known[own])
        message = min(parse_bytes(dask.config.get(MESSAGE)), max(limit // SHARE, 1))
        workers[rank] = {
            "cls": Nanny,
            "options": {
                "nthreads": threads_per_worker,
                "memory_limit": host_limit,
                "silence_logs": logging.WARNING,
                "env": {"CUDA_VISIBLE_DEVICES": ",".join(names[own:] + names[:own]), "CUPOLA_DEVICE": provider},
                "preload": ["cupola.dask"],
                "data": (SpillToHost, {"device_limit": limit, "host_limit": int(0.6 * host_limit)}),
                "config": {MESSAGE: message, PAUSE: False, **config},
                **options,
            },
        }
    scheduler = {
        "cls": Scheduler,
        "options": {
            "dashboard": dashboard_address is not None,
            "dashboard_address": dashboard_address,
            "host": "127.0.0.1",
            "port": 0,
        },
    }
    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}):
        return _Cluster(workers=workers, scheduler=scheduler, silence_logs=logging.WARNING)


def _device_limit(limit: float | str, device: Device) -> int:
    if isinstance(limit, float):
        if not 0 < limit <= 1:
            raise ValueError(f"device_memory_limit is {limit}: a share is more than 0 and at most 1")
        return int(limit * device.total_memory)
    return int(parse_bytes(limit))
