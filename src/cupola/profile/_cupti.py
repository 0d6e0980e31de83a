"""A timeline of a GPU."""

from __future__ import annotations

from cupola import pathfinder
from cupola.profile import _cupti_records
from cupola.profile._record import Raw, Record


def start(most: int) -> None:
    """Begin to record.

    Raises
    ------
    RuntimeError
        If CUPTI is missing or refuses.
    """
    try:
        library = pathfinder.load_nvidia_dynamic_lib("cupti")
    except pathfinder.DynamicLibNotFoundError as error:
        raise RuntimeError(
            f"a timeline of a GPU needs CUPTI: pip install nvidia-cuda-cupti, of the major version of CUDA ({error})"
        ) from None
    assert library.abs_path is not None
    _cupti_records.load(library.abs_path)
    _cupti_records.begin(most)


def stop() -> tuple[list[Raw], int]:
    """End it: the records as they are, and how many were lost."""
    return _cupti_records.take()


def graphs(records: list[Record]) -> list[Record]:
    """A record for each launch of a graph: from the beginning of its first node to the end of its last."""
    launches = {r.call for r in records if r.kind == "call" and "GraphLaunch" in r.name}
    nodes: dict[tuple[int, int, int], list[Record]] = {}
    for record in records:
        if record.device >= 0 and record.call in launches:
            nodes.setdefault((record.call, record.device, record.place), []).append(record)
    return [
        Record("graph", "graph", min(r.begin for r in own), max(r.end for r in own), call, place, device)
        for (call, device, place), own in nodes.items()
    ]
