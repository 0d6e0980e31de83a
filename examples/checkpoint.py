"""Pause a training run, use its device memory for something else, and go on with the same result.

One process trains a model. Another one, which knows only the number of the process, locks it in the middle, moves its
memory off the device, takes that memory for work of its own, and lets the training go on. In the end the weights are
those of a run that nobody disturbed, bit for bit.

python examples/checkpoint.py                       # whichever device there is
CUPOLA_DEVICE=cpu python examples/checkpoint.py     # the CPU device
"""

import subprocess
import sys

import numpy as np

from cupola import Device, LaunchConfig, Program, ProgramOptions, launch, system
from cupola.checkpoint import Process

STEPS, PAUSE_AT, SAMPLES, FEATURES = 6000, 1000, 1 << 12, 8
WORKSPACE = 512 << 20  # bytes, as a larger model would have

# A step of gradient descent for a linear model: one block sums the gradient over all samples, always in the same order.
SOURCE = r"""
extern "C" __global__ void step(float* w, const float* x, const float* y, float* loss, int samples, float rate) {
    constexpr int features = 8;
    __shared__ float sums[features + 1][256];
    float sum[features + 1] = {};
    for (int i = threadIdx.x; i < samples; i += 256) {
        float error = -y[i];
        for (int f = 0; f < features; f++) error += w[f] * x[f * samples + i];
        for (int f = 0; f < features; f++) sum[f] += error * x[f * samples + i];
        sum[features] += error * error;
    }
    for (int f = 0; f <= features; f++) sums[f][threadIdx.x] = sum[f];
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            for (int f = 0; f <= features; f++) sums[f][threadIdx.x] += sums[f][threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x < features) w[threadIdx.x] -= rate * sums[threadIdx.x][0] / samples;
    if (threadIdx.x == features) *loss = sums[features][0] / samples;
}
"""


def train() -> None:
    """Train, and say how it goes. Nothing here knows of checkpoints."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    kernel = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("step")
    random = np.random.default_rng(1)
    inputs = random.normal(size=(FEATURES, SAMPLES)).astype(np.float32)
    outputs = np.arange(1, FEATURES + 1, dtype=np.float32) @ inputs

    x = device.allocate(inputs.nbytes, stream=stream)
    y = device.allocate(outputs.nbytes, stream=stream)
    weights = device.allocate(4 * FEATURES, stream=stream)
    loss = device.allocate(4, stream=stream)
    workspace = device.allocate(WORKSPACE, stream=stream)
    x.copy_from(inputs, stream=stream)
    y.copy_from(outputs, stream=stream)
    weights.fill(0, stream=stream)
    result = np.empty(FEATURES, np.float32)
    last = np.empty(1, np.float32)
    config = LaunchConfig(grid=1, block=256)
    for number in range(1, STEPS + 1):
        launch(stream, config, kernel, weights, x, y, loss, SAMPLES, 1e-3)
        if number % PAUSE_AT == 0:
            loss.copy_to(last, stream=stream)
            stream.sync()
            print(f"step {number}: loss {last[0]:.6f}", flush=True)
    weights.copy_to(result, stream=stream)
    stream.sync()
    workspace.close()
    print("weights", result.tobytes().hex(), flush=True)


def start() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, "train"], stdout=subprocess.PIPE, text=True)


def follow(process: subprocess.Popen[str], until: str) -> str:
    """Show what the process says until a line begins with some text; returns that line."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(until):
            return line.rstrip()
        print("  training:", line.rstrip())
    raise SystemExit("the training has ended early")


def show_memory(device: Device, when: str) -> None:
    used = system.Device(uuid=f"GPU-{device.uuid}").memory_info.used
    print(f"  {used >> 20:7} MiB of the device are in use {when}")


def main() -> None:
    print("A run that nobody disturbs")
    undisturbed = start()
    expected = follow(undisturbed, "weights")
    undisturbed.wait()

    print("The same again, paused in the middle")
    device = Device()
    device.set_current()
    training = start()
    print("  training:", follow(training, f"step {PAUSE_AT}"))
    process = Process(training.pid)
    process.lock(timeout_ms=60_000)  # its calls wait from here on
    show_memory(device, f"while it is {process.state}")
    process.checkpoint()
    show_memory(device, f"while it is {process.state}")

    stream = device.create_stream()
    other = device.allocate(WORKSPACE, stream=stream)  # the memory is free for others
    other.fill(0xFF, stream=stream)
    other.close(stream)
    stream.sync()

    process.restore()
    process.unlock()
    weights = follow(training, "weights")
    training.wait()
    assert weights == expected, "the weights differ"
    print("Both runs end with the same weights")


if __name__ == "__main__":
    train() if sys.argv[1:] == ["train"] else main()
