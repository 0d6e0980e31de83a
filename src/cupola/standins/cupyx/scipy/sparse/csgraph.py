"""``cupyx.scipy.sparse.csgraph``: SciPy's functions of graphs, on the host."""

from __future__ import annotations

import importlib
from typing import Any

from cupola.standins.cupyx.scipy._host import to_device
from cupola.standins.cupyx.scipy.sparse._coo import scipy_sparse

__all__ = ["connected_components"]


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> Any:
    """How many parts of a graph are connected, and which part each node is in."""
    scipy_sparse()
    theirs = importlib.import_module("scipy.sparse.csgraph")
    found = theirs.connected_components(csgraph.get(), directed, connection, return_labels)
    return (found[0], to_device(found[1])) if return_labels else found
