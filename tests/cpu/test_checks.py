"""The checks of kernels as programs use them: findings, expected and silenced ones, processes, reports and pytest."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time

import numpy as np
import pytest

from cupola import (
    GraphMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    cpu,
    launch,
)
from cupola.bindings import driver
from cupola.cpu import _checks, reports
from cupola.cpu.reports.findings import Finding, Place, from_dict
from tests import processes
from tests.cpu.driver.calls import ok, status

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
extern "C" __global__ void reverse(int* x, int sync) {
    __shared__ int s[64];
    s[threadIdx.x] = x[threadIdx.x];
    if (sync) __syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
}
"""
SCRIPT = f"""
import os, sys
import numpy as np
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
dev = Device()
dev.set_current()
stream = dev.create_stream()
options = ProgramOptions(name="reverse.cu", arch=f"sm_{{dev.arch}}")
kernel = Program(r'''{SOURCE}''', "c++", options).compile("cubin").get_kernel("reverse")
x = dev.array(np.arange(64, dtype=np.int32), stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), kernel, x, int(sys.argv[1]))
stream.sync()
"""


@pytest.fixture
def reverse(device):
    options = ProgramOptions(name="reverse.cu", arch=f"sm_{device.arch}", lineinfo=True)
    return Program(SOURCE, "c++", options).compile("cubin").get_kernel("reverse")


def run(device, stream, kernel, *, sync=False):
    x = device.array(np.arange(64, dtype=np.int32), stream=stream)
    launch(stream, LaunchConfig(grid=1, block=64), kernel, x, sync)
    stream.sync()


ADDITIONS = r"""
extern "C" __global__ void in_a_warp(int* x) { x[0] += 1; }
extern "C" __global__ void in_a_block(int* x) { if (threadIdx.x % 32 == 0) x[0] += 1; }
extern "C" __global__ void in_a_grid(int* x) { if (threadIdx.x == 0) x[0] += 1; }
"""


@pytest.mark.parametrize(
    ("name", "grid", "advice"),
    [
        ("in_a_warp", 1, "atomicAdd(); or if this is a loop, put __syncwarp() between its turns"),
        ("in_a_block", 1, "atomicAdd(); or if this is a loop, put __syncthreads() between its turns"),
        ("in_a_grid", 2, "atomicAdd(), or give each block an element of its own"),
    ],
)
def test_no_barrier_is_advised_within_a_line(device, stream, name, grid, advice):
    kernel = Program(ADDITIONS, "c++", ProgramOptions(name="add.cu", lineinfo=True)).compile("cubin").get_kernel(name)
    x = device.array(np.zeros(1, np.int32), stream=stream)
    with cpu.checks(race=True) as checks:
        launch(stream, LaunchConfig(grid=grid, block=64), kernel, x)
        stream.sync()
    assert any(finding.advice.endswith(advice) for finding in checks.findings), checks.findings
    assert not any("between the two" in finding.advice for finding in checks.findings)


def test_a_finding_says_where(device, stream, reverse):
    with cpu.checks(race=True) as checks:
        run(device, stream, reverse)
    (race,) = checks.findings
    assert "reverse" in {finding.kernel for finding in cpu.findings("race")}
    assert (race.kind, race.kernel, race.count) == ("race", "reverse", 64)
    later, earlier = race.places
    assert [(p.file, p.line, p.block_index) for p in race.places] == [("reverse.cu", n, (0, 0, 0)) for n in (4, 6)]
    assert {place.what for place in (later, earlier)} == {"write of 4 bytes", "read of 4 bytes, earlier"}
    assert later.thread_index != earlier.thread_index
    assert race.launched.startswith(f"{__file__}:")
    assert str(race).startswith("race in kernel 'reverse': shared memory is accessed by two threads")
    assert "found 64 times" in str(race) and "__syncthreads()" in race.advice
    assert from_dict(json.loads(json.dumps(race.as_dict()))) == race


TREE = r"""
extern "C" __global__ void tree(float* x) {
    __shared__ float s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int d = 64; d; d /= 2) {
        if (t < d) s[t] += s[t + d];
    }
    __syncthreads();
    x[t] = s[0];
}
"""


