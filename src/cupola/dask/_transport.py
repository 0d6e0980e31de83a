"""How arrays travel between workers: their elements, through the memory of the host, as frames that are not copied.

Registered when ``distributed`` is imported. Between workers of one machine see `_same_host`.
"""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as device_numpy
from cupola.numpy import ndarray


def register(protocol: Any) -> None:
    """Fill in the tables of the module ``distributed.protocol.serialize``."""
    protocol.dask_serialize.register(ndarray, _dumps)
    protocol.dask_deserialize.register(ndarray, _loads)


def _dumps(x: ndarray) -> tuple[dict[str, Any], list[Any]]:
    host = numpy.ascontiguousarray(x.to_numpy())
    return {"shape": x.shape, "dtype": host.dtype.str}, [host.reshape(-1).view(numpy.uint8).data]


def _loads(header: dict[str, Any], frames: list[Any]) -> Any:
    joined = frames[0] if len(frames) == 1 else b"".join(frames)
    host = numpy.frombuffer(joined, header["dtype"]).reshape(header["shape"])
    return device_numpy.asarray(host)
