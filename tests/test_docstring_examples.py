"""Examples in docstrings run, each with the objects that its reader has, and give what they show.

Numbers are not compared where another device or another run gives others.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cupola
from tests.test_docstrings import CALLABLES, CLASSES, MODULES

BINDINGS = (
    "driver",
    "runtime",
    "nvrtc",
    "nvjitlink",
    "nvvm",
    "nvfatbin",
    "nvml",
    "cufile",
    "cublas",
    "cublaslt",
    "cufft",
    "curand",
    "cusolver_dn",
    "cudss",
    "nccl",
    "cusparse",
)

KERNELS = """
__device__ float times(float x, float y);
extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] = times(x[threadIdx.x], a); }
"""
HELPERS = "__device__ float times(float x, float y) { return x * y; }"
SOURCE = """
__constant__ float weights[3];
template <typename T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }
extern "C" __global__ void nothing() {}
extern "C" __global__ void one(float* x) { *x = 1; }
extern "C" __global__ void several(float* x, float a, int n) {
    if (blockIdx.x == 0 && threadIdx.x < n) x[threadIdx.x] = a;
}
"""

# The kernel that an example launches, where it is not `one`.
KERNEL = {"cupola.launch": "several", "cupola.Event": "nothing"}

PARSER = doctest.DocTestParser()


def examples() -> dict[str, list[doctest.Example]]:
    """Examples by the path of what they explain."""
    subjects: dict[str, Any] = {**CLASSES, **CALLABLES}
    subjects.update({name: importlib.import_module(name) for name in MODULES})
    for name in BINDINGS:
        module = importlib.import_module(f"cupola.bindings.{name}")
        subjects[module.__name__] = module
        subjects.update({f"{module.__name__}.{key}": value for key, value in vars(module).items() if callable(value)})
    found, seen = {}, set()
    for path, subject in subjects.items():
        text = getattr(subject, "__doc__", None)
        if isinstance(text, str) and re.search(r"^ *>>> ", text, re.M) and text not in seen:
            seen.add(text)  # a method that subclasses inherit is one
            found[path] = PARSER.get_examples(inspect.cleandoc(text))
    return found


EXAMPLES = examples()
IN_A_PROCESS = {"cupola.cpu.use"}  # they choose the device, which a process does once
ON_THE_CPU_DEVICE = {"cupola.cpu.Faults", "cupola.cpu.checks", "cupola.cpu.debugger", "cupola.cpu.faults"}


@pytest.fixture
def things(device, stream, tmp_path, monkeypatch):
    """Names that the examples use."""
    from cupola import graph, pathfinder, texture, utils

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names: dict[str, Any] = {"np": np}
    for module in (cupola, graph, texture, utils, pathfinder):
        names.update({name: getattr(module, name) for name in module.__all__})
    lto = {"link_time_optimization": True}
    program = cupola.Program(SOURCE, "c++")
    buffer = device.allocate(4000, stream=stream)
    buffer.fill(0, stream=stream)
    stream.sync()  # examples use it in other streams
    array = {"shape": (1000,), "typestr": "<f4", "data": (buffer.handle, False), "version": 3, "stream": None}
    names.update(
        dev=device,
        stream=stream,
        buffer=buffer,
        array=SimpleNamespace(__cuda_array_interface__=array, owner=buffer),
        n=1024,
        config=cupola.LaunchConfig(grid=1, block=32),
        source=SOURCE,
        program=program,
        options=cupola.ProgramOptions(),
        code=program.compile("cubin"),
        kernels=cupola.Program(KERNELS, "c++", lto).compile("ltoir"),
        helpers=cupola.Program(HELPERS, "c++", lto).compile("ltoir"),
    )
    before = device.memory_resource
    yield names
    device.sync()
    device.memory_resource = before
    stream.sync()


class Numbers(doctest.OutputChecker):
    """Takes one number for another."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (re.sub(r"\d+(\.\d+)?(e-?\d+)?", "#", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def test_examples_are_found():
    wanted = {
        "cupola.Device",
        "cupola.launch",
        "cupola.graph.GraphDefinition",
        "cupola.Device.allocate",
        "cupola.cpu.use",
    }
    assert wanted <= set(EXAMPLES)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.cpu_only] if path in ON_THE_CPU_DEVICE else [])
        for path in EXAMPLES
        if path not in IN_A_PROCESS
    ],
)
def test_example(path, things):
    names = {**things, "kernel": things["code"].get_kernel(KERNEL.get(path, "one"))}
    test = doctest.DocTest(EXAMPLES[path], {}, path, None, None, None)
    test.globs = names
    said: list[str] = []
    doctest.DocTestRunner(checker=Numbers(), verbose=False).run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


@pytest.mark.parametrize("path", sorted(IN_A_PROCESS))
def test_example_in_a_process(path, run_python):
    done = run_python("".join(example.source for example in EXAMPLES[path]), CUPOLA_DEVICE="auto")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