@pytest.mark.parametrize("lines", [True, False])
def test_a_loop_that_was_unrolled_is_one_line(device, stream, lines):
    """Without line information each instruction is told, since it is all that is known."""
    options = ProgramOptions(name="tree.cu", arch=f"sm_{device.arch}", lineinfo=True)
    text = Program(TREE, "c++", options).compile("ptx").code
    kernel = ObjectCode.from_ptx(text if lines else re.sub(rb"\t\.loc.*", b"", text)).get_kernel("tree")
    x = device.array(np.ones(128, np.float32), stream=stream)
    with cpu.checks(race=True) as checks:
        launch(stream, LaunchConfig(grid=1, block=128), kernel, x)
        stream.sync()
    found = [({p.line for p in f.places}, f.count) for f in checks.findings if "__syncwarp" in f.advice]
    counts = [16, 8, 4, 2, 1]
    assert found == ([({8}, sum(counts))] if lines else [({0}, count) for count in counts])


def test_kernels_have_their_names_in_cpp(device, stream):
    source = SOURCE.replace('extern "C" __global__ void reverse(int*', "template <class T> __global__ void turn(T*")
    code = Program(source, "c++", ProgramOptions(name="turn.cu")).compile("cubin", name_expressions=["turn<int>"])
    kernel = code.get_kernel("turn<int>")
    with cpu.expect_finding("race", kernel="turn<*") as found:
        run(device, stream, kernel)
    text = str(found[0])
    assert text.startswith("race in kernel 'turn<int>': ") and "at turn.cu:4 in turn<int>\n" in text
    assert found[0].kernel == "_Z4turnIiEvPT_i"
    with cpu.expect_finding("race", kernel="_Z4turnIiEvPT_i"):
        run(device, stream, kernel)
    cpu.silence(kernel="turn<int>", reason="a test")
    with cpu.checks(race=True) as checks:
        run(device, stream, kernel)
    assert checks.findings == []


def test_notebooks_show_a_table(device, stream, reverse):
    with cpu.checks(race=True) as checks:
        run(device, stream, reverse)
    shown = checks.findings._repr_html_()
    assert shown.count("<tr>") == 2 and "<code>reverse</code>" in shown
    assert "reverse.cu:4" in shown and "reverse.cu:6" in shown
    assert checks.findings[0]._repr_html_() == shown
    assert "nothing was found" in cpu.findings("leak")._repr_html_()
    place = Place("write of 4 bytes", "a.cu", 3, text="if (x < y) *p = 1;")
    assert "<code>if (x &lt; y) *p = 1;</code>" in Finding("race", "k", "two threads", (place,))._repr_html_()


def test_lines_are_kept_without_asking(device, stream):
    source = SOURCE.replace("reverse", "plainly")
    kernel = Program(source, "c++", ProgramOptions(name="plain.cu")).compile("cubin").get_kernel("plainly")
    with cpu.expect_finding("race") as found:
        run(device, stream, kernel)
    assert [place.file for place in found[0].places] == ["plain.cu", "plain.cu"] and found[0].places[0].line


def test_sound_and_unchecked_kernels(device, stream, reverse):
    with cpu.checks(race=True, init=True, sync=True) as checks:
        run(device, stream, reverse, sync=True)
    assert checks.findings == []
    before = [str(finding) for finding in cpu.findings()]
    run(device, stream, reverse)
    assert [str(finding) for finding in cpu.findings()] == before


class Looks:
    """Takes the place of the module time in cupola.cpu._checks, whose end never comes: waits must end by themselves."""

    def __init__(self) -> None:
        self.count = 0

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.count += 1
        assert self.count < 50_000, "it waits for what only the program can let go on"
        time.sleep(seconds)


def test_what_waits_for_the_program_is_not_waited_for(device, stream, reverse, monkeypatch):
    """A stream that waits for a value in memory, and one that waits for that stream."""
    gate = PinnedMemoryResource().allocate(4, stream=stream)
    value = np.from_dlpack(gate).view(np.uint32)
    value[:] = 0
    held, behind = device.create_stream(), device.create_stream()
    x = device.array(np.arange(64, dtype=np.int32), stream=stream)
    stream.sync()
    ok(driver.cuStreamWaitValue32(int(held.handle), int(gate.handle), 1, 0))
    behind.wait(held)
    monkeypatch.setattr(_checks, "time", Looks())
    try:
        with cpu.checks(sync=True):
            launch(stream, LaunchConfig(grid=1, block=64), reverse, x, 1)
        with cpu.expect_finding("race"):
            launch(stream, LaunchConfig(grid=1, block=64), reverse, x, 0)
        assert status(driver.cuStreamQuery(int(behind.handle))) == "CUDA_ERROR_NOT_READY"
    finally:
        value[:] = 1
    behind.sync()
    for each in (held, behind):
        each.close()
    gate.close()


