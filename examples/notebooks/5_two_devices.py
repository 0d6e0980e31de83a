"""
5. Two devices
==============

A computation on two devices, which exchange their borders. The CPU device can be two, so you can try it anywhere.
"""

# %%
# The number of devices is chosen before the first call of CUDA. On a machine with GPUs, leave this cell out.

import os

os.environ.setdefault("CUPOLA_CPU_DEVICES", "2")

import numpy as np

import cupola

devices = cupola.Device.get_all_devices()
for dev in devices:
    print(dev.device_id, dev.name)

# %%
# A part for each
# ---------------
#
# Heat in a rod of 400 places. Each device has a part of it, with one place more at each end for what the neighbour has
# there. Streams, memory and kernels belong to the device that was current when they were made.

source = r"""
extern "C" __global__ void step(const float* u, float* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        next[i] = i > 0 && i < n - 1 ? u[i] + 0.4f * (u[i - 1] + u[i + 1] - 2 * u[i]) : u[i];
}
"""
rod = np.zeros(400, np.float32)
rod[80:120] = rod[230:260] = 1
whole = np.pad(rod, 1)  # cold ends

parts = []
for dev, places in zip(devices, np.array_split(np.arange(1, 401), len(devices)), strict=True):
    dev.set_current()
    stream = dev.create_stream()
    mine = whole[places[0] - 1 : places[-1] + 2]
    kernel = cupola.compile(source).get_kernel("step")
    parts.append((dev, stream, kernel, dev.array(mine, stream=stream), dev.array(mine, stream=stream)))


# %%
# A step
# ------
#
# All devices compute at once. Then each end goes to the neighbour. A stream waits for the other one, and the host waits
# for nobody.


def steps(count: int) -> None:
    for _ in range(count):
        for k, (dev, stream, kernel, u, v) in enumerate(parts):
            dev.set_current()
            cupola.launch(stream, cupola.LaunchConfig.for_elements(u.size), kernel, u, v, u.size)
            parts[k] = (dev, stream, kernel, v, u)
        for (_, left, _, a, _), (_, right, _, b, _) in zip(parts, parts[1:], strict=False):
            left.wait(right)
            a[-1:].copy_from(b[1:2], stream=left)
            b[:1].copy_from(a[-2:-1], stream=left)
            right.wait(left)


def result() -> np.ndarray:
    found = []
    for dev, stream, _, u, _ in parts:
        dev.set_current()
        found.append(u.to_numpy(stream=stream)[1:-1])
    return np.concatenate(found)


history = [rod]
for _ in range(4):
    steps(50)
    history.append(result())

# %%
# One computation
# ---------------
#
# The result does not show where one device ends and the other begins:

import matplotlib.pyplot as plt

plt.figure(figsize=(7, 2.5))
for number, values in enumerate(history):
    plt.plot(values, label=f"{50 * number} steps")
plt.axvline(199.5, color="gray", linestyle=":")  # where one device ends
plt.legend()
plt.show()

# %%
# And it is what NumPy computes on its own:

for _ in range(200):
    whole[1:-1] += np.float32(0.4) * (whole[:-2] + whole[2:] - 2 * whole[1:-1])
np.testing.assert_allclose(history[-1], whole[1:-1], atol=1e-4)
