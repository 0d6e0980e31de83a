"""A process that CRIU writes to disk while it is checkpointed, ends, and starts again from there: on either device."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cupola.checkpoint import Process
from tests import processes
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import driver_version
from tests.limits import eventually

COUNT = """
import sys, time
from pathlib import Path
import numpy as np
from cupola import Device, LaunchConfig, ObjectCode, launch

device = Device()
device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx(Path(sys.argv[1]).read_bytes()).get_kernel("increment")
x = device.allocate(16 << 20, stream=stream)
x.fill(0, stream=stream)
number = np.zeros(4 << 20, np.uint32)
while not Path(sys.argv[2]).exists():
    launch(stream, LaunchConfig(grid=1, block=1), kernel, x)
    x.copy_to(number, stream=stream)
    stream.sync()
    print(number[0], flush=True)
    time.sleep(0.01)
print("end", flush=True)
"""


def criu(*arguments: str) -> subprocess.CompletedProcess[str]:
    # A sanitizer that is loaded into every program (tools/sanitize.sh) lets criu wait for ever.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return processes.run(["criu", *arguments], env=environment)


@pytest.fixture
def _criu() -> None:
    if not on_cpu_device() and driver_version() < 12080:
        pytest.skip("checkpoints need a driver of CUDA 12.8 or later")
    if shutil.which("criu") is None:
        pytest.skip("criu is not installed")
    if os.geteuid():
        pytest.skip("criu needs to be run by the administrator")
    check = criu("check")
    if check.returncode:
        pytest.skip(f"this criu cannot work with this kernel: {check.stderr.strip()[-200:]}")


@pytest.mark.usefixtures("_criu")
def test_process_starts_again_from_disk(tmp_path: Path) -> None:
    from tests.checkpoint_target import PTX

    code, stop, said = tmp_path / "code.ptx", tmp_path / "stop", tmp_path / "said"
    code.write_text(PTX)
    with said.open("w") as output:
        # CRIU wants a process that has no terminal and shares no session with others.
        counting = processes.Child(
            [sys.executable, "-c", COUNT, str(code), str(stop)],
            stdin=processes.DEVNULL,
            stdout=output,
            stderr=output,
        )
    process = Process(counting.pid)
    images = tmp_path / "images"
    images.mkdir()
    try:
        assert eventually(lambda: said.read_text().count("\n") > 3), said.read_text()
        process.lock()
        process.checkpoint()
        dump = criu("dump", "--tree", str(counting.pid), "--images-dir", str(images), "--log-file", "dump.log")
        assert dump.returncode == 0, (images / "dump.log").read_text()[-2000:]
        assert counting.wait() != 0  # criu ended it
        before = said.read_text()
        start = criu("restore", "--images-dir", str(images), "--log-file", "restore.log", "--restore-detached")
        assert start.returncode == 0, (images / "restore.log").read_text()[-2000:]
        assert process.state == "checkpointed"
        assert said.read_text() == before
        process.restore()
        process.unlock()
        lines = before.count("\n")
        assert eventually(lambda: said.read_text().count("\n") > lines + 3)
        stop.touch()
        assert eventually(lambda: said.read_text().endswith("end\n"))
    finally:
        stop.touch()
        if os.path.exists(f"/proc/{counting.pid}"):
            os.kill(counting.pid, signal.SIGKILL)
    numbers = said.read_text().split()[:-1]
    assert numbers == [str(n + 1) for n in range(len(numbers))]
