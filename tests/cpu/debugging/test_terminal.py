"""The commands of ``cupola debug``, through a pipe."""

from __future__ import annotations

import io
import re

import pytest

from cupola import Device
from cupola.bindings import driver
from cupola.cpu.debugging import Debugger
from cupola.cpu.debugging.terminal import ALIASES, GROUPS, Terminal

from .test_session import Run

pytestmark = pytest.mark.cpu_only

SESSION = [
    ("b walk", "breakpoint 1 at walk"),
    ("info breakpoints", "breakpoint 1 at walk, hit 0 times"),
    ("p i", "*** no kernel is stopped"),
    ("nosuch", "*** 'nosuch' is no command"),
    ("run", "*** 'run' is no command: continue starts the program"),
    ("c", "> walk.cu:9 in walk, block (0, 0, 0) thread (0, 0, 0) and 31 more of its warp"),
    ("set i = 3", "*** 'set' is no command: variables are read only"),
    ("locals", "*** 'locals' is no command: 'info locals' says that"),
    ("nosuch", "*** there is no variable 'nosuch' here"),
    ("p *p@3", "*** '*p@3': '@3' is not understood; several elements are x[0:3]"),
    ("where", "> #0 walk at walk.cu:9    int i = blockIdx.x * blockDim.x + threadIdx.x;"),
    ("list", "   9 B->     int i = blockIdx.x * blockDim.x + threadIdx.x;"),
    ("l", "  15 .       "),
    ("l twice", "   4 .       int b = a * 2;"),
    ("args", "p = {x = 1.5, y = 2.5, tag = {7, 8, 9}}"),
    ("n", "> walk.cu:10 in walk"),
    ("", "> walk.cu:11 in walk"),
    ("p i", "0"),
    ("i", "*** info takes one of"),
    ("p/x q.tag[0] + 9", "0x10"),
    ("threadIdx", "{x = 0, y = 0, z = 0}"),
    ("whatis q", "    float y;  // at 4"),
    ("ptype Point", "Point, 20 bytes"),
    ("lanes i, n", ">  (0, 0, 0)   0   128"),
    ("lanes i, nothing", "*** there is no variable 'nothing' here"),
    ("lanes", "*  (31, 0, 0)  11 walk  here"),
    ("thread 37", "thread (37, 0, 0) has not begun"),
    ("p i", "*** the thread has not begun: there is nothing to look at"),
    ("step", "*** the thread has not begun, or has exited"),
    ("thread 3", "thread 3, here"),
    ("thread 99", "there is no 99"),
    ("info locals", "i = 3"),
    ("info registers %r1", "%r1"),
    ("info registers nosuch", "*** there is no register nosuch"),
    ("info shared", "_ZZ4walkE4tile: 256 bytes at offset 0"),
    ("info line", "walk.cu:11, PTX line "),
    ("info kernels", "> walk (variables) from walk.cu"),
    ("x/8 &q", "0x14:  0000c03f 00002040"),
    ("display i * 2", "i * 2 = 6"),
    ("b twice if a == 4 && blockIdx.x == 0", "breakpoint 2 at twice if a == 4 && blockIdx.x == 0: walk.cu:4 in twice"),
    ("disable 1", ""),
    ("c", "> walk.cu:4 in twice, block (0, 0, 0) thread (3, 0, 0)"),
    ("up", "> walk.cu:17 in walk"),
    ("p k", "0"),
    ("up", "*** that is the kernel"),
    ("down", "> walk.cu:4 in twice"),
    ("finish", "> walk.cu:17 in walk"),
    ("undisplay", ""),
    ("clear 2", "deleted breakpoint 2"),
    ("clear 9", "*** there is no breakpoint 9"),
    ("info threads", ">  0 to 31   here       walk.cu:17 in walk"),
    ("info threads", "   32 to 63  at a line  walk.cu:13 in walk"),
    ("info barriers", "No thread of the block waits at a barrier."),
    ("block 5", "*** the grid has 2 x 1 x 1 blocks"),
    ("block 1", "> walk.cu:7 in walk, block (1, 0, 0) thread (0, 0, 0)"),
    ("block 0", "*** block (0, 0, 0) has run already"),
    ("block", "block (1, 0, 0) of (2, 1, 1)"),
    ("tb 16 thread 3", "breakpoint 3 at walk.cu:16 in thread (3, 0, 0): walk.cu:16 in walk"),
    ("watch walk.cu:12:i", "watching i at walk.cu:12"),
    ("c", "walk.cu:12 block (1, 0, 0) thread (63, 0, 0): 127"),
    ("until 21", "> walk.cu:21 in walk, block (1, 0, 0) thread (3, 0, 0)"),
    ("help step", "Go on to the next line of this thread"),
    ("help nosuch", "*** 'nosuch' is no command"),
    ("help", "where to stop:     break (b), tbreak (tb)"),
    ("s", "The thread has ended, and so has the kernel 'walk'."),
]


