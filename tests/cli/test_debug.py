"""``cupola debug`` and ``cupola run --watch`` as processes: the page, statuses, a terminal, Ctrl-C."""

from __future__ import annotations

import importlib.util
import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from tests import limits, processes

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.cpu_only

PROGRAM = r'''
import sys
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
source = """
extern "C" __global__ void count(int* x, int turns) {
    int i = threadIdx.x;
    for (volatile int k = 0; k < turns; k++)
        x[i] += 1;
}
"""
dev = Device()
dev.set_current()
stream = dev.create_stream()
kernel = Program(source, "c++", ProgramOptions(name="count.cu")).compile("cubin").get_kernel("count")
x = dev.allocate(4 * 32, stream=stream)
launch(stream, LaunchConfig(grid=1, block=32), kernel, x, int(sys.argv[1]))
if "--no-wait" not in sys.argv:
    stream.sync()
sys.stdout.write("the program is over\n")  # in one piece, since the debugger writes beside it
sys.stdout.flush()
if "--fail" in sys.argv:
    raise SystemExit(3)
if "--raise" in sys.argv:
    raise ValueError("a mistake")
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("debug") / "count.py"
    path.write_text(PROGRAM)
    return path


def debug(program, *arguments, typed="", options=()):
    command = [sys.executable, "-m", "cupola", "debug", *options, str(program), *arguments]
    return processes.run(command, input=typed, cwd=program.parent)


def test_the_page_has_what_comes():
    spec = importlib.util.spec_from_file_location("record_debugging", ROOT / "tools" / "record_debugging.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text()
    assert module.recorded(page) == page, "run tools/record_debugging.py write"


@pytest.mark.parametrize(
    "arguments, typed, status, expected",
    [
        (["3", "--fail"], "b count\nc\nc\n", 3, "> count.cu:3 in count"),
        (["3", "--raise"], "c\n", 1, "the program is over"),
        (["3"], "b count\nc\n", 0, "> count.cu:3 in count"),  # the end of the input is quit
        (["3", "--no-wait"], "b count\nc\np turns\nc\n", 0, r"(?m)^(\(cupola\) )?3$"),  # the program writes, too
        (["3"], "b nosuch\nc\n", 0, "breakpoint 1 at nosuch was never reached"),
        (["1000000000"], "b count\nc\nkill\n", 1, "> count.cu:3 in count"),
    ],
    ids=["status", "raises", "end", "exits-while-stopped", "never", "kill"],
)
def test_statuses(program, arguments, typed, status, expected):
    done = debug(program, *arguments, typed=typed)
    assert done.returncode == status, done.stdout + done.stderr
    assert re.search(expected, done.stdout), done.stdout


@pytest.mark.parametrize(
    "arguments, why",
    [
        ([], "name a script"),
        (["--watch", "a.cu:3:(x", "x.py"], "is expected"),
        (["--model", "nosuch", "x.py"], "model must be one of"),
        ([sys.executable], "in Python"),
    ],
)
def test_wrong_usage(arguments, why):
    command = [sys.executable, "-m", "cupola", "debug", *arguments]
    done = processes.run(command, stdin=processes.DEVNULL)
    assert done.returncode == 2 and why in done.stderr


class Typist:
    """Types in a terminal of its own."""

    def __init__(self, command, cwd):
        self.master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "HOME": str(cwd), "INPUTRC": "/dev/null"}
        self.process = processes.Child(command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=environment)
        os.close(slave)
        self.text = ""
        self.at = 0

    def wait_for(self, text):
        """Read on until a text has come, behind what was waited for before; returns what came up to there."""
        begin, limit = self.at, limits.for_children()
        while text not in self.text[begin:]:
            ready, _, _ = select.select([self.master], [], [], 0.2)
            if ready:
                self.text += os.read(self.master, 4096).decode(errors="replace")
            assert limit.left(limits.CHILDREN) > 0, self.text
        self.at = self.text.index(text, begin) + len(text)
        return self.text[begin : self.at]

    def type(self, line, answer):
        os.write(self.master, f"{line}\n".encode())
        return self.wait_for(answer)


def test_a_terminal_with_ctrl_c(program):
    typist = Typist([sys.executable, "-m", "cupola", "debug", str(program), "1000000000"], program.parent)
    try:
        typist.wait_for("(cupola) ")
        typist.type("tb count", "(cupola) ")
        typist.type("c", "> count.cu:3 in count")
        typist.wait_for("(cupola) ")
        assert "32" not in typist.type("print tur\t", "1000000000")  # completed by Tab
        typist.wait_for("(cupola) ")
        os.write(typist.master, b"c\n")
        time.sleep(0.3)  # let it run; nothing depends on how far it comes
        typist.process.send_signal(signal.SIGINT)
        typist.wait_for("interrupted")
        typist.wait_for("(cupola) ")
        typist.process.send_signal(signal.SIGINT)  # at the prompt
        typist.type("p k > 0", "true")
        typist.wait_for("(cupola) ")
        os.write(typist.master, b"quit\n")
        assert typist.process.wait() == 0
    finally:
        typist.process.end()
        typist.process.wait()
        os.close(typist.master)
