"""Two processes share a buffer and an event: one produces on the device, the other consumes, and nothing is copied.

The pool travels as a file descriptor through multiprocessing, the buffer and the event as descriptions of a few bytes.
"""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
from arrays import build

from cupola import Array, Buffer, Device, DeviceMemoryResource, Event, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void produce(int* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = i;
}
extern "C" __global__ void square(int* x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= x[i];
}
"""
CONFIG = LaunchConfig(grid=16, block=128)


def consumer(connection: Connection, n: int) -> None:
    """Runs in a process of its own: square what the producer wrote, as soon as it is written."""
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    square = build(dev, SOURCE).get_kernel("square")
    buffer: Buffer
    produced: Event
    buffer, produced = connection.recv()  # imports both
    stream.wait(produced)  # the device waits, this process does not
    launch(stream, CONFIG, square, buffer, np.int32(n))
    squared = stream.record(options={"ipc_enabled": True})
    connection.send(squared)
    connection.recv()  # the producer has what it wanted
    buffer.close(stream)
    stream.sync()


def main(n: int = 20_011) -> None:
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    pool = DeviceMemoryResource(dev, {"ipc_enabled": True})
    # CUDA does not survive a fork.
    context = multiprocessing.get_context("spawn")
    connection, other = context.Pipe()
    process = context.Process(target=consumer, args=(other, n))
    process.start()
    other.close()  # so that recv() fails, and does not wait, should the process crash

    buffer = pool.allocate(n * 4, stream=stream)
    launch(stream, CONFIG, build(dev, SOURCE).get_kernel("produce"), buffer, np.int32(n))
    produced = stream.record(options={"ipc_enabled": True})  # to be kept until the other process has it
    connection.send((buffer, produced))

    stream.wait(connection.recv())
    result = Array.from_buffer(buffer, n, np.int32).to_numpy(stream=stream)
    expected = np.arange(n, dtype=np.int32)
    expected *= expected
    assert np.array_equal(result, expected)
    connection.send("done")
    process.join(60)
    assert process.exitcode == 0
    print(f"ipc: process {process.pid} squared {n} numbers in memory of this process, on {dev.name}")
    for resource in (buffer, pool, produced, stream):
        resource.close()


if __name__ == "__main__":
    main()
