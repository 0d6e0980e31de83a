"""Two streams and events: one produces, the other consumes, and an event carries the order between them."""

import numpy as np
from arrays import build

from cupola import Device, EventOptions, LaunchConfig, launch

SOURCE = r"""
extern "C" __global__ void produce(int* x, int n, int round) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = i + round;
}
extern "C" __global__ void consume(const int* x, long long* total, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(reinterpret_cast<unsigned long long*>(total), (unsigned long long)(x[i]));
}
"""


def main(n: int = 20_011, rounds: int = 5) -> None:
    dev = Device()
    dev.set_current()
    producer, consumer = dev.create_stream(), dev.create_stream()
    module = build(dev, SOURCE)
    produce, consume = module.get_kernel("produce"), module.get_kernel("consume")
    x, total = dev.empty(n, np.int32, stream=producer), dev.zeros(1, np.int64, stream=consumer)
    config = LaunchConfig(grid=16, block=128)
    timed = EventOptions(timing_enabled=True)
    first = producer.record(options=timed)
    for r in range(rounds):
        launch(producer, config, produce, x, np.int32(n), np.int32(r))
        consumer.wait(producer.record())
        launch(consumer, config, consume, x, total, np.int32(n))
        producer.wait(consumer.record())
    last = consumer.record(options=timed)
    last.sync()
    expected = sum(int(np.arange(n, dtype=np.int64).sum()) + n * r for r in range(rounds))
    assert total.to_numpy(stream=consumer)[0] == expected
    print(f"streams: {rounds} rounds took {last - first:.3f} ms and add up to {expected}, on {dev.name}")
    for resource in (x, total, producer, consumer):
        resource.close()


if __name__ == "__main__":
    main()
