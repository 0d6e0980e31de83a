"""
1. Your first kernel
====================

A kernel is a function in CUDA C++ that thousands of threads run at once. Here you compile one, launch it, look at what
it did, and see what happens when it is wrong. Without a GPU all of this runs on the CPU device.
"""

# %%
# A device
# --------
#
# ``Device()`` is a GPU if there is one, and the CPU device otherwise. ``set_current()`` chooses it for this thread.

import numpy as np

import cupola

dev = cupola.Device()
dev.set_current()
dev

# %%
# A kernel
# --------
#
# Each thread knows its block, its place in the block, and how large blocks are. Together they make its number.

source = r"""
extern "C" __global__ void waves(float* x, int n, float phase) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = sinf(0.02f * i) + 0.4f * sinf(0.11f * i + phase);
}
"""
waves = cupola.compile(source, options={"lineinfo": True}).get_kernel("waves")
waves

# %%
# A launch
# --------
#
# ``for_elements`` makes a grid with a thread for each element. The launch only adds to the queue of the stream;
# ``to_numpy`` waits for it.

n = 1000
x = dev.empty(n, np.float32)
with dev.stream() as stream:
    cupola.launch(stream, cupola.LaunchConfig.for_elements(n), waves, x, n, 0.5)
values = x.to_numpy()
print(values[:4])

# %%
# NumPy agrees:

i = np.arange(n)
np.testing.assert_allclose(values, np.sin(0.02 * i) + 0.4 * np.sin(0.11 * i + 0.5), atol=1e-5)

# %%
# And so it looks:

import matplotlib.pyplot as plt

plt.figure(figsize=(7, 2.5))
plt.plot(values)
plt.show()

# %%
# A mistake
# ---------
#
# The launch below says that there are more elements than there are. The kernel believes it and writes behind the end of
# the array. On the CPU device that is an error, which names the thread and the line.

try:
    cupola.launch(dev.default_stream, cupola.LaunchConfig.for_elements(2 * n), waves, x, 2 * n, 0.5)
    dev.sync()
except cupola.CUDAError as error:
    print(error)

# %%
# As on a GPU, nothing can be done in this context any more. On the CPU device a reset mends it, without a new process:

from cupola.bindings import driver

driver.cuDevicePrimaryCtxReset(dev.device_id)
dev.set_current()
print(dev.full(5, 1.5, np.float32))
