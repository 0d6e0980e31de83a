"""The device that Ray has given this actor or task."""

from __future__ import annotations

import ray

from cupola import _same_host
from cupola.core.device._device import Device


def make_current() -> Device:
    """Find the device, and make it that of this thread: Ray calls from several."""
    known = Device.get_all_devices()
    given = [int(one) for one in ray.get_gpu_ids()]
    if not given or len(known) == len(given):  # only its own are visible
        found = known[0]
    elif given[0] < len(known):
        found = known[given[0]]
    else:
        raise RuntimeError(
            f"Ray has given this process GPU {given[0]}, and it sees {len(known)} devices: start Ray with "
            "cupola.ray.init(), or with num_gpus as many as there are"
        )
    found.set_current()
    if (pool := _same_host.pool(found)) is not None:
        found.memory_resource = pool
    return found
