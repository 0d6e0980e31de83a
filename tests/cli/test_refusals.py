"""What can be known to be wrong before the program runs is refused there, with what there is instead."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import processes

pytestmark = pytest.mark.cpu_only

REFUSED = [
    (
        "run --inject call=cuMemAlloc,error=nonsense",
        "there is no error 'CUDA_ERROR_NONSENSE': there are INVALID_VALUE,",
    ),
    ("run --inject copy,error=ilegal_address", "do you mean ILLEGAL_ADDRESS?"),
    ("run --inject call=cuMemAloc", "is called 'cuMemAloc': do you mean cuMemAlloc"),
    ("run --inject lost=7", "there is no device 7: the CPU device has 1 (more by --devices or"),
    ("run --devices 2 --inject kernel=f,device=2", "there is no device 2: the CPU device has 2"),
    ("run --inject copy,seed=18446744073709551616", "seed must be at most 9223372036854775807"),
    ("run -n 2 --inject nonsense", "there is no 'nonsense', only call, kernel"),
    ("run -n 2 --watch nonsense", "'nonsense' is not FILE:LINE:EXPRESSION"),
    ("run -n 2 --devices 99", "devices must be between 1 and 16"),
    ("run --devices 0", "devices must be between 1 and 16"),
    ("run --watch a.cu:0:x", "'a.cu:0' is no line: they count from 1"),
    ("run --check race --report nowhere/found.json", "--report nowhere/found.json: there is no such folder"),
    ("run --check race --report folder.json", "--report folder.json: that is a folder"),
    ("run --check race --report closed/found.json", "--report closed/found.json: it cannot be written"),
    ("run --coverage-report program.py", "--coverage-report program.py: program.py is no folder"),
    ("run --coverage-report program.py/deep/er", "program.py is no folder"),
    ("run --coverage-report closed/deep", "nothing can be written to closed"),
    ("run --rank 2", "unrecognized arguments: --rank"),  # an abbreviation would be passed on to the ranks
    ("profile --roofline picture.png", "--roofline picture.png: the name must end with .svg"),
    ("profile --roofline nowhere/picture.svg", "there is no such folder"),
    ("profile --timeline nowhere/when.json", "--timeline nowhere/when.json: there is no such folder"),
    ("profile --timeline when.json --lines", "--lines, --json and --roofline are about counts"),
    ("profile --devices 0", "devices must be between 1 and 16"),
    ("debug --inject lost=7", "there is no device 7"),
    ("debug --watch a.cu:0:x", "'a.cu:0' is no line"),
    ("CUPOLA_INJECT=copy;nonsense run", "CUPOLA_INJECT: 'nonsense': there is no 'nonsense', only"),
    ("CUPOLA_INJECT=lost=1 profile", "there is no device 1"),
    ("CUPOLA_CHECK=nonsense run", "CUPOLA_CHECK: there is no check 'nonsense': there are race,"),
    ("CUPOLA_CHECK=nonsense debug", "CUPOLA_CHECK: there is no check 'nonsense'"),
    ("CUPOLA_CPU_DEVICES=99 run --inject copy", "CUPOLA_CPU_DEVICES is '99': it must be a number from 1 to 16"),
    ("CUPOLA_DEVICE=nonsense run", "CUPOLA_DEVICE must be auto, gpu or cpu"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "program.py").write_text("print('it runs')")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "closed").mkdir(mode=0o500)
    return tmp_path


def cupola(folder, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell: variables, and the arguments of the command."""
    words = line.split(" ")
    variables = [word for word in words if word.startswith("CUPOLA_")]
    command = [sys.executable, "-m", "cupola", *words[len(variables) :], "program.py"]
    environment = os.environ | {"CUPOLA_DEVICE": "cpu"} | dict(each.split("=", 1) for each in variables)
    return processes.run(command, cwd=folder, env=environment)


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refused_before_the_program_runs(folder, line, message):
    if "closed" in line and os.access(folder / "closed", os.W_OK):
        pytest.skip("the superuser may write everywhere")
    done = cupola(folder, line)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert message in done.stderr
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["profile", "profile --timeline when.json", "debug"])
def test_a_script_that_is_not_there_is_all_that_is_told(folder, command):
    (folder / "program.py").unlink()
    done = cupola(folder, command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "cupola: cannot read program.py: No such file or directory\n"


FULL = [
    ("run --check init --report full.json", 1, "cupola run: --report full.json: it could", "memory is read"),
    ("run --coverage-report full", 0, "--coverage-report full: it could", "CUDA C++ coverage"),
    ("run --check init --coverage-report full", 1, "--coverage-report full: it could", "CUDA C++ coverage"),
    ("profile --roofline full.svg", 0, "cupola profile: --roofline full.svg: it could", "instructions"),
    ("profile --timeline full.json", 1, "cupola profile: --timeline full.json: it could", "cuLaunchKernelEx"),
]


@pytest.mark.parametrize(("line", "status", "message", "said"), FULL, ids=[line for line, *_ in FULL])
def test_a_full_disk_at_the_end_loses_nothing_else(folder, line, status, message, said):
    (folder / "program.py").write_text("""
from cupola import Device, LaunchConfig, Program, launch
device = Device()
device.set_current()
source = 'extern "C" __global__ void f(int *p) { p[0] += 1; }'
code = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("ptx")
memory = device.allocate(4, stream=device.default_stream)
launch(device.default_stream, LaunchConfig(grid=1, block=1), code.get_kernel("f"), memory)
device.sync()
""")
    (folder / "full").mkdir()
    for name in ("full.json", "full.svg", "full/coverage.lcov"):
        (folder / name).symlink_to("/dev/full")
    done = cupola(folder, line)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "No space left on device" in done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_of_wrong_rules_none_is_applied(run_python):
    """A program that is started without ``cupola run`` is told at its first call, and each time it tries again."""
    done = run_python("""
import os
os.environ |= {"CUPOLA_DEVICE": "cpu", "CUPOLA_INJECT": "call=cuMemAlloc;lost=1"}
from cupola import Device
for _ in range(2):
    try:
        Device()
    except RuntimeError as error:
        print(error)
""")
    assert done.stdout == "CUPOLA_INJECT: there is no device 1: the CPU device has 1\n" * 2, done.stderr
    assert "injected" not in done.stderr