@pytest.mark.parametrize(
    ("kind", "words"), [("colour", "kind must be one of race"), ("leak", "told when the process ends")]
)
def test_what_cannot_be_expected(device, kind, words):
    with pytest.raises(ValueError, match=words), cpu.expect_finding(kind):
        pass


def test_expected_findings_are_taken(device, stream, reverse):
    before = [finding.count for finding in cpu.findings()]
    with cpu.expect_finding("race", kernel="rev*") as found:
        run(device, stream, reverse)
    assert [(finding.kernel, finding.count) for finding in found] == [("reverse", 64)]
    assert [finding.count for finding in cpu.findings()] == before
    with pytest.raises(AssertionError, match="no race was found"), cpu.expect_finding("race"):
        run(device, stream, reverse, sync=True)


def test_silence(device, stream):
    code = Program(SOURCE.replace("reverse", "quiet"), "c++", ProgramOptions(name="quiet.cu", lineinfo=True))
    cpu.silence(kernel="quiet", line="quiet.cu:6", kind="race", reason="a test")
    with cpu.checks(race=True) as checks:
        run(device, stream, code.compile("cubin").get_kernel("quiet"))
    assert checks.findings == []
    assert [f.silenced for f in cpu.findings(silenced=True) if f.kernel == "quiet"] == ["a test"]
    for wrong in ({"reason": "all"}, {"kernel": "quiet", "reason": " "}, {"line": 3, "kind": "?", "reason": "x"}):
        with pytest.raises(ValueError, match="reason|kernel|kind"):
            cpu.silence(**wrong)


def test_copies_of_what_nobody_has_written(device, stream):
    with cpu.checks(init=True) as checks:
        buffer = device.allocate(1024, stream=stream)
        other = device.allocate(1024, stream=stream)
        buffer.fill(b"\1", stream=stream)
        other.copy_from(buffer, stream=stream)
        stream.sync()
        other.copy_to(np.empty(1024, np.uint8), stream=stream)
        stream.sync()
        assert checks.findings == []
        fresh = device.allocate(512, stream=stream)
        fresh.copy_to(np.empty(512, np.uint8), stream=stream)
        stream.sync()
    (finding,) = checks.findings
    assert finding.summary == "512 of 512 bytes that are copied to the host were never written"
    for each in (buffer, other, fresh):
        each.close()


@pytest.mark.parametrize("size", [256, 1 << 20], ids=["on this thread", "on another one"])
def test_a_finding_of_a_copy_collects_what_waits_for_its_stream(device, stream, monkeypatch, size):
    """To describe it is Python, so the garbage collector may run; what it destroys is destroyed later."""

    class Ring:
        def __init__(self):
            self.ring, self.buffer = self, LegacyPinnedMemoryResource().allocate(64)

    describe, begun = reports.add_unset_copy, []

    def collect(*arguments):
        begun.append(True)
        gc.collect()
        return describe(*arguments)

    monkeypatch.setattr(reports, "add_unset_copy", collect)
    host = LegacyPinnedMemoryResource().allocate(size)
    with cpu.checks(init=True) as checks:
        fresh = device.allocate(size, stream=stream)
        gc.collect()
        Ring()
        driver.cuMemcpyDtoHAsync(int(host.handle), int(fresh.handle), size, stream.handle)
        stream.sync()
    assert begun and len(checks.findings) == 1
    for each in (host, fresh):
        each.close()


def test_memory_that_is_written_while_the_check_is_off(device, stream, reverse):
    """Nobody notes that, so memory from before the check counts as written, and so do addresses that others get."""
    size = 256
    with cpu.checks(init=True):
        unset = [driver.cuMemAlloc(size)[1] for _ in range(40)]
    before = [int(each) for each in unset]
    for each in unset[1:]:
        driver.cuMemFree(each)
    again: dict[int, driver.CUdeviceptr] = {}
    for _ in range(20_000):  # slots come back late, in the order in which they were freed
        made = driver.cuMemAlloc(size)[1]
        if int(made) in before:
            again[int(made)] = made
            break
        driver.cuMemFree(made)
    assert again
    for each in (unset[0], *again.values()):
        driver.cuMemsetD8(each, 0, size)
        with cpu.checks(init=True) as checks:
            launch(stream, LaunchConfig(grid=1, block=64), reverse, int(each), 1)
            stream.sync()
        assert checks.findings == []
        driver.cuMemFree(each)


