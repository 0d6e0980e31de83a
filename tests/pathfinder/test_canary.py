"""A child process says where the loader takes cudart from, and from that follows the toolkit's root."""

from __future__ import annotations

import os
import sys

import pytest

from cupola.pathfinder import _canary


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(_canary, "_answers", {})


@pytest.mark.parametrize(
    ("library", "root"),
    [
        ("/usr/local/cuda/lib64/libcudart.so.13", "/usr/local/cuda"),
        ("/opt/cuda/lib/libcudart.so.12", "/opt/cuda"),
        ("/opt/cuda/targets/sbsa-linux/lib/libcudart.so.13", "/opt/cuda"),
        ("/usr/lib/x86_64-linux-gnu/libcudart.so.12", None),
    ],
)
def test_root_of_a_toolkit(library, root):
    assert _canary.toolkit_of(library) == root


def test_the_child_finds_what_the_loader_finds(make_library, monkeypatch, tmp_path):
    make_library(tmp_path / "cuda" / "lib64", "libcudart.so.12")
    path = make_library(tmp_path / "cuda" / "lib64", "libcudart.so.13")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "cuda" / "lib64"))
    assert _canary.system_library("cudart") == path
    assert _canary.system_toolkit() == str(tmp_path / "cuda")
    with open("/proc/self/maps") as maps:
        assert path not in maps.read(), "it must not be loaded into this process"


def test_nothing_is_found(monkeypatch):
    assert _canary._ask(("libno_such_thing.so.7",)) is None


def test_the_answer_is_remembered(monkeypatch):
    asked = []
    monkeypatch.setattr(_canary, "_ask", lambda sonames: asked.append(sonames))
    assert _canary.system_toolkit() is None and _canary.system_library("cudart") is None
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("script", "message"), [("echo broken >&2; exit 3", "status 3: broken"), ("sleep 20", "did not end within 0.2 s")]
)
def test_a_child_that_fails(monkeypatch, tmp_path, script, message):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script.replace('sleep', 'exec sleep')}\n")
    os.chmod(program, 0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(_canary, "TIMEOUT", 0.2 if "sleep" in script else 10.0)
    with pytest.raises(ChildProcessError, match=message):
        _canary.system_toolkit()
