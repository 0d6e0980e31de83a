"""What the lines of cuSOLVER need of a bench besides matrices: objects with settings, and room to work in."""

from __future__ import annotations

import ctypes

from tools.mathlibs.bench import Bench, Driver

# Objects that all lines share; a line puts back what it sets.
OBJECTS = {
    "params": "cusolverDnCreateParams",
    "evj": "cusolverDnCreateSyevjInfo",
    "svdj": "cusolverDnCreateGesvdjInfo",
    "irsp": "cusolverDnIRSParamsCreate",
    "irsi": "cusolverDnIRSInfosCreate",
}
ROOM = 8 << 20  # bytes; what is written there is not compared


def prepare(bench: Bench, driver: Driver) -> None:
    """Give the bench `work` and `hostwork`, a second `slot`, and the objects."""
    bench.names["work"] = driver.allocate(ROOM)
    host = (ctypes.c_char * ROOM)()
    slots = (ctypes.c_longlong * 2)()
    bench.keep(host, slots)
    bench.names["hostwork"], bench.names["slot2"] = ctypes.addressof(host), ctypes.addressof(slots)
    for name, create in OBJECTS.items():
        status = bench.function(create)(bench.names["slot"])
        if status:
            raise RuntimeError(f"{create} returned {status}")
        bench.names[name] = bench.names["got"]()
