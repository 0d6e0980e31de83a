"""Starting Ray with the devices of this machine, and the device of an actor."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import ray

from cupola.core.device._device import Device
from cupola.numpy import ndarray
from cupola.ray import _own

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
    with suppress(RuntimeError):  # Ray is older
        register_transport()  # of which Ray tells no actor that it has started again
    return _own.make_current()


def register_transport() -> None:
    """Tell Ray of the tensor transport "cupola", for arrays that actors' methods return.

    Call it before the class of the actors is written, in the process that makes them. Methods with
    ``@ray.method(tensor_transport="cupola")`` then leave arrays of `cupola.numpy` on the device, also in lists and
    dicts. Actors of the same machine open the memory, and others fetch it from the actor, not from Ray's object store.

    Raises
    ------
    RuntimeError
        When this version of Ray takes no tensor transports.
    """
    try:
        from ray.experimental import register_tensor_transport
        from ray.experimental.rdt.util import transport_manager_info

        from cupola.ray._transport import NAME, Transport
    except ImportError as error:
        raise RuntimeError(f"Ray {ray.__version__} has no such transports: 2.60 has ({error})") from error
    if NAME.upper() not in transport_manager_info:
        register_tensor_transport(NAME, ["cuda"], Transport, ndarray)