def test_memory_that_is_freed_in_a_stream_and_allocated_again(device, stream, reverse):
    """What is queued in front of the free reads what was there."""
    flag = device.allocate(4, stream=stream)
    with cpu.checks(init=True) as checks:
        old = device.array(np.arange(64, dtype=np.int32), stream=stream)
        flag.fill(0, stream=stream)
        stream.sync()
        driver.cuStreamWaitValue32(stream.handle, flag.handle, 1, 0)
        launch(stream, LaunchConfig(grid=1, block=64), reverse, old, 1)
        old.buffer.close(stream)
        new = device.allocate(256, stream=stream)
        other = device.create_stream()
        flag.fill(1, stream=other)
        stream.sync()
    assert checks.findings == []
    for each in (new, flag, other):
        each.close()


def test_memory_of_a_graph_that_is_launched_again_before_the_free(device, stream, reverse):
    """To what is queued in front of the free the memory is the old one; behind it nobody has written it."""
    flag, other = device.allocate(4, stream=stream), device.create_stream()
    got = np.empty(256, np.uint8)
    with cpu.checks(init=True) as checks:
        builder = device.create_graph_builder().begin_building()
        memory = GraphMemoryResource(device).allocate(256, stream=builder)
        graph = builder.end_building().complete()
        flag.fill(0, stream=stream)
        graph.launch(stream)
        memory.fill(1, stream=stream)
        stream.sync()
        driver.cuStreamWaitValue32(stream.handle, flag.handle, 1, 0)
        launch(stream, LaunchConfig(grid=1, block=64), reverse, memory, 1)
        driver.cuMemFreeAsync(memory.handle, stream.handle)
        graph.launch(stream)
        flag.fill(1, stream=other)
        stream.sync()
        assert checks.findings == []
        memory.copy_to(got, stream=stream)
        stream.sync()
    (finding,) = checks.findings
    assert finding.summary == "256 of 256 bytes that are copied to the host were never written"
    for each in (memory, flag, other, graph, builder):
        each.close()


def test_refused():
    with pytest.raises(TypeError, match="at least one of race, init, sync, memory"):
        cpu.checks()
    with pytest.raises(ValueError, match="kind must be one of"):
        cpu.findings("color")


@pytest.mark.parametrize(("sync", "status"), [(0, 1), (1, 0)])
def test_processes(tmp_path, sync, status):
    script, report, whole = tmp_path / "script.py", tmp_path / "found.sarif", tmp_path / "found.json"
    script.write_text(SCRIPT)
    options = ["--check", "race", "--report", str(report), "--report", str(whole)]
    command = [sys.executable, "-m", "cupola", "run", *options, str(script), str(sync)]
    done = processes.run(command)
    assert done.returncode == status, done.stderr
    results = json.loads(report.read_text())["runs"][0]["results"]
    assert len(results) == status == done.stderr.count("race in kernel 'reverse'")
    assert [finding["kernel"] for finding in json.loads(whole.read_text())] == ["reverse"] * status
    if results:
        line = SCRIPT[: SCRIPT.index("s[threadIdx.x] = x")].count("\n") + 1
        assert f"{script}:{line}: s[threadIdx.x] = x[threadIdx.x];" in done.stderr
        places = (results[0]["locations"] + results[0]["relatedLocations"])[:2]
        regions = [place["physicalLocation"] for place in places]
        assert {region["artifactLocation"]["uri"] for region in regions} == {str(script)}
        assert {region["region"]["startLine"] for region in regions} == {line, line + 2}


LEAKS = """
import sys
from cupola import Device
from cupola.bindings import driver
dev = Device()
dev.set_current()
stream = dev.create_stream()
with dev.allocate(1024, stream=stream):
    pass
for _ in range(int(sys.argv[1])):
    driver.cuMemAlloc(256)
"""


@pytest.mark.parametrize("count", [0, 3])
def test_leaks(tmp_path, count):
    script = tmp_path / "leaks.py"
    script.write_text(LEAKS)
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CHECK": "leak"}
    command = [sys.executable, str(script), str(count)]
    plain = processes.run(command, env=environment)
    command[1:1] = ["-m", "cupola", "run", "--check", "leak"]
    run = processes.run(command)
    for done in (plain, run):
        assert done.returncode == bool(count), done.stderr
        text = "768 bytes in 3 allocations by cuMemAlloc were never freed"
        assert done.stderr.count(text) == done.stderr.count(f"allocated at {script}:11") == bool(count)


