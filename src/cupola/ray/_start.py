"""Starting Ray with the devices of this machine, and the device of an actor."""

from __future__ import annotations

import os
from typing import Any

import ray

from cupola import _same_host
from cupola.core.device._device import Device

# Without it Ray hides from an actor all devices but its own, and memory of a device that is hidden cannot be opened.
_SEE_ALL = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"


def init(**options: Any) -> Any:
    """Start Ray on this machine with as many GPUs as there are devices, real or emulated; else as ``ray.init``.

    Parameters
    ----------
    **options
        What ``ray.init`` takes. `num_gpus` is the number of devices unless it is given.

    Returns
    -------
    What ``ray.init`` returns.

    Notes
    -----
    Actors see all devices. Each takes its own by `device`.
    """
    os.environ.setdefault(_SEE_ALL, "1")
    if "address" not in options:
        options.setdefault("num_gpus", len(Device.get_all_devices()))
    return ray.init(**options)


def device() -> Device:
    """The device that Ray has given this actor or task, made current; memory for arrays comes from a pool to share.

    Arrays that `cupola.numpy` makes behind this call can be handed to actors of the same machine without a copy.

    Returns
    -------
    Device
        Device 0 where Ray has given none.

    Raises
    ------
    RuntimeError
        When Ray counts more devices than this process sees.
    """
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
