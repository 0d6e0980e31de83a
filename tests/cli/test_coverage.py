"""Coverage of CUDA C++: what is counted, and what all reports say of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cupola.cli import coverage
from cupola.cli.coverage.model import Data
from cupola.cpu.reports import names
from tests import processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text()

pytestmark = pytest.mark.cpu_only


def cupola(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    environment.pop("CUPOLA_DEVICE", None)
    command = [sys.executable, "-m", "cupola", *arguments]
    return processes.run(command, cwd=folder, env=environment)


def program_of_page(name: str) -> str:
    found = re.search(rf"<!-- program: {re.escape(name)} -->\n```python\n(.*?)```", PAGE, re.S)
    assert found is not None
    return found[1]


def test_the_tutorial_prints_what_the_page_says(tmp_path) -> None:
    (tmp_path / "positive.py").write_text(program_of_page("positive.py"))
    done = cupola(tmp_path, "run", "--coverage", "positive.py")
    printed = re.search(r"^\$ cupola run --coverage positive.py\n(.*?)^```", PAGE, re.S | re.M)
    assert printed is not None
    assert (done.returncode, done.stdout, done.stderr) == (0, "", printed[1])


PROGRAM = '''
import subprocess, sys
import multiprocessing
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
#include "half.cuh"
template <class T, int N> __global__ void k(T *x, int n) {
    int t = threadIdx.x;
    __shared__ T s[N];
    for (int i = 0; i < t % 3; i++)
        s[t] = half(i);
    if (t % 32 < n)
        __syncthreads();
    else
        __syncthreads();
    x[t] = s[t];
}
extern "C" __global__ void registers(double *x) {        // more than 64 each without optimization
    @LIVE@
}
template <class T> __global__ void other(T *x) {
    if (threadIdx.x > 4) return;
    __syncthreads();
    *x = 1;
}
"""

def run(n):
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    expressions = ["k<float, 64>", "k<int, 64>", "other<int>"]
    options = ProgramOptions(include_path=".", lineinfo=True, define_macro="LATE")
    code = Program(SOURCE, "c++", options).compile("cubin", name_expressions=expressions)
    x = dev.allocate(8192, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1024), code.get_kernel("registers"), x)
    launch(stream, LaunchConfig(grid=1, block=64), code.get_kernel(expressions[0]), x, n)
    launch(stream, LaunchConfig(grid=1, block=64), code.get_kernel(expressions[2]), x)
    stream.sync()

if __name__ == "__main__":
    run(64)
    if sys.argv[1:] == ["more"]:
        child = multiprocessing.get_context("spawn").Process(target=run, args=(8,))
        child.start()
        child.join()
        assert child.exitcode == 0
    print("done")
