"""Arrays of cupola.numpy as chunks of Dask's arrays, and workers of Dask with a device each.

Needs Dask (``pip install "cupola[dask]"``). Importing this tells Dask about the arrays. It happens by itself where the
back end is chosen by its name (``dask.config.set({"array.backend": "cupola"})``).
"""

try:
    import dask.array as _dask_array
except ImportError as _error:
    raise ImportError(f'cupola.dask needs Dask: pip install "cupola[dask]" ({_error})') from None

from typing import Any as _Any

from cupola._after_import import after_import as _after_import
from cupola.dask import _chunks, _transport
from cupola.dask._backend import Backend
from cupola.dask._transport import dask_setup as dask_setup

_chunks.register()
_after_import("distributed.protocol.serialize", _transport.register)
del _dask_array

__all__ = ["Backend", "local_cluster"]


def __getattr__(name: str) -> _Any:
    if name != "local_cluster":
        raise AttributeError(f"module 'cupola.dask' has no attribute {name!r}")
    try:
        from cupola.dask._cluster import local_cluster
    except ImportError as error:
        raise ImportError(
            f'cupola.dask.local_cluster needs dask.distributed: pip install "cupola[dask]" ({error})'
        ) from None
    return local_cluster
