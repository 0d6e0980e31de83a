"""``cupola run --check memory``: programs that do not look at errors fail all the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests import processes

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text()

pytestmark = pytest.mark.cpu_only

# A program of the driver's bindings that stores behind its memory, waits, and goes on whatever the call returned.
PROGRAM = r"""
import sys
from cupola.bindings import driver
ptx = b'''.version 8.0
.target sm_50
.address_size 64
.visible .entry beyond(.param .u64 to) {
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1+64], 1;
    ret;
}
'''
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
kernel = driver.cuModuleGetFunction(driver.cuModuleLoadData(ptx)[1], b"beyond")[1]
memory = driver.cuMemAlloc(256)[1]
import ctypes
beyond = int(memory) + (256 - 64 if "wrong" in sys.argv else 0)
driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, ((beyond,), (ctypes.c_void_p,)), 0)
print(int(driver.cuCtxSynchronize()[0]))
sys.exit(int(sys.argv[1]))
"""


def cupola_run(*arguments, folder=None):
    command = [sys.executable, "-m", "cupola", "run", *map(str, arguments)]
    return processes.run(command, cwd=folder)


def test_the_page_prints_what_comes(tmp_path):
    program = re.search(r"<!-- program: reverse.py -->\n```python\n(.*?)^```$", PAGE, re.S | re.M)
    printed = re.search(r"^\$ cupola run (.*?)\n(.*?)^\$ echo \$\?\n(.*?)^```$", PAGE, re.S | re.M)
    assert program is not None and printed is not None
    (tmp_path / "reverse.py").write_text(program[1])
    done = cupola_run(*printed[1].split(), folder=tmp_path)
    assert (done.stdout, done.stderr, f"{done.returncode}\n") == ("", printed[2], printed[3])


@pytest.mark.parametrize(
    ("arguments", "output", "status"),
    [(("0",), "0", 0), (("3",), "0", 3), (("0", "wrong"), "700", 1), (("3", "wrong"), "700", 3)],
)
def test_a_program_fails_with_its_kernels(tmp_path, arguments, output, status):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = cupola_run("--check", "memory", tmp_path / "program.py", *arguments)
    assert (done.stdout.strip(), done.returncode) == (output, status), done.stderr
    report = "cupola run --check: memory in kernel 'beyond': CUDA_ERROR_ILLEGAL_ADDRESS: out-of-bounds write of 4 bytes"
    assert done.stderr.count(report) == ("wrong" in arguments)


def test_programs_that_it_starts_count(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    program = f"{sys.executable} -m cupola run {tmp_path}/program.py 0 wrong"
    done = cupola_run("--check", "memory", "/bin/sh", "-c", f"{program}; {program}; exit 0")
    assert (done.stdout.split(), done.returncode) == (["700", "700"], 1), done.stderr
    assert done.stderr.count("in kernel 'beyond'") == 2


def test_a_signal(tmp_path):
    assert cupola_run("--check", "memory", "/bin/sh", "-c", "kill -ABRT $$").returncode == 128 + 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--check", "race,colour"), "there is no check 'colour': there are race, init, sync, memory, leak, or all"),
        (("--check", "race", "--report", "found.txt"), "the name must end with .json or .sarif"),
        (("--report", "found.json"), "--report goes with --check"),
        (("--check", "memory", "--device", "gpu"), "--check is for the CPU device only: add --device cpu"),
    ],
)
def test_refused(arguments, message):
    done = cupola_run(*arguments, "program.py")
    assert done.returncode == 2 and message in done.stderr
