"""A batch that copies from device 1 to device 0."""

import numpy as np

import cupola
from cupola.utils import copy_batch

d0, d1 = cupola.Device.get_all_devices()[:2]
d1.set_current()
s1 = d1.create_stream()
b = d1.allocate(64, stream=s1)
b.fill(9, stream=s1)
s1.sync()
d0.set_current()
s0 = d0.create_stream()
a = d0.allocate(64, stream=s0)
copy_batch(s0, [b], [a])
back = np.empty(64, np.uint8)
a.copy_to(back, stream=s0)
s0.sync()
assert (back == 9).all() and (a.device_id, b.device_id) == (0, 1)
print("ok")
