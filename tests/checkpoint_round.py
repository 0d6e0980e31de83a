"""A program that sees several devices: a child's memory goes round them, until each is where it was.

It prints the UUID of the child's device 0 behind each turn.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cupola.checkpoint import Process
from tests.checkpoint_target import Target

SETUP = """
p = zeros(1 << 20)
put(p.handle, b"abcd")
other = cupola.Device(1)
other.set_current()
q = int(ok(driver.cuMemAlloc(1 << 20)))
put(q, b"efgh")
device.set_current()
uuids = [device.uuid for device in cupola.Device.get_all_devices()]
"""

with Target(SETUP) as target:
    process = Process(target.pid)
    uuids = target.run("uuids")
    mapping = dict(zip(uuids, uuids[1:] + uuids[:1], strict=True))
    for _ in uuids:
        process.lock()
        process.checkpoint()
        process.restore(mapping)
        process.unlock()
        assert target.run("get(p.handle), get(q)") == (b"abcd", b"efgh")
        assert target.run("x = zeros(); increment(x); stream.sync(); number(x.handle)") == 1
        print(target.run("bytes(ok(driver.cuDeviceGetUuid(0)).bytes).hex()"))
