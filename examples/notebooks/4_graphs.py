"""
4. Graphs
=========

Each launch costs the host some microseconds. A program that launches the same kernels again and again can record them
once, as a graph, and queue them all in one call.
"""

# %%
# Heat in a plate
# ---------------
#
# One step computes each place from its neighbours. Two arrays swap roles.

import numpy as np

import cupola

dev = cupola.Device()
dev.set_current()
source = r"""
extern "C" __global__ void step(const float* u, float* next, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height) return;
    int k = j * width + i;
    bool inside = i > 0 && j > 0 && i < width - 1 && j < height - 1;
    next[k] = inside ? u[k] + 0.2f * (u[k - 1] + u[k + 1] + u[k - width] + u[k + width] - 4 * u[k]) : 0;
}
"""
step = cupola.compile(source).get_kernel("step")
plate = np.zeros((120, 200), np.float32)
plate[40:70, 50:90] = plate[60:100, 120:150] = 1
stream = dev.create_stream()
u, v = dev.array(plate, stream=stream), dev.zeros(plate.shape, np.float32, stream=stream)
config = cupola.LaunchConfig.for_elements((200, 120), block=(32, 8))

# %%
# Recording
# ---------
#
# A graph builder takes the place of a stream. Nothing runs while it records.

builder = stream.create_graph_builder().begin_building()
for _ in range(10):
    cupola.launch(builder, config, step, u, v, 200, 120)
    cupola.launch(builder, config, step, v, u, 200, 120)
graph = builder.end_building().complete()
graph

# %%
# Replaying
# ---------
#
# One call queues twenty steps.

import matplotlib.pyplot as plt

frames = [plate]
for _ in range(20):
    graph.launch(stream)
    frames.append(u.to_numpy(stream=stream))

_, places = plt.subplots(1, 3, figsize=(9, 2.2))
for place, number in zip(places, (0, 5, 20), strict=True):
    place.imshow(frames[number], cmap="inferno", vmin=0, vmax=1)
    place.set_title(f"after {20 * number} steps")
    place.axis("off")
plt.show()

# %%
# The same, as NumPy computes it:

for _ in range(400):
    around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    plate = np.pad(plate[1:-1, 1:-1] + np.float32(0.2) * (around - 4 * plate[1:-1, 1:-1]), 1)
np.testing.assert_allclose(frames[-1], plate, atol=1e-5)

# %%
# What does it save?
# ------------------
#
# The time that the host needs to queue 200 launches, one by one and as ten graphs. It differs from run to run and from
# one machine to the next; on a GPU the launches themselves become quicker, too.

from time import perf_counter

stream.sync()
begin = perf_counter()
for _ in range(200):
    cupola.launch(stream, config, step, u, v, 200, 120)
one_by_one = perf_counter() - begin
stream.sync()
begin = perf_counter()
for _ in range(10):
    graph.launch(stream)
as_graphs = perf_counter() - begin
stream.sync()
print(f"{1e6 * one_by_one:.0f} us one by one, {1e6 * as_graphs:.0f} us as graphs")