KINDS_OF_LEAKS = """
import ctypes
import sys
from cupola import Device
from cupola.bindings import driver as d
dev = Device()
dev.set_current()
undo = sys.argv[1].split(",")
room = ctypes.create_string_buffer(8192)
d.cuMemHostRegister(ctypes.addressof(room), 4096, 0)  # registered
prop = d.CUmemAllocationProp()
prop.type = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
prop.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
size = 2 << 20
base = d.cuMemAddressReserve(2 * size, 0, 0, 0)[1]  # reserved
memory = d.cuMemCreate(size, prop, 0)[1]  # made
d.cuMemMap(base, size, 0, memory, 0)  # mapped
graph = d.cuGraphCreate(0)[1]
params = d.CUDA_MEM_ALLOC_NODE_PARAMS()
params.poolProps.allocType = prop.type
params.poolProps.location = prop.location
params.bytesize = 512
node = d.cuGraphAddMemAllocNode(graph, None, 0, params)[1]  # allocated
launchable = d.cuGraphInstantiate(graph, 0)[1]
for _ in range(2):
    d.cuGraphLaunch(launchable, 0)
    d.cuStreamSynchronize(0)
    if "allocated" in undo or not _:
        d.cuMemFree(params.dptr)
if "registered" in undo:
    d.cuMemHostUnregister(ctypes.addressof(room))
if "mapped" in undo:
    d.cuMemUnmap(base, size)
if "made" in undo:
    d.cuMemRelease(memory)
if "reserved" in undo:
    d.cuMemAddressFree(base, 2 * size)
"""
SIZES_OF_LEAKS = {
    "registered": "4096 bytes in 1 registration by cuMemHostRegister were never unregistered",
    "reserved": "4194304 bytes in 1 reservation by cuMemAddressReserve were never freed",
    "made": "2097152 bytes in 1 handle by cuMemCreate were never released",
    "mapped": "2097152 bytes in 1 mapping by cuMemMap were never unmapped",
    "allocated": "512 bytes in 1 allocation by cuGraphAddMemAllocNode were never freed",
}


@pytest.mark.parametrize(
    "undone", ["none", "registered,mapped,made,allocated", "registered,reserved,made,mapped,allocated"]
)
def test_leaks_of_other_memory(tmp_path, undone):
    """Registered, mapped and reserved memory, and that of graphs: each has a call that ends it."""
    script = tmp_path / "kinds.py"
    script.write_text(KINDS_OF_LEAKS)
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CHECK": "leak"}
    command = [sys.executable, str(script), undone]
    done = processes.run(command, env=environment)
    expected = []
    for number, line in enumerate(KINDS_OF_LEAKS.splitlines(), 1):
        kind = line.rpartition("# ")[2]
        if kind in SIZES_OF_LEAKS and kind not in undone:
            expected.append(f"cupola: leak: {SIZES_OF_LEAKS[kind]}\n  {kind} at {script}:{number}")
    assert done.returncode == bool(expected), done.stderr
    assert done.stderr.count("cupola: leak") == len(expected), done.stderr
    assert all(text in done.stderr for text in expected), done.stderr


def test_a_fault_says_who_launched(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("x[threadIdx.x] = s", "x[threadIdx.x + 99999999] = s"))
    command = [sys.executable, "-m", "cupola", "run", "--check", "memory", str(script), "1"]
    done = processes.run(command)
    assert done.returncode == 1
    line = SCRIPT[: SCRIPT.index("launch(stream")].count("\n") + 1
    assert f"launched at {script}:{line}" in done.stderr, done.stderr


TESTS = f"""
import numpy as np
import pytest
from cupola import LaunchConfig, Program, launch, cpu

def start(device, stream, sync):
    kernel = Program(r'''{SOURCE}''', "c++").compile("cubin").get_kernel("reverse")
    x = device.array(np.arange(64, dtype=np.int32), stream=stream)
    launch(stream, LaunchConfig(grid=1, block=64), kernel, x, sync)

def test_wrong(device, stream):
    start(device, stream, 0)

def test_right(device, stream):
    start(device, stream, 1)

def test_expected(device, stream):
    with cpu.expect_finding("race"):
        start(device, stream, 0)

def test_fails_itself(device, stream):
    start(device, stream, 0)
    assert not "as well"

def test_after_one_that_fails(device, stream):
    start(device, stream, 1)

@pytest.fixture
def late(device, stream):
    yield
    start(device, stream, 0)

def test_fixture(late):
    pass
"""


def test_pytest(tmp_path):
    (tmp_path / "test_kernels.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "cupola.testing.plugin", "--cupola-check", "race"]
    command += ["-p", "no:cacheprovider", "-n", "0", str(tmp_path)]
    done = processes.run(command, cwd=tmp_path)
    assert re.search(r"2 failed, 4 passed,.* 1 error", done.stdout), done.stdout + done.stderr
    assert done.stdout.count("\nrace in kernel 'reverse'") == 3 and 'assert not "as well"' in done.stdout
