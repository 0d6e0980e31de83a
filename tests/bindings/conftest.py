"""Fixtures: a stub driver in a separate process, and programs that run there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes

_spec = importlib.util.spec_from_file_location("bindings_stub", Path(__file__).with_name("stub.py"))
_stub = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_stub)


@pytest.fixture(scope="session")
def stub():
    """Evaluates expressions in a process whose driver is the one of stub.py."""
    process = _stub.Stub()
    yield process
    process.close()


@pytest.fixture
def run_program():
    """Run a program in a process of its own, with arguments and something to read."""

    def run(source: str, *arguments: str, input: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command, env = [sys.executable, "-c", source, *arguments], {**os.environ, **environment}
        return processes.run(command, input=input, env=env)

    return run


@pytest.fixture
def new_stub():
    """Makes stubs of one's own, with environment variables."""
    made = []

    def make(**environment: str):
        made.append(_stub.Stub(**environment))
        return made[-1]

    yield make
    for process in made:
        process.close()