'''
_STEPS = "".join(f"double a{i} = sin(x[{i}] * threadIdx.x); " for i in range(40))
PROGRAM = PROGRAM.replace("@LIVE@", _STEPS + f"x[threadIdx.x] = {' + '.join(f'a{i}' for i in range(40))};")
HEADER = """#pragma once
template <class T> __device__ T half(T v) {
    if (v < 0)
        return -v / 2;
    return v / 2;
}
"""
AT = PROGRAM[: PROGRAM.index("#include")].count("\n") + 1  # the line of the #include in the file


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> Path:
    """The folder of a program with two processes, and its reports."""
    folder = tmp_path_factory.mktemp("coverage")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "half.cuh").write_text(HEADER)
    done = cupola(folder, "run", "--coverage-report", "report", "program.py", "more")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    (folder / "said").write_text(done.stderr)
    return folder


def line(text: str) -> int:
    """The line of the Python file where a text of the source stands."""
    return PROGRAM[: PROGRAM.index(text)].count("\n") + 1


def test_lcov_has_the_counts_of_both_processes(reports) -> None:
    text = (reports / "report" / "coverage.lcov").read_text()
    record = next(part for part in text.split("end_of_record") if "program.py" in part)
    assert "SF:program.py" in record.splitlines(), "as coverage.py calls it"
    counts = {int(a): int(b) for a, b in re.findall(r"^DA:(\d+),(\d+)$", record, re.M)}
    assert counts[line("int t =")] == 128  # 64 threads in each process
    assert counts[line("s[t] = half")] == 2 * sum(t % 3 for t in range(64))
    assert counts[line("        __syncthreads();\n    else")] == 64 + 16
    assert counts[line("        __syncthreads();\n    x[t]")] == 48
    assert counts[line("    *x = 1")] == 10
    assert {"FNDA:128,k<float, 64>", "FNDA:0,k<int, 64>"} <= set(record.splitlines())
    branches = re.findall(rf"^BRDA:{line('if (t % 32')},\d+,\d+,(\d+|-)$", record, re.M)
    assert sorted(branches) == ["-", "-", "48", "80"], "of the instance that never ran, nobody knows"
    header = next(part for part in text.split("end_of_record") if "half.cuh" in part)
    assert "SF:half.cuh" in header and "DA:4,0" in header
    assert f"DA:5,{counts[line('s[t] = half')]}" in header


def test_the_text_says_what_did_not_run(reports) -> None:
    said = (reports / "said").read_text()
    assert f"program.py:{AT - 1}: k<int, 64> never ran" in said
    assert "half.cuh: no thread ran line 4" in said
    assert "half.cuh: line 3: no thread went to line 4" in said or "half.cuh: line 3 of" in said
    first, second = line("        __syncthreads();\n    else"), line("        __syncthreads();\n    x[t]")
    assert f"line {first}: 2 of 4 warps came to the barrier without some of their threads" in said
    assert f"line {second}: 2 of 2 warps came to the barrier without some of their threads" in said


def test_cobertura_is_xml_with_the_same_numbers(reports) -> None:
    tree = ElementTree.parse(reports / "report" / "coverage.xml").getroot()
    hits = {(c.get("filename"), int(n.get("number"))): n for c in tree.iter("class") for n in c.iter("line")}
    assert hits["program.py", line("int t =")].get("hits") == "128"
    assert hits["half.cuh", 3].get("condition-coverage") == "25% (1/4)" or hits["half.cuh", 3].get("branch") == "true"
    assert int(tree.get("lines-valid")) == len(hits) > 12
    assert int(tree.get("lines-covered")) == sum(node.get("hits") != "0" for node in hits.values())


class Pages(HTMLParser):
    """Checks that elements are closed in order, and that nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.row = ""

    def handle_starttag(self, tag, attributes) -> None:
        given = dict(attributes)
        self.links += [given[name] for name in ("href", "src") if name in given]
        if tag == "tr":
            self.row = given.get("id", "")
            self.rows[self.row] = [given.get("class", "")]
        if tag not in ("meta", "rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        if tag not in ("meta", "rect", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if self.row:
            self.rows[self.row].append(data)


def test_pages_stand_alone_and_show_each_line(reports) -> None:
    folder = reports / "report"
    names = sorted(path.name for path in folder.glob("*.html"))
    assert names == ["index.html", "source-0.html", "source-1.html"]
    for name in names:
        page = Pages()
        page.feed((folder / name).read_text())
        assert not page.open
        assert set(page.links) <= set(names)
    page = Pages()
    page.feed((folder / "source-1.html").read_text())
    number = next(row for row, texts in page.rows.items() if any("s[t] = half" in text for text in texts))
    assert page.rows[number][0] == "some", "one instance of the template did not run"
    assert {str(line("s[t] = half")), "126", "66%"} <= set(page.rows[number]), page.rows[number]
    assert any("of 32 threads" in text for text in page.rows[number])


def test_runs_are_added_up(reports) -> None:
    done = cupola(reports, "coverage", "report", "report", "--coverage-report", "all")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (reports / "said").read_text().partition("\nreports:")[0].replace(
        "2 of 4 warps", "4 of 8 warps"
    ).replace("2 of 2 warps", "4 of 4 warps")
    text = (reports / "all" / "coverage.lcov").read_text()
    assert f"DA:{line('int t =')},256" in text
    done = cupola(reports, "coverage", "program.py")
    assert (done.returncode, "program.py is no coverage.json" in done.stderr) == (2, True)


def test_only_the_cpu_device_counts(tmp_path) -> None:
    done = cupola(tmp_path, "run", "--device", "gpu", "--coverage", "program.py")
    assert done.returncode == 2
    assert "coverage is measured on the CPU device only: add --device cpu" in done.stderr


def test_nothing_is_said_of_programs_without_kernels(tmp_path) -> None:
    (tmp_path / "none.py").write_text("print('hello')\nraise SystemExit(3)")
    done = cupola(tmp_path, "run", "--coverage", "none.py")
    assert (done.returncode, done.stdout) == (3, "hello\n")
    assert done.stderr.startswith("CUDA C++ coverage: no kernels")


TESTS = '''
import pytest
from cupola import LaunchConfig, Program, launch

@pytest.mark.parametrize("n", [3, 5])
def test_it(device, stream, n):
    source = """
extern "C" __global__ void fill(int *x, int n) {
    if (threadIdx.x < n)
        x[threadIdx.x] = n;
}
"""
    x = device.allocate(128, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), Program(source, "c++").compile("cubin").get_kernel("fill"), x, n)
    stream.sync()
