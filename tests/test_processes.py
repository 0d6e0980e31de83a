"""Children of tests: what is told of them, and that nothing is left of them."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest

from tests import limits, processes

TESTS = Path(__file__).resolve().parent


def python(source: str) -> list[str]:
    return [sys.executable, "-uc", source]


def test_a_program_that_ends():
    done = processes.run(python("import sys; print(sys.stdin.read()); sys.exit('bad')"), input="words", cwd="/")
    assert (done.stdout, done.stderr, done.returncode) == ("words\n", "bad\n", 1)
    with pytest.raises(AssertionError, match=r"(?s)status 1 of .*\nbad"):
        processes.run(python("import sys; sys.exit('bad')"), check=True)


# A child of the child, in a session of its own, with no parent, and the pipes in its hands.
FAMILY = """
import os, sys, time
print("the first")
print("an error", file=sys.stderr)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    {forgets}
    print("the second", os.getpid())
{rest}
"""


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch):
    """Children of this test have as many seconds as they need to say something."""
    monkeypatch.setattr(limits, "_present", limits.Limit(3))


@pytest.mark.parametrize("how", ["run", "communicate", "wait"])
def test_a_child_that_does_not_end(no_time, how):
    source = FAMILY.format(forgets="pass", rest="time.sleep(600)")
    with pytest.raises(processes.Overdue) as told:
        if how == "run":
            processes.run(python(source))
        else:
            with processes.Child(python(source), stdout=processes.PIPE, stderr=processes.PIPE) as child:
                getattr(child, how)()
    words = str(told.value)
    assert "had not ended after" in words
    if how != "wait":
        assert "the first" in words and "---- its standard error ----\nan error" in words and "the second" in words
    assert own_children() == {}


def test_descendants_end_with_a_child():
    """Those with no parent, in sessions of their own, as well."""
    source = FAMILY.format(forgets="pass", rest="time.sleep(600)")
    with processes.Child(python(source), stdout=processes.PIPE) as child:
        while "second" not in child.stdout.readline():
            pass
        assert len(child.family()) == 2
    assert own_children() == {} and child.returncode == -9


def test_what_a_finished_child_has_left_is_known_and_can_be_ended():
    source = FAMILY.format(forgets="os.close(1)\n    os.close(2)\n    time.sleep(600)", rest="")
    assert processes.run(python(source)).stdout == "the first\n"
    assert len(own_children()) == 1
    limit = limits.Limit
    try:
        limits.Limit = lambda seconds: limit(0)  # no time to end by itself
        (command,) = processes.end_all()
    finally:
        limits.Limit = limit
    assert "import os, sys, time" in command
    limits.until(lambda: not own_children())


def own_children() -> dict[int, processes.Living]:
    """What is left of children of this test: of `run` and `Child`, with all below them."""
    alive = processes.living()
    numbers = processes.below(processes.OWN, alive) - {os.getpid()}
    return {number: alive[number] for number in numbers if "import os, sys" in alive[number].command}


BARE = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
# This helper, and programs that tests run as children, some of them on other machines without the rest of the tests.
ALLOWED = {"processes.py", "nccl/answers.py", "ecosystem/jax_programs.py"}


def bare_calls(source: str) -> list[int]:
    """The lines in which a process is started past `tests.processes`."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr=name)) if name in BARE:
                lines.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen")):
                lines.append(node.lineno)
            case ast.ImportFrom(module="subprocess", names=names) if BARE & {name.name for name in names}:
                lines.append(node.lineno)
    return lines


def test_bare_calls_are_seen():
    text = "import subprocess\nsubprocess.run(['a'])\nfrom subprocess import Popen\nos.system('a')\nsubprocess.PIPE\n"
    assert bare_calls(text) == [3, 2, 4]


def test_all_children_have_the_limit():
    """No ``subprocess.run`` or ``Popen`` in tests: use `tests.processes`."""
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in TESTS.rglob("*.py")
        if str(path.relative_to(TESTS)) not in ALLOWED
        for line in bare_calls(path.read_text())
    }
    assert not found, f"use tests.processes.run or Child instead: {sorted(found)}"
