"""``cupola run -n``: several processes of a program, and what becomes of the others when one fails."""

from __future__ import annotations

import json
import os
import sys

import pytest

from cupola.cli import ranks
from tests import processes

PROGRAM = """
import os, signal, sys, time
from cupola import Device
rank = os.environ["RANK"]
names = "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR"
said = [rank, str(Device.for_rank().device_id), *(os.environ[name] for name in names), *sys.argv[1:]]
os.write(1, (" ".join(said) + "\\n").encode())
int(os.environ["MASTER_PORT"])
for rule in sys.argv[1:]:
    who, what = rule.split("=")
    if who == rank:
        if what.startswith("SIG"):
            dev = Device.for_rank()
            dev.set_current()
            dev.full(8, 1.0, stream=dev.create_stream())
            os.kill(os.getpid(), getattr(signal, what))
        sys.exit(int(what))
if len(sys.argv) > 1:
    time.sleep(100_000)
"""


def run(folder, *arguments):
    script = folder / "program.py"
    script.write_text(PROGRAM)
    given = [str(script) if each == "SCRIPT" else each for each in arguments]
    command = [sys.executable, "-m", "cupola", "run", *given]
    variables = {**os.environ, "CUPOLA_DEVICE": "cpu"}
    return processes.run(command, env=variables)


def test_ranks_share_the_devices_out(tmp_path):
    done = run(tmp_path, "--devices", "2", "-n", "3", "SCRIPT")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"{rank} {rank % 2} {rank} 3 3 127.0.0.1" for rank in range(3)]


@pytest.mark.parametrize(
    ("rule", "status", "words"),
    [
        ("1=3", 3, "rank 1 ended with status 3"),
        ("0=SIGKILL", 137, "rank 0 was ended by SIGKILL"),
        ("0=SIGSEGV", 139, "rank 0 was ended by SIGSEGV"),  # from outside: the CPU device looks at faults
    ],
)
def test_when_one_fails_the_others_are_ended(tmp_path, rule, status, words):
    done = run(tmp_path, "--grace=0.2", "--ranks", "2", "SCRIPT", rule)
    assert done.returncode == status
    assert words in done.stderr and "ending rank" in done.stderr


def test_ranks_end_with_their_starter(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "cupola", "run", "-n", "2", str(script), "x=0"]
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu"}
    with processes.Child(command, stdout=processes.PIPE, env=environment) as starter:
        said = [starter.stdout.readline(), starter.stdout.readline()]
        starter.kill()
        rest, _ = starter.communicate()  # until no rank has the pipe
    assert sorted(line.split()[0] for line in said) == ["0", "1"]
    assert rest == ""


@pytest.mark.parametrize(
    "wrong", [["-n", "0"], ["-n", "2", "--grace", "-1"], ["-n", "x"], ["-n", "4097"], ["-n", "9" * 30]]
)
def test_bad_options(tmp_path, wrong):
    done = run(tmp_path, *wrong, "SCRIPT")
    assert done.returncode == 2 and "error: " in done.stderr


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-n", "2", "p.py", "-n", "7"], ["p.py", "-n", "7"]),
        (["--model", "t4", "-n2", "--check", "memory", "-m", "p"], ["--model", "t4", "--check", "memory", "-m", "p"]),
        (["--ranks=3", "--grace=4", "--grace", "5", "p.py"], ["p.py"]),
    ],
)
def test_each_rank_gets_the_other_options(given, kept):
    program = given[given.index("-m") :] if "-m" in given else given[given.index("p.py") :]
    assert ranks.without(given, program) == kept


CHECKED = """
from cupola import Device, LaunchConfig, Program, launch
dev = Device.for_rank()
dev.set_current()
stream = dev.create_stream()
source = 'extern "C" __global__ void doubled(int* x) { x[threadIdx.x] *= 2; }'
launch(stream, LaunchConfig(grid=1, block=32), Program(source, "c++").compile("cubin").get_kernel("doubled"),
       dev.allocate(128, stream=stream))
stream.sync()
"""


def test_ranks_have_one_report(tmp_path):
    """What each rank finds is in it; one that finds something has failed, and the others have time to end."""
    script, report = tmp_path / "program.py", tmp_path / "found.json"
    script.write_text(CHECKED)
    arguments = ["-n", "2", "--devices", "2", "--check", "init", f"--report={report}", "--grace", "60"]
    command = [sys.executable, "-m", "cupola", "run", *arguments, str(script)]
    done = processes.run(command)
    assert done.returncode == 1, done.stderr
    assert [finding["kernel"] for finding in json.loads(report.read_text())] == ["doubled", "doubled"]
    assert done.stderr.count("init in kernel 'doubled'") == 2


def test_ranks_that_cannot_be_started(monkeypatch):
    """Those that could be are ended."""
    started = []
    usual = ranks.subprocess.Popen

    def popen(command, **options):
        if len(started) == 2:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        options.pop("preexec_fn")
        started.append(usual([sys.executable, "-c", "import time; time.sleep(1000)"], **options))
        return started[-1]

    monkeypatch.setattr(ranks.subprocess, "Popen", popen)
    with pytest.raises(ValueError, match="only 2 of 5 processes could be started: .*unavailable"):
        ranks.run(5, ["program.py"], grace=1)
    assert [child.poll() is not None for child in started] == [True, True]
