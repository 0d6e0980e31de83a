"""``cupola top``: what it shows of the device of this run."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from cupola import system
from cupola.cli import main, top
from tests import processes

COMMAND = [sys.executable, "-m", "cupola", "top"]


def test_json_tells_what_the_device_tells(device):
    buffer = device.allocate(32 << 20, stream=device.default_stream)
    device.sync()
    done = processes.run([*COMMAND, "--json", "-n", "2", "--interval", "0"])
    buffer.close()
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(looks) == 2, done.stderr
    state, known = looks[0][0], system.Device(index=0)
    assert (state["index"], state["name"], state["uuid"]) == (0, known.name, known.uuid)
    assert 32 << 20 <= state["memory_used"] <= state["memory_total"] and 0 <= state["utilization"] <= 100


@pytest.mark.cpu_only  # in a container NVML may not list the processes of a GPU
def test_the_table_has_a_line_for_each_device_and_process(device):
    buffer = device.allocate(48 << 20, stream=device.default_stream)
    device.sync()
    lines = processes.run([*COMMAND, "-n", "1"]).stdout.splitlines()
    buffer.close()
    assert lines[0].startswith("cupola top ") and any(line.startswith(" 0 cupola CPU device") for line in lines)
    mine = [line for line in lines if f" {os.getpid()} " in line]
    assert len(mine) == 1 and "python" in mine[0] and int(mine[0].split()[2]) >= 48


def test_what_a_device_cannot_tell_is_a_dash():
    state = top.State(0, "a", "GPU-0", None, 1 << 20, 2 << 20, None, None, None, [])
    text = top.table([state])
    assert "1 / 2 MiB" in text and text.count(" - ") >= 3 and "no processes" in text


def test_ctrl_c_ends_it_in_peace():
    def listen() -> None:  # a shell's job in the background is born deaf to it
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command, both = [*COMMAND, "--json"], {"stdout": processes.PIPE, "stderr": processes.PIPE}
    with processes.Child(command, **both, preexec_fn=listen) as child:
        first = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate()
    assert (child.returncode, errors, first[:2]) == (0, "", "[{")


@pytest.mark.parametrize("arguments", [["--interval", "-1"], ["-n", "0"], ["-n", "x"]])
def test_mistakes_are_told(arguments, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["top", *arguments])
    assert raised.value.code == 2 and "cupola top: error" in capsys.readouterr().err