'''


def test_the_plugin_reports_behind_the_tests(tmp_path) -> None:
    """The tests run in a process of pytest-xdist."""
    (tmp_path / "test_fill.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "cupola.testing.plugin", "-p", "no:cacheprovider"]
    command += ["--cupola-cov-report", "report", "-n", "1"]
    done = processes.run(command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "test_fill.py:7      4      4  100%        2      2  100%" in done.stdout
    data = json.loads((tmp_path / "report" / "coverage.json").read_text())
    assert [row[4:] for row in data["lines"] if row[2] == 4] == [[2, 8, 8, 64]]
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("cupola-coverage-*/part-*"))


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("saxpy", "saxpy"),
        ("_Z5scalePfi", "scale"),
        ("_Z5scaleIfEvPT_f", "scale<float>"),
        ("_Z1kIiLi64ELb1EEvPT_", "k<int, 64, true>"),
        ("_Z1kILin3EEvv", "k<-3>"),
        ("_ZN2ns5Inner3runIN2ns4TypeEEEvT_", "ns::Inner::run<ns::Type>"),
        ("_ZNK3Vec3dotERKS_", "Vec::dot"),
        ("_ZN12_GLOBAL__N_14helpEv", "help"),
        ("_Z1fIPKfJiS1_EEvv", "f<const float*, int, const float*>"),
        ("_ZplRK1AS1_", "_ZplRK1AS1_"),
        ("_ZN6cudapy8__main__4turnB2v1B9cw51cXTLSE5ArrayIiLi1E1CE", "cudapy::__main__::turn"),
        ("_Z", "_Z"),
        ("scale_Kt1_A1f32_1t1_p16_I128", "scale"),  # of cuTile, with the types of its arguments
    ],
)
def test_names_of_functions(symbol: str, name: str) -> None:
    assert names.readable(symbol) == name


def test_a_record_of_something_else_is_told() -> None:
    with pytest.raises(KeyError):
        Data().add({"lines": []})
    assert coverage.prepare(None) == coverage.prepare("cpu") == "cpu"


def test_linked_code_finds_its_source() -> None:
    """By the name of the program; by the function where several have one name."""
    data = Data()
    data.texts = {
        "1": {"default_program": "__global__ void first() {}\n"},
        "2": {"default_program": "template <class T> __global__ void second() {}\n"},
        "3": {"kernel.cu": "__global__ void third() {}\n", "kernel.cuh": "#pragma once\n"},
    }
    rows = [
        ["", "default_program", 1, "first", 1, 32, 32, 32],
        ["", "default_program", 1, "_Z6secondIiEvv", 2, 64, 32, 32],
        ["", "/elsewhere/kernel.cu", 1, "third", 3, 96, 32, 32],
        ["", "default_program", 1, "unknown", 4, 128, 32, 32],
        ["3", "vector_types.h", 1, "third", 4, 128, 32, 32],
    ]
    data.add({"texts": {"2": [[1, 1, "/there/program.py", 7]]}, "lines": rows, "branches": [], "barriers": []})
    found = {file.text[0]: (file.lines[1].total.runs, file.place(1)) for file in data.files()}
    assert found == {
        data.texts["1"]["default_program"].strip(): (1, None),
        data.texts["2"]["default_program"].strip(): (2, ("/there/program.py", 7)),
        data.texts["3"]["kernel.cu"].strip(): (3, None),
    }


CACHED = """
import cupola
cupola.Device().set_current()
kernel = cupola.compile('extern "C" __global__ void cached(int* x) { if (x) x[0] = NUMBER; }')
kernel.get_kernel("cached")[1, 1](cupola.Device().zeros(1, "i4"))
"""


def test_what_was_compiled_for_others_is_compiled_again(tmp_path):
    """Without its own key in the cache, coverage would get the optimized code that was profiled or checked before."""
    script = tmp_path / "p.py"
    script.write_text(CACHED.replace("NUMBER", str(os.getpid())))
    variables = {**os.environ, "CUPOLA_DEVICE": "cpu"}
    observed = (["profile"], ["run", "--check", "race"], ["run", "--coverage"])
    for command in (["run"], *observed, ["run", "--coverage"]):
        whole = [sys.executable, "-m", "cupola", *command, str(script)]
        done = processes.run(whole, env=variables)
        assert done.returncode == 0, done.stderr
    assert re.search(r"^default_program +1 +1 +100%", done.stderr, re.MULTILINE), done.stderr
