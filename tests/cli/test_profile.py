"""Profiles: what is counted of kernels, what the report says, and that occupancy is what the driver says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cupola.cli.profile import advice, roofline
from cupola.cli.profile.model import Counts, Kernel
from cupola.cli.profile.occupancy import occupancy
from tests import processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "profiling.md").read_text()

pytestmark = pytest.mark.cpu_only


def cupola(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "CUPOLA_DEVICE"}
    command = [sys.executable, "-m", "cupola", *arguments]
    return processes.run(command, cwd=folder, env=environment)


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory) -> Path:
    """A folder with the program of the page, and its picture."""
    folder = tmp_path_factory.mktemp("profile")
    found = re.search(r"<!-- program: transpose.py -->\n```python\n(.*?)```", PAGE, re.S)
    assert found is not None
    (folder / "transpose.py").write_text(found[1])
    done = cupola(folder, "profile", "--roofline", "roofline.svg", "transpose.py")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (folder / "said").write_text(done.stderr)
    return folder


def test_the_tutorial_prints_what_the_page_says(tutorial) -> None:
    """The shares of instructions differ from one NVRTC to the next."""
    printed = re.search(r"^\$ cupola profile transpose.py\n(.*?)^```", PAGE, re.S | re.M)
    assert printed is not None
    here, there = (
        re.sub(r"(?m)^  (instructions|threads) .*$", "", text) for text in ((tutorial / "said").read_text(), printed[1])
    )
    assert here == there


def test_the_picture_of_the_page_is_drawn(tutorial) -> None:
    drawn = (tutorial / "roofline.svg").read_text()
    assert drawn == (ROOT / "docs" / "images" / "roofline.svg").read_text()
    tree = ElementTree.fromstring(drawn)
    texts = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "transpose: 0.0278 operations a byte" in texts
    assert "4.92 T bytes/s of memory" in texts


def test_every_line_is_told_if_wanted(tutorial) -> None:
    done = cupola(tutorial, "profile", "--lines", "transpose.py")
    assert done.returncode == 0
    assert re.search(r"^  12 +[\d,]+ +32.0 +16,384 +12% +out\[x \* N \+ y\] =", done.stderr, re.M), done.stderr
    assert re.search(r"^  17 +[\d,]+ +21.3 +3,072 +100% +6.0 +atomicAdd", done.stderr, re.M), done.stderr


ONE = '''
from cupola import Device, LaunchConfig, cpu, launch
import cupola
from cupola.bindings import driver
cpu.use()
dev = Device()
dev.set_current()
stream = dev.create_stream()
source = """
extern "C" __global__ void one(float* x) {
    extern __shared__ float held[];
    held[0] = *x;
    __syncthreads();
    *x = held[0] * 2;
}
"""
one = cupola.compile(source).get_kernel("one")
most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
driver.cuKernelSetAttribute(most, 160000, int(one.handle), 0)
x = dev.allocate(4, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1, shmem_size=160000), one, x)
stream.sync()
'''


def test_one_of_a_thing_is_no_plural(tmp_path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    said = cupola(tmp_path, "profile", "one.py").stderr
    assert "1 request of global memory, 1 sector, 100% of them needed" in said
    assert "1 block of 1 warp on a multiprocessor" in said
    assert "1 operation on 64 bytes" in said
    assert re.findall(r"\b1 [a-z]+s\b", said) == [], said


def test_json_has_each_line(tutorial) -> None:
    done = cupola(tutorial, "profile", "--json", "--model", "t4", "transpose.py")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["model"]["major"] == 7 and data["roofline"]["bytes_per_second"] == 2 * 5.001e9 * 32
    kernels = {kernel["name"]: kernel for kernel in data["kernels"]}
    assert set(kernels) == {"transpose", "count"}
    lines = {row["text"]: row for row in kernels["transpose"]["lines"]}
    store = lines["out[x * N + y] = tile[threadIdx.y][threadIdx.x];"]
    assert store["source"] == "transpose.py"
    assert store["accesses"]["store"]["sectors"] == 128 * 128
    assert store["accesses"]["store"]["global_bytes"] == 4 * 128 * 128
    assert store["accesses"]["load"]["wavefronts"] == 512
    assert kernels["transpose"]["total"]["operations"] == 128 * 128
    atomics = next(row for text, row in lines_of(kernels["count"]).items() if "atomicAdd" in text)
    positive = [i for i in range(128 * 128) if i % 3]
    assert atomics["accesses"]["atomic"]["global_threads"] == len(positive)
    most = 0
    for first in range(0, 128 * 128, 32):
        warp = [i % 4 for i in range(first, first + 32) if i % 3]
        most += max(warp.count(bin) for bin in range(4))
    assert atomics["accesses"]["atomic"]["same"] == most
    assert [finding["kind"] for finding in data["findings"]][:2] == ["sectors", "atomics"]
    assert data["findings"][0]["line"] == 12


def lines_of(kernel: dict) -> dict[str, dict]:
    return {row["text"]: row for row in kernel["lines"]}


def test_only_the_cpu_device_counts(tmp_path) -> None:
    assert "on the CPU device only" in cupola(tmp_path, "profile", "--device", "gpu", "x.py").stderr
    (tmp_path / "none.py").write_text("raise SystemExit(4)")
    done = cupola(tmp_path, "profile", "none.py")
    assert (done.returncode, done.stderr) == (4, "cupola profile: no kernel ran on the CPU device\n")


def test_occupancy_is_what_the_driver_says() -> None:
    """For kernels with different registers and shared memory, in blocks of many sizes."""
    from cupola import Device, Program
    from cupola.cpu import _driver

    dev = Device()
    dev.set_current()
    source = "".join(
        f'extern "C" __global__ void __launch_bounds__({most}) k{i}(float *x) {{ __shared__ float s[{words}]; '
        f"float v[{many}]; for (int i = 0; i < {many}; i++) v[i] = x[i * threadIdx.x]; s[threadIdx.x] = v[0]; "
        f"__syncthreads(); for (int i = 0; i < {many}; i++) x[i + threadIdx.x] = v[i] * s[i]; }}\n"
        for i, (most, words, many) in enumerate([(1024, 1024, 4), (1024, 1100, 40), (256, 9000, 120), (128, 512, 200)])
    )
    code = Program(source, "c++").compile("cubin")
    model = _driver.model_facts()
    seen = set()
    for i in range(4):
        kernel = code.get_kernel(f"k{i}")
        registers, static = kernel.attributes.num_regs, kernel.attributes.shared_size_bytes
        for threads in (1, 32, 33, 96, 128, 256, 512, 1000, 1024):
            for dynamic in (0, 1000, 4000):
                held = occupancy(model, threads=threads, registers=registers, shared=static + dynamic)
                said = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, dynamic)
                assert held.blocks == said, (i, threads, dynamic)
                seen.update(held.limited_by)
    assert seen == {"threads", "blocks", "registers", "shared memory"}


def kernel_with(**row) -> Kernel:
    counts = Counts()
    empty = {"classes": {}, "operations": 0, "accesses": {}, "branches": [0, 0]}
    counts.add({**empty, **row})
    return Kernel("k", (1,), (32,), (1,), 0, 8, 0, 0, 1, counts, {("k.cu", 3): counts}, {("k.cu", 3): "x = y;"})


@pytest.mark.parametrize(
    ("row", "kind", "lost"),
    [
        ({"accesses": {"load": [2, 64, 64, 8, 0, 0, 0, 0, 0, 256, 0]}}, "sectors", 56),
        ({"accesses": {"store": [0, 0, 0, 0, 2, 64, 64, 2, 0, 0, 256]}}, "banks", 62),
        ({"accesses": {"atomic": [2, 64, 2, 2, 0, 0, 0, 0, 64, 256, 0]}}, "atomics", 62),
        ({"classes": {"fp32": [10, 160]}, "branches": [4, 2]}, "divergence", 5),
        ({"classes": {"fp32": [10, 320]}, "accesses": {"load": [2, 64, 8, 8, 2, 64, 2, 2, 0, 256, 0]}}, None, 0),
    ],
)
def test_what_is_lost(row, kind, lost) -> None:
    found = advice.findings([kernel_with(**row)])
    assert [(finding.kind, finding.lost, finding.line) for finding in found] == ([(kind, lost, 3)] if kind else [])


def test_the_roofline_is_that_of_the_model() -> None:
    h200 = {"major": 9, "minor": 0, "multiprocessors": 132, "clock": 1980000, "memory_clock": 3201000}
    h200 |= {"memory_bus": 6144, "double_ratio": 2, "name": "H200"}
    assert roofline.peak(h200) == pytest.approx(66.9e12, rel=0.01), "NVIDIA's data sheet says 67 TFLOPS"
    assert roofline.peak(h200, double=True) == pytest.approx(33.5e12, rel=0.01), "34 TFLOPS"
    assert roofline.bandwidth(h200) == pytest.approx(4.8e12, rel=0.03), "4.8 TB/s"
    kernel = kernel_with(operations=512, accesses={"load": [1, 32, 4, 4, 0, 0, 0, 0, 0, 128, 0]})
    tree = ElementTree.fromstring(roofline.draw(h200, [kernel, kernel_with()]))
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}circle"))) == 1
