"""What the environment says about the CPU device. Nonsense is refused by the first call, with the variable's name."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu_only

Run = Callable[..., subprocess.CompletedProcess[str]]

NONSENSE = {
    "CUPOLA_CPU_MODEL": ["h300"],
    "CUPOLA_CPU_DEVICES": ["0", "17", "two", "2.5"],
    "CUPOLA_CPU_THREADS": ["0", "-1", "many", "257", "0x4"],
    "CUPOLA_CPU_MEMORY": ["x", "4X", "-4G", "0", "4GG", "G", "nan", "1e30"],
    "CUPOLA_CPU_CUDA_VERSION": ["99", "13", "11.8"],
    "CUPOLA_CPU_TIMEOUT": ["-1", "soon", "inf", "1s"],
    "CUPOLA_CPU_CACHE": ["no", "2"],
    "CUPOLA_CPU_NUMERICS": ["Exact", "1", "quick"],
}

REFUSED = r"""
import os
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, status
for value in {values!r}:
    os.environ[{name!r}] = value
    result = driver.cuInit(0)
    assert status(result) == "CUDA_ERROR_INVALID_VALUE", value
    assert {name!r} in explanation(result) and repr(value) in explanation(result), explanation(result)
os.environ[{name!r}] = ""
assert status(driver.cuInit(0)) == "CUDA_SUCCESS"
"""


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(name: str, run_python: Run) -> None:
    done = run_python(REFUSED.format(name=name, values=NONSENSE[name]), CUPOLA_DEVICE="cpu")
    assert done.returncode == 0, done.stderr


MEMORY = {"1048576": 1 << 20, "4096K": 1 << 22, "64M": 1 << 26, "1.5GiB": 3 << 29, "2 gb": 1 << 31, "1T": 1 << 40}


LARGE = pytest.mark.unchecked(reason="checks keep a record of all memory, and this is more than a computer has")


@pytest.mark.parametrize("text", [pytest.param(text, marks=LARGE if text == "1T" else ()) for text in MEMORY])
def test_memory_has_units(text: str, run_python: Run) -> None:
    program = r"""
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok
ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
kept = []
while not int((result := driver.cuMemAlloc(1 << 45 if kept else 1 << 37))[0]):
    kept.append(result[1])
print(explanation(result))
"""
    done = run_python(program, CUPOLA_DEVICE="cpu", CUPOLA_CPU_MEMORY=text, CUPOLA_CPU_MODEL="b200")
    assert done.returncode == 0, done.stderr
    held = re.search(r"may hold ([\d.]+) (\w+)", done.stdout)
    if held is None:  # the modeled device is smaller
        assert MEMORY[text] > 1 << 37 and "the modeled device 0 has" in done.stdout
        return
    unit = {"bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[held[2]]
    assert float(held[1]) * 2**unit == MEMORY[text]


BLOCKING = r"""
from cupola import CUDAError, Device, LaunchConfig, Program, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = Program('extern "C" __global__ void fail() { __trap(); }', "c++").compile("cubin").get_kernel("fail")
try:
    launch(stream, LaunchConfig(grid=1, block=1), kernel)
    print("launched")
    stream.sync()
except CUDAError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.parametrize(("value", "call"), [("1", "cuLaunchKernelEx"), ("0", "cuStreamSynchronize")])
def test_launches_that_block_have_their_faults(value: str, call: str, run_python: Run) -> None:
    done = run_python(BLOCKING, CUPOLA_DEVICE="cpu", CUDA_LAUNCH_BLOCKING=value)
    assert done.stdout.splitlines()[-1].endswith(f"({call})"), done.stdout + done.stderr
    assert ("launched" in done.stdout) == (value == "0")


def test_graphs_are_captured_although_launches_block(run_python: Run) -> None:
    program = r"""
from cupola import Device, LaunchConfig, Program, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = Program('extern "C" __global__ void nothing() {}', "c++").compile("cubin").get_kernel("nothing")
builder = stream.create_graph_builder().begin_building()
launch(builder, LaunchConfig(grid=1, block=1), kernel)
graph = builder.end_building().complete()
graph.launch(stream)
stream.sync()
print("done")
"""
    done = run_python(program, CUPOLA_DEVICE="cpu", CUDA_LAUNCH_BLOCKING="1")
    assert done.stdout == "done\n", done.stderr


def test_the_page_lists_all_variables() -> None:
    root = Path(__file__).parents[4]
    files = [*root.glob("src/cupola/cpu/**/*.py"), *root.glob("src/cupola/cpu/**/*.c")]
    read = {name for file in files for name in re.findall(r"\bCUPOLA_(?:CPU_)?[A-Z_]+[A-Z]\b", file.read_text())}
    variables = {name for name in read if re.search(rf'"{name}"', "".join(f.read_text() for f in files))}
    page = (root / "docs" / "cpu-device.md").read_text()
    assert variables and not [name for name in sorted(variables) if f"| `{name}` |" not in page]
