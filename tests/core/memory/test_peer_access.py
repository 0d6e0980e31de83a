"""Access of other devices to a pool, in processes that see several."""

from __future__ import annotations

PROGRAM = """
import cupola
cupola.Device(0).set_current()
d0, d1, *others = cupola.Device.get_all_devices()
pool = cupola.DeviceMemoryResource(d0, {})
peers = pool.peer_accessible_by
"""

CHECKS = {
    "empty": "assert len(peers) == 0 and list(peers) == [] and d1 not in peers",
    "add": "peers.add(1); peers.add(d1); peers.add(d0); assert peers == {d1} and 1 in peers and 0 not in peers",
    "order": "peers.update([d2], [1]); assert list(peers) == [d1, d2] and repr(peers).startswith('PeerAcc')",
    "live": "peers |= {2}; assert pool.peer_accessible_by == {d2}",
    "discard": "peers.update([1, 2]); peers.discard(1); peers.discard(99); peers.discard('x'); assert peers == {d2}",
    "remove": "peers.add(1); peers.remove(d1); assert not peers",
    "difference": "peers.update([1, 2]); peers -= {1, 77}; assert peers == {d2}",
    "intersection": "peers.update([1, 2]); peers &= {1, 'x'}; assert peers == {d1}",
    "symmetric": "peers.add(1); peers ^= {1, 2}; assert peers == {d2}",
    "clear": "peers.update([1, 2]); peers.clear(); assert peers == set()",
    "assign": "pool.peer_accessible_by = [d0, 2]; assert peers == {d2}",
    "plain sets": "peers.add(1); assert type(peers | {d2}) is set and peers | {d2} == {d1, d2}",
    "nonsense": "assert 'x' not in peers and 99 not in peers and None not in peers",
    "pop": "peers.add(2); assert peers.pop() == d2 and not peers",
}

FAILURES = {
    "no such device": ("peers.add(99)", "ValueError"),
    "not a device": ("peers.add('x')", "TypeError"),
    "absent": ("peers.remove(1)", "KeyError"),
    "pop": ("peers.pop()", "KeyError"),
    "closed": ("pool.close(); pool.peer_accessible_by", "RuntimeError"),
    "closed before": ("pool.close(); len(peers)", "RuntimeError"),
    "closed before adding": ("pool.close(); peers.add(0)", "RuntimeError"),
}


def test_the_set(run_on_devices):
    program = PROGRAM + "d2 = others[0]\n" + "".join(f"{check}\npeers.clear()\n" for check in CHECKS.values())
    for statement, error in FAILURES.values():
        program += "pool = cupola.DeviceMemoryResource(d0, {}); peers = pool.peer_accessible_by\n"
        body = statement.replace("; ", "\n    ")
        program += f"try:\n    {body}\nexcept {error}:\n    pass\nelse:\n    raise AssertionError({statement!r})\n"
    done = run_on_devices(3, program)
    assert done.returncode == 0, done.stderr


def test_a_copy_between_devices(run_on_devices):
    program = (
        PROGRAM
        + """
import numpy as np
stream = d0.create_stream()
a = pool.allocate(64, stream=stream)
d1.set_current()
other = d1.create_stream()
b = d1.allocate(64, stream=other)
b.fill(7, stream=other)
other.sync()
a.copy_from(b, stream=stream)
host = cupola.PinnedMemoryResource().allocate(64, stream=stream)
a.copy_to(host, stream=stream)
stream.sync()
assert (np.from_dlpack(host) == 7).all() and (a.device_id, b.device_id) == (0, 1)
"""
    )
    done = run_on_devices(2, program)
    assert done.returncode == 0, done.stderr
