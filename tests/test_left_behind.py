"""That something left behind is seen: a process, an anonymous file, a socket."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from tests import limits, processes
from tests.left_behind import nothing_left_behind

# A child of the child goes on, in a session of its own, and holds what processes of cupola share.
LEAVES = """
import os, time
if os.fork() == 0:
    os.setsid()
    file = os.memfd_create("cupola-left")
    os.close(1), os.close(2)
    time.sleep(600)
"""


def test_nothing_is_left_by_a_process_that_ends():
    with nothing_left_behind():
        processes.run([sys.executable, "-c", "import os; os.memfd_create('cupola-left')"], check=True)
        os.close(os.memfd_create("cupola-closed"))


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_present", limits.Limit(1))


def test_a_process(no_patience):
    words = r"(?s)these are left: process \d+, .*os.fork.*, holds descriptor \d+: /memfd:cupola-left"
    leaves = processes.Child([sys.executable, "-c", LEAVES], stdout=processes.PIPE, stderr=processes.PIPE)
    with leaves, pytest.raises(AssertionError, match=words), nothing_left_behind():
        leaves.communicate()


def test_an_anonymous_file(no_patience):
    words = "these are left: descriptor .*: /memfd:cupola-test"
    with pytest.raises(AssertionError, match=words), nothing_left_behind():
        file = os.memfd_create("cupola-test")
    os.close(file)


def test_a_socket(no_patience):
    name = f"cupola-test-{os.getpid()}"
    words = f"descriptor .*: @{name}"
    with socket.socket(socket.AF_UNIX) as left, pytest.raises(AssertionError, match=words), nothing_left_behind():
        left.bind(f"\0{name}")
