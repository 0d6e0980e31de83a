"""Whatever has close() closes at the end of a ``with`` block."""

from __future__ import annotations

import pytest

from cupola import DeviceMemoryResource, Linker, ObjectCode, Program

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"

MAKERS = {
    "stream": lambda device: device.create_stream(),
    "event": lambda device: device.create_event(),
    "program": lambda device: Program('extern "C" __global__ void nothing() {}', "c++"),
    "linker": lambda device: Linker(ObjectCode.from_ptx(PTX)),
    "pool": lambda device: DeviceMemoryResource(device, {"max_size": 1 << 21}),
    "builder": lambda device: device.create_graph_builder(),
    "graph": lambda device: device.create_graph_builder().begin_building().end_building().complete(),
    "array": lambda device: device.zeros(3),
}


@pytest.mark.parametrize("name", MAKERS)
def test_closed_at_the_end(device, name):
    with MAKERS[name](device) as made:
        assert not made.is_closed
    assert made.is_closed
    with pytest.raises(ZeroDivisionError), MAKERS[name](device) as made:
        raise ZeroDivisionError
    assert made.is_closed
