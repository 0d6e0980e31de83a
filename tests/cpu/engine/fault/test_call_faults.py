"""What is said about faults in called functions: the chain of calls, the stack, pointers that point to no function."""

from __future__ import annotations

import re

import pytest

from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
#define KERNEL(name) extern "C" __global__ void name(int *data, int *other, int n)
__device__ int walk(int *data, int at, int left) {
    if (!left) return data[at];  // LINE walk
    int found = walk(data, at + 20, left - 1);  // LINE step
    return found + left;
}
KERNEL(deep) {
    other[0] = walk(data, threadIdx.x, n - 247);  // LINE deep
}
__device__ int endless(int n) {
    volatile int kept[40];  // LINE endless
    kept[n % 40] = n;
    return n < 0 ? kept[3] : endless(n + 1) + kept[n % 40];
}
KERNEL(overflow) { other[0] = endless(n); }
typedef int (*Function)(int);
typedef float (*Other)(float, float);
__device__ float two(float a, float b) { return a + b; }
__device__ Other table[1] = {two};
KERNEL(null_call) { other[0] = ((Function)(long long)(n - 252))(3); }  // LINE null_call
KERNEL(wild_call) { other[0] = ((Function)data)(threadIdx.x); }
KERNEL(other_call) { other[0] = ((Function)(long long)table[n / 1000])(threadIdx.x); }
__device__ __noinline__ int stop(int *data, int left) {
    if (!left) __trap();
    return data[left] - stop(data, left - 1);
}
KERNEL(trapped) { other[0] = stop(data, threadIdx.x == 3 ? 2 : 5); }
KERNEL(freed) {
    int *mine = (int *)malloc(100);
    free(mine);
    other[0] = mine[3];  // LINE freed
}
KERNEL(past_the_end) {
    int *mine = (int *)malloc(100);
    mine[25 + threadIdx.x] = 1;  // LINE past_the_end
}
KERNEL(freed_twice) {
    int *mine = (int *)malloc(100);
    free(mine);
    free(mine);  // LINE freed_twice
}
KERNEL(freed_what_is_not_its_own) { free(data); }
"""

FAULTS = {  # the CUDA error, patterns
    "deep": (
        "ILLEGAL_ADDRESS",
        r"at \S+:<walk> in \w*walk.*\n.*LINE walk\n  PTX.*\n"
        r"  called at \S+:<step> in \w*walk\w*, 5 times\n  called at \S+:<deep> ",
        r"144 bytes past the end of a 256-byte allocation",
    ),
    "overflow": (
        "HARDWARE_STACK_ERROR",
        r"ran out of stack",
        r"called at \S+ in \w*endless\w*, 24 times\n  and \d+ calls more\n",
        r"of a thread's stack are in use; a larger CU_LIMIT_STACK_SIZE \(it is 1024; cuCtxSetLimit\)",
    ),
    "null_call": ("INVALID_PC", r"at \S+:<null_call> in null_call", r"the pointer is null"),
    "wild_call": ("INVALID_PC", r"0x[0-9a-f]+ is not the address of a function"),
    "other_call": ("INVALID_PC", r"takes other parameters than the call passes, or is of"),
    "trapped": ("LAUNCH_FAILED", r"thread \(3, 0, 0\)", r"executed a trap", r"called at \S+ in \w*stop\w*, 2 times"),
    "freed": ("ILLEGAL_ADDRESS", r"at \S+:<freed> in", r"12 bytes inside a 100-byte allocation at \S+ that was freed"),
    "past_the_end": ("ILLEGAL_ADDRESS", r"at \S+:<past_the_end> in", r"past the end of a 100-byte allocation"),
    "freed_twice": ("ILLEGAL_ADDRESS", r"at \S+:<freed_twice> in", r"free\(\) of 0x\w+, which was freed already"),
    "freed_what_is_not_its_own": ("ILLEGAL_ADDRESS", r"which malloc\(\) in a kernel of this context did not return"),
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return explanations(SOURCE, dict.fromkeys(FAULTS, {}))


@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_call(name: str, texts: dict[str, str]) -> None:
    status, *patterns = FAULTS[name]
    text = texts[name]
    assert text.startswith(f"CUDA_ERROR_{status}"), text
    lines = {m[1]: n for n, line in enumerate(SOURCE.splitlines(), 1) if (m := re.search(r"// LINE (\w+)$", line))}
    for pattern in patterns:
        assert re.search(re.sub(r"<(\w+)>", lambda m: str(lines[m[1]]), pattern), text), text


OTHER_MODULE = """
import numpy as np
from cupola import CUDAError, Device, LaunchConfig, Program, launch

device = Device()
device.set_current()
stream = device.create_stream()
source = '''
typedef int (*Function)(int);
__device__ int add(int x) { return x + NUMBER; }
__device__ Function known = add;
extern "C" __global__ void call(Function function, int* out) { *out = function(1) + (function == known); }
'''
modules = [Program(source.replace("NUMBER", number), "c++").compile("cubin") for number in ("10", "20")]
code, pointers = [], []
for module in modules:
    module.get_kernel("call")
    pointer = np.zeros(1, np.uint64)
    module.get_global("known").copy_to(pointer, stream=stream)
    stream.sync()
    pointers.append(pointer[0])
out, found = device.allocate(4, stream=stream), np.zeros(1, np.int32)
for module, pointer in ((modules[0], pointers[0]), (modules[1], pointers[1]), (modules[1], pointers[0])):
    launch(stream, LaunchConfig(grid=1, block=1), module.get_kernel("call"), pointer, out)
    try:
        out.copy_to(found, stream=stream)
        stream.sync()
        print(found[0])
    except CUDAError as error:
        print(error)
"""


def test_a_function_of_another_module(run_python) -> None:
    """Modules have their functions at different addresses, so none is mistaken for another."""
    done = run_python(OTHER_MODULE)
    assert done.stdout.startswith("12\n22\nCUDA_ERROR_INVALID_PC"), done.stdout + done.stderr
    assert "or is of another module" in done.stdout
