"""The commands as they are run: exit status, text and JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import cupola
from cupola.cli import main, smoke
from tests import processes


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cupola", *arguments]
    return processes.run(command, env={**os.environ, **environment})


def test_doctor_finds_this_installation_healthy():
    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert (done.returncode, report["healthy"], failed) == (0, True, []), done.stderr
    status = {check["name"]: check["status"] for check in report["checks"]}
    assert status["smoke test"] == status["NVRTC"] == status["device 0"] == "ok"
    assert report["facts"]["libraries"]["nvrtc"]["found_via"]


def test_doctor_says_what_is_wrong_and_fails():
    done = run("doctor", CUPOLA_DEVICE="tpu")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("FAIL  device ") and "CUPOLA_DEVICE must be" in line for line in lines), done.stdout
    assert any(line.startswith("FAIL  smoke test ") for line in lines)
    assert lines[-1] == "2 problems to be fixed."
    assert "Traceback" not in done.stderr


def test_a_cache_that_cannot_be_written_to_is_no_failure(tmp_path):
    (tmp_path / "file").touch()
    done = run("doctor", XDG_CACHE_HOME=str(tmp_path / "file"), CUPOLA_CPU_CACHE="1")
    assert done.returncode == 0, done.stdout
    assert "WARN  object cache" in done.stdout and "XDG_CACHE_HOME" in done.stdout


def test_info(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert "device 0" in text and "libnvrtc" in text
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["device"]["list"] and facts["libraries"]["nvrtc"]["version"]


def test_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert not caught.value.code and capsys.readouterr().out == f"cupola {cupola.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["nonsense"], "usage: cupola [-h]"),
        (["--nonsense"], "usage: cupola [-h]"),
        (["doctor", "--nonsense"], "usage: cupola doctor"),
        (["run", "-c", "1"], "usage: cupola run"),
    ],
)
def test_wrong_arguments(arguments, usage, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and capsys.readouterr().err.startswith(usage)


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 2
    assert "check the whole installation" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "doctor"])
def test_a_reader_who_leaves_early(command):
    source, target = os.pipe()
    os.close(source)
    with os.fdopen(target, "wb") as pipe:
        done = processes.run([sys.executable, "-m", "cupola", command, "--json"], stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["info", "doctor"])
def test_output_that_cannot_be_written(command):
    with open("/dev/full", "wb") as full:
        done = processes.run([sys.executable, "-m", "cupola", command], stdout=full)
    assert (done.returncode, done.stderr) == (1, "cupola: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("kill -SEGV $$", {"error": "the process ended with signal 11", "details": ""}),
        ("echo no Python >&2; exit 3", {"error": "the process ended with exit status 3", "details": "no Python"}),
        ("echo 17", {"error": "the process ended with exit status 0", "details": ""}),
        ('echo noise; echo \'{"found": "it"}\'', {"found": "it"}),
        ("exec sleep 20", {"error": "it did not end within 1 s"}),
    ],
)
def test_a_smoke_test_that_ends_badly(monkeypatch, tmp_path, script, expected):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert smoke.in_child(timeout=1) == expected
