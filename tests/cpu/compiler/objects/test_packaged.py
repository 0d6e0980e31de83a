"""Machine code that comes with the package: it fits the compiler, runs first, and does what code made here does."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cupola.cpu.compiler.objects import machine, packaged, recall
from cupola.cpu.compiler.objects.processor import X86
from tests import processes

Run = Callable[..., subprocess.CompletedProcess[str]]
TOOL = Path(__file__).parents[4] / "tools" / "machine_code_ahead.py"

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="checked programs are compiled at once, with their checks"),
    pytest.mark.skipif(platform.machine() not in X86, reason="the file is for x86-64"),
]
needs_level = pytest.mark.skipif(not machine.runs(packaged.LEVEL), reason=f"this processor has not {packaged.LEVEL}")


def test_the_file_is_of_this_compiler() -> None:
    done = processes.run([sys.executable, TOOL, "check"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


BEGIN = """
import sys, time
import numpy
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.objects import later, machine, packaged
packaged._may_be_edited = lambda: {edited}
emitted, variants, made = [], [], modules.Variant.__init__
emit = machine.emit_object
machine.emit_object = lambda ir, **how: emitted.append(ir) or emit(ir, **how)
def init(self, *arguments):
    made(self, *arguments)
    variants.append(self)
modules.Variant.__init__ = init
import cupola.numpy as np
"""
STATEMENTS = (
    BEGIN
    + """
x = np.asarray(numpy.random.default_rng(1).normal(size=5000))
source = np.random.default_rng(2)
for made_here in (
    x + x, x * 2, np.sin(x), x.sum(), x.std(), x.reshape(50, 100).mean(axis=0), np.argmax(x), np.cumsum(x), np.sort(x),
    np.argsort(x), x[x > 0.5], np.nonzero(x)[0], source.random(100), source.normal(size=100),
):
    print(made_here.to_numpy().tobytes().hex())
"""
)
WATCHED = (
    STATEMENTS
    + """
print(len(emitted), "cupola.cpu.compiler.ptx" in sys.modules, file=sys.stderr)
while not any(one._better[0][0] for one in variants):  # the worker lets others go first
    time.sleep(0.05)
print(len(variants), any(one._better[0][0] for one in variants), file=sys.stderr)
x.sum().to_numpy()
"""
)


def run(run_python: Run, program: str, folder: Path, *, edited: bool = False, **environment: str):
    environment = {"XDG_CACHE_HOME": str(folder), "CUPOLA_NUMPY_AHEAD": "1", "CUPOLA_DEVICE": "cpu", **environment}
    done = run_python(program.replace("{edited}", str(edited)), **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@needs_level
def test_it_runs_first_and_does_the_same(tmp_path: Path, run_python: Run) -> None:
    """Without a compiler, which is not even imported; and code for this processor replaces it."""
    (tmp_path / "made").mkdir()
    watched = run(run_python, WATCHED, tmp_path)
    counts = watched.stderr.splitlines()
    assert counts[0] == "0 False"
    assert counts[1].endswith(" True") and int(counts[1].split()[0]) > 20
    assert watched.stdout == run(run_python, STATEMENTS, tmp_path / "made", edited=True).stdout


FAULT = (
    BEGIN
    + """
import re
from cupola import CUDAError, Device, LaunchConfig, ObjectCode, launch
from cupola.numpy import _ahead, _kernels
seen = []
_kernels.compiled = lambda source, name: seen.append((source, name))
lines = ("const double v0 = READ(0);", "const double v1 = (double)(v0 + s0);")
_kernels.elementwise.__wrapped__(lines, "v1", ("d",), ("d",), "cc", -1, "d")
(source, name), = seen
ptx = _ahead.known().get(_ahead.name_of(_ahead.for_cpu(source), False))
device = Device()
device.set_current()
kernel = ObjectCode.from_ptx(ptx + _ahead.QUICK_FIRST).get_kernel(name)
stream = device.create_stream()
sizes = [info.size for info in kernel.arguments_info]
arguments = [numpy.full(size, 1, "u1").view(f"V{size}")[0] for size in sizes]
launch(stream, LaunchConfig(grid=1, block=32), kernel, *arguments)
try:
    stream.sync()
except CUDAError as error:
    print(re.sub("0x[0-9a-f]+", "ADDRESS", str(error)))
print(len(emitted), file=sys.stderr)
"""
)


@needs_level
def test_faults_are_at_the_same_place(tmp_path: Path, run_python: Run) -> None:
    (tmp_path / "made").mkdir()
    ready, compiled = run(run_python, FAULT, tmp_path), run(run_python, FAULT, tmp_path / "made", edited=True)
    assert ready.stderr == "0\n" and compiled.stderr != "0\n"
    assert "PTX line" in ready.stdout and ready.stdout == compiled.stdout


@needs_level
@pytest.mark.parametrize(
    "environment",
    [{"CUPOLA_CPU_FEATURES": "x86-64-v2"}, {"CUPOLA_CPU_OPTIMIZE": "0"}, {"CUPOLA_NUMPY_AHEAD": "0"}],
    ids=["an older processor", "simple code", "no background"],
)
def test_when_it_is_not_used(environment: dict[str, str], tmp_path: Path, run_python: Run) -> None:
    program = BEGIN + "np.arange(5.0).sum().to_numpy(); print(len(emitted) > 0)"
    assert run(run_python, program, tmp_path, **environment).stdout == "True\n"


@needs_level
def test_a_program_without_a_worker_goes_on(tmp_path: Path, run_python: Run) -> None:
    program = BEGIN + (
        "def none(*arguments): raise OSError('no process')\n"
        "later._start = none\n"
        "print(np.arange(5.0).sum().to_numpy())\n"
        "time.sleep(1)\n"
        "print(np.arange(6.0).sum().to_numpy(), len(emitted))"
    )
    assert run(run_python, program, tmp_path).stdout == "10.0\n15.0 0\n"


def test_an_editable_build_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sources may be newer."""
    monkeypatch.setattr(packaged, "_may_be_edited", lambda: True)
    assert not packaged.is_used.__wrapped__()
    monkeypatch.setattr(packaged, "_may_be_edited", lambda: False)
    assert packaged.is_used.__wrapped__() is machine.runs(packaged.LEVEL)


def test_tests_of_the_compiler_do_not_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "is_used", lambda: True)
    assert packaged.find("list")
    monkeypatch.setattr(recall, "enabled", False)
    assert packaged.find("list") is None
