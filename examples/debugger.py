"""Watching a kernel at work: which threads swap in each step of a bitonic sort, and the shared memory that they leave.

A debugger is for the CPU device, so this example always runs there.
"""

import numpy as np

import cupola.cpu
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """\
extern "C" __global__ void sort(int* x) {
    __shared__ int s[16];
    int i = threadIdx.x;
    s[i] = x[i];
    for (int size = 2; size <= 16; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int other = i ^ stride;
            bool up = (i & size) == 0;
            if (other > i && (s[i] > s[other]) == up) {
                int kept = s[i];
                s[i] = s[other];
                s[other] = kept;
            }
        }
    __syncthreads();
    x[i] = s[i];
}
"""


def main() -> None:
    cupola.cpu.use()
    numbers = np.random.default_rng(1).permutation(16).astype(np.int32)
    with cupola.cpu.debugger() as debugger:
        dev = Device()
        dev.set_current()
        stream = dev.create_stream()
        kernel = Program(SOURCE, "c++", ProgramOptions(name="sort.cu")).compile("cubin").get_kernel("sort")
        x = dev.array(numbers, stream=stream)

        swaps = debugger.watch("sort.cu:11:stride")  # line 11 is where a thread begins to swap
        debugger.breakpoint("sort.cu:16", temporary=True)  # all steps are done
        sorted_in_shared_memory: list[object] = []

        @debugger.on_stop
        def look(stop: cupola.cpu.Stop) -> None:
            sorted_in_shared_memory.extend(stop.evaluate("s"))
            print(f"at {stop.file}:{stop.line}, thread {stop.thread_number}: s = {stop.show('s')}")

        launch(stream, LaunchConfig(grid=1, block=16), kernel, x)
        stream.sync()

    for stride in (1, 2, 4, 8):
        threads = [seen.thread[0] for seen in swaps.values if seen.value == stride]
        print(f"stride {stride}: {len(threads)} swaps, by threads {sorted(set(threads))}")
    assert sorted_in_shared_memory == x.to_numpy().tolist() == list(range(16))
    print("sorted, and the debugger has seen it")


if __name__ == "__main__":
    main()
