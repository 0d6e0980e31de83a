"""cupola.profile.timeline: what a program did, on both devices, and the files that tell it."""

from __future__ import annotations

import json
import re
import sys
import threading

import numpy as np
import pytest

import cupola
from cupola import LaunchConfig, PinnedMemoryResource, launch, profile
from cupola.profile import Record
from cupola.profile._page import page
from cupola.profile._summary import summary
from tests import processes

SOURCE = """
extern "C" __global__ void slow(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 50; k++) if (i < n) x[i] = x[i] * 0.5f + 1;
}
"""
N = 50_000


@pytest.fixture(scope="module")
def program(dev):
    return cupola.compile(SOURCE).get_kernel("slow")


@pytest.fixture(scope="module")
def dev():
    device = cupola.Device()
    device.set_current()
    try:
        with profile.timeline():
            pass
    except RuntimeError as error:
        if "needs CUPTI" not in str(error):
            raise
        pytest.skip(str(error))
    return device


@pytest.fixture(scope="module")
def recorded(dev, program):
    """A program with some of everything."""
    one, other = dev.create_stream(), dev.create_stream()
    pinned = PinnedMemoryResource().allocate(4 * N, stream=one)
    config = LaunchConfig(grid=(N // 250, 1, 1), block=250, shmem_size=16)
    x, y = (dev.zeros(N, np.float32, stream=stream) for stream in (one, other))
    builder = dev.create_graph_builder().begin_building()
    for _ in range(3):
        launch(builder, config, program, y, N)
    graph = builder.end_building().complete()
    one.sync()
    with profile.timeline() as timeline, profile.range("whole"):
        with profile.range("first"):
            launch(one, config, program, x, N)
        x.buffer.copy_to(pinned, stream=one)
        graph.launch(other)
        x.buffer.fill(0, stream=one)
        dev.allocate(1 << 20, stream=one).close()
        profile.mark("here")
        one.sync()
        other.sync()
    graph.close()
    return timeline


def of(timeline, kind):
    return [record for record in timeline.records if record.kind == kind]


def test_kernels(recorded):
    kernels = of(recorded, "kernel")
    assert [(k.name, k.grid, k.block, k.shared) for k in kernels] == [("slow", (N // 250, 1, 1), (250, 1, 1), 16)] * 4
    assert all(recorded.begin <= k.begin < k.end <= recorded.end for k in kernels)
    assert len({k.place for k in kernels}) == 2 and {k.device for k in kernels} == {0}


def test_operations_know_their_calls(recorded):
    calls = {record.call: record for record in of(recorded, "call")}
    asked = {kind: {calls[r.call].name for r in of(recorded, kind)} for kind in ("kernel", "copy", "fill")}
    assert all("Launch" in name for name in asked["kernel"]) and any("Graph" in name for name in asked["kernel"])
    assert all("Memcpy" in name for name in asked["copy"]) and all("Memset" in name for name in asked["fill"])
    for record in of(recorded, "kernel") + of(recorded, "copy"):
        assert calls[record.call].begin <= record.begin


def test_copies_fills_and_memory(recorded):
    (copy,), (fill,) = of(recorded, "copy"), of(recorded, "fill")
    assert (copy.name, copy.bytes) == ("device to pinned", 4 * N) and fill.bytes == 4 * N
    freed = [r.bytes for r in of(recorded, "free")]
    assert freed == [r.bytes for r in of(recorded, "allocate")] == [1 << 20]


def test_a_graph_is_around_its_nodes(recorded):
    (graph,) = of(recorded, "graph")
    inside = [
        k for k in of(recorded, "kernel") if graph.begin <= k.begin and k.end <= graph.end and k.place == graph.place
    ]
    assert len(inside) == 3


def test_ranges_nest(recorded):
    first, whole = sorted(of(recorded, "range"), key=lambda record: record.name)
    assert (first.name, whole.name) == ("first", "whole")
    assert whole.begin <= first.begin <= first.end <= whole.end
    (mark,) = of(recorded, "mark")
    assert mark.name == "here" and whole.begin < mark.begin < whole.end
    calls = of(recorded, "call")
    assert {first.place, whole.place, mark.place} == {threading.get_native_id()} <= {c.place for c in calls}


def test_order(recorded):
    begins = [record.begin for record in recorded.records]
    assert begins == sorted(begins) and recorded.lost == 0 and repr(recorded).startswith("<Timeline ")


def test_chrome(recorded, tmp_path):
    recorded.save(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert len(bars) == len(recorded.records) - 1  # the mark
    assert all(bar["ts"] >= 0 and bar["dur"] >= 0 for bar in bars)
    named = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M"}
    assert (1, "device 0") in named and (1, "stream 1") in named and (1, "stream 2") in named
    begins = {event["id"] for event in events if event["ph"] == "s"}
    assert begins and begins == {event["id"] for event in events if event["ph"] == "f"}
    kernel = next(bar for bar in bars if bar["cat"] == "kernel")
    assert kernel["args"]["grid"] == [N // 250, 1, 1]


def test_page(recorded, tmp_path):
    recorded.save(tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text()
    data = json.loads(re.search(r"const data = (\{.*\});", text)[1])
    assert len(data["bars"]) == len(recorded.records) and "slow" in data["names"]
    assert data["rows"][-2:] == ["device 0, stream 1", "device 0, stream 2"]
    assert "http" not in text.replace("http-equiv", "")  # nothing is fetched


def test_one_of_a_thing_is_no_plural():
    record = Record("kernel", "one", 20_000, 30_000, device=0)
    said = summary([record], 0, 30_000, 0)
    assert said.startswith("0.030 ms, 1 record\n")
    assert "1 gap of 10 us or more" in said


def test_names_cannot_end_the_script():
    text = page([Record("range", "</script><b>", 0, 1)])
    assert text.count("</script>") == 1 and "\\u003c/script>" in text


def test_summary(recorded):
    said = recorded.summary()
    for words in (
        "kernels",
        "slow",
        "device to pinned",
        "device 0: busy",
        "ranges",
        "whole",
        "calls",
        "waiting of the host",
    ):
        assert words in said, said


def test_what_does_not_fit_is_counted(dev):
    with profile.timeline(most=5) as timeline:
        for _ in range(20):
            dev.default_stream.sync()
    assert len(timeline.records) <= 5 < timeline.lost
    assert f"{timeline.lost} more found no room" in timeline.summary()


def test_one_at_a_time(dev):
    with profile.timeline(), pytest.raises(RuntimeError, match="one at a time"), profile.timeline():
        pass
    with profile.timeline() as timeline:
        dev.default_stream.sync()
    assert timeline.records


def test_nothing_is_recorded_outside(dev):
    with profile.range("before"):
        pass
    with profile.timeline() as timeline:
        pass
    dev.default_stream.sync()
    assert not of(timeline, "range") and not any("StreamSynchronize" in r.name for r in timeline.records)


def test_threads_have_rows_of_their_own(dev):
    def work():
        with profile.range("thread"):
            dev.set_current()
            dev.default_stream.sync()

    with profile.timeline() as timeline:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ranges = of(timeline, "range")
    assert len(ranges) == 4
    for one in ranges:
        assert any(c.place == one.place and one.begin <= c.begin <= one.end for c in of(timeline, "call"))


def test_a_range_decorates(dev):
    @profile.range("square")
    def square(x):
        return x * x if x < 2 else square(1) + x

    with profile.timeline() as timeline:
        assert square(3) == 4
    assert [r.name for r in of(timeline, "range")] == ["square", "square"]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: profile.timeline("out.txt"), ValueError, "html"),
        (lambda: profile.timeline(most=0), ValueError, "at least 1"),
        (lambda: profile.range(3), TypeError, "int"),
        (lambda: profile.mark(None), TypeError, "NoneType"),
    ],
)
def test_bad_arguments(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


FAULT = """
import cupola, cupola.profile, numpy
dev = cupola.Device()
dev.set_current()
bad = cupola.compile('extern "C" __global__ void bad(int* x) { x[1 << 20] = 1; }').get_kernel("bad")
stream = dev.create_stream()
x = dev.zeros(8, numpy.int32, stream=stream)
with cupola.profile.timeline() as timeline:
    cupola.launch(stream, cupola.LaunchConfig(grid=1, block=1), bad, x)
    try:
        stream.sync()
    except cupola.CUDAError:
        print("failed")
print(timeline.summary())
"""


@pytest.mark.cpu_only("a GPU's process cannot go on after a fault")
def test_a_fault_is_told(run_python):
    done = run_python(FAULT)
    assert done.stdout.startswith("failed") and "kernel bad: error" in done.stdout, done.stderr


@pytest.mark.parametrize("ending", ["pass", "raise SystemExit(3)", "raise SystemExit('words')", "1 / 0"])
def test_the_command(dev, tmp_path, ending):
    script = tmp_path / "p.py"
    script.write_text(
        "import cupola, cupola.profile, numpy\ndev = cupola.Device(); dev.set_current()\n"
        f"with cupola.profile.range('mine'): dev.zeros(8, numpy.float32)\n{ending}\n"
    )
    command = [sys.executable, "-m", "cupola", "profile", "--timeline", str(tmp_path / "t.html"), str(script)]
    done = processes.run(command)
    assert done.returncode == {"pass": 0, "raise SystemExit(3)": 3}.get(ending, 1), done.stderr
    assert "mine" in done.stderr and (tmp_path / "t.html").exists()
    assert ("words" in done.stderr) == ("words" in ending) and ("ZeroDivisionError" in done.stderr) == ("0" in ending)


def test_a_program_that_records_a_timeline_itself(dev, tmp_path):
    script = tmp_path / "p.py"
    script.write_text(
        "import cupola, cupola.profile, numpy\ndev = cupola.Device(); dev.set_current()\n"
        "def work(name):\n    with cupola.profile.range(name): dev.zeros(8, numpy.float32)\n"
        "work('before')\n"
        "with cupola.profile.timeline() as own: work('inside')\n"
        "try:\n    with cupola.profile.timeline(), cupola.profile.timeline(): pass\n"
        "except RuntimeError as error: print(error)\n"
        "work('behind')\n"
        "print([record.name for record in own.records if record.kind == 'range'])\n"
    )
    command = [sys.executable, "-m", "cupola", "profile", "--timeline", str(tmp_path / "t.json"), str(script)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    assert "one at a time" in done.stdout and "['inside']" in done.stdout
    assert all(name in done.stderr for name in ("before", "inside", "behind"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a script"),
        (["--timeline", "t.txt", "p.py"], ".html"),
        (["--timeline", "t.html", "--json", "p.py"], "once for the timeline"),
        (["--device", "gpu", "p.py"], "CPU device only"),
    ],
)
def test_bad_options(arguments, words):
    command = [sys.executable, "-m", "cupola", "profile", *arguments]
    done = processes.run(command)
    assert done.returncode == 2 and words in done.stderr