def talk(debugger, commands):
    """A terminal that was given commands, and what it writes."""
    written = io.StringIO()
    terminal = Terminal(debugger, (), io.StringIO("".join(f"{line}\n" for line in commands)), written)
    return terminal, written


def answers(text):
    """What was said after each prompt."""
    return text.split("(cupola) ")[1:]


def test_a_session():
    with Debugger() as debugger:
        terminal, written = talk(debugger, [command for command, _ in SESSION] + ["c"])
        terminal.talk()
        Run(debugger).walk()
    said = answers(written.getvalue())
    for (command, expected), answer in zip(SESSION, said, strict=False):
        assert expected in answer, f"{command}: {answer}"
    assert len(said) >= len(SESSION)


FAULTS = [
    (1, "trap", "the kernel executed a trap", 25, ["p i", "p how"], ["6", "1"]),
    (2, "store", "out-of-bounds write of 4 bytes", 27, ["p i", "p/x x[0]", "lanes i"], ["7", "0x", ">  (7, 0, 0)"]),
    (
        3,
        "barrier",
        "cannot go on",
        29,
        ["info barriers", "info threads"],
        ["barrier 1: 32 of 64 threads have arrived: 0 to 31", "at barrier 1"],
    ),
]


@pytest.fixture
def context():
    """The device's context is made anew, since that of a kernel that has failed cannot be used."""
    yield
    assert driver.cuDevicePrimaryCtxReset(0)[0] == 0
    Device(0).set_current()


@pytest.mark.unchecked(reason="kernels fail on purpose, which the checks tell, too")
@pytest.mark.parametrize("how, name, text, line, commands, expected", FAULTS, ids=[row[1] for row in FAULTS])
def test_faults_are_looked_at(context, how, name, text, line, commands, expected):
    with Debugger() as debugger:
        terminal, written = talk(debugger, ["c", *commands, "step", "c"])
        terminal.talk()
        with pytest.raises(Exception, match=r"CUDA_ERROR"):
            Run(debugger).launch("halt", how)
    said = answers(written.getvalue())
    assert text in said[0] and f"walk.cu:{line}" in said[0]
    for answer, wanted in zip(said[1:], expected, strict=False):
        assert wanted in answer
    assert "*** the kernel has failed, and cannot go on" in written.getvalue()


def test_completion():
    with Debugger() as debugger:
        found = {}

        def look(stop):
            terminal.stop = stop
            for line in ("con", "b tw", "b wal", "info th", "p t", "p %rd1", "p ", "help und"):
                word = line.rpartition(" ")[2]
                found[line] = terminal.candidates(word, line, len(line) - len(word))
            terminal.stop = None

        terminal, _ = talk(debugger, [])
        debugger._listeners[:] = [look]
        debugger.breakpoint("walk.cu:12", block=0, thread=0)
        Run(debugger).walk()
    assert found["con"] == ["continue"] and found["b tw"] == ["twice"] and found["info th"] == ["threads"]
    assert found["b wal"] == ["walk", "walk.cu:"] and found["p t"] == ["threadIdx"]
    assert {"%rd1"} <= set(found["p %rd1"]) and {"i", "q", "x", "blockDim"} <= set(found["p "])
    assert found["help und"] == ["undisplay"]


def test_every_command_is_explained():
    commands = {name.removeprefix("do_") for name in dir(Terminal) if name.startswith("do_")}
    assert {name for names in GROUPS.values() for name in names} == commands
    assert set(ALIASES.values()) <= commands
    for name in commands:
        text = getattr(Terminal, f"do_{name}").__doc__
        assert re.match(rf"{name}\b", text) and text.rstrip().endswith(".")
