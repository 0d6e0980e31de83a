"""Where things are on each system, as data."""

from __future__ import annotations

import os
import sys
import sysconfig

import pytest

from cupola import pathfinder
from cupola.pathfinder import _platform
from cupola.pathfinder._platform import Platform

LINUX, X64, ARM64 = Platform("linux", "x86_64"), Platform("windows", "x86_64"), Platform("windows", "aarch64")


@pytest.mark.parametrize(
    ("platform", "kind", "folder", "folders"),
    [
        (LINUX, "wheel", "nvidia/cu13/lib", ["nvidia/cu13/lib"]),
        (X64, "wheel", "nvidia/cu13/lib", ["nvidia/cu13/bin/x86_64", "nvidia/cu13/bin/x64", "nvidia/cu13/bin"]),
        (ARM64, "wheel", "nvidia/cu13/lib", ["nvidia/cu13/bin/arm64"]),
        (X64, "wheel", "a/nvvm/lib64", ["a/nvvm/bin/x86_64", "a/nvvm/bin/x64", "a/nvvm/bin"]),
        (LINUX, "toolkit", "lib64", ["lib64"]),
        (X64, "toolkit", "lib64", ["bin/x64", "bin"]),
        (ARM64, "toolkit", "lib64", ["bin/arm64"]),
        (X64, "toolkit", "nvvm/lib64", ["nvvm/bin/x64", "nvvm/bin"]),
        (X64, "toolkit", "extras/CUPTI/lib64", ["extras/CUPTI/lib/x64", "extras/CUPTI/lib64"]),
        (ARM64, "toolkit", "extras/CUPTI/lib64", ["extras/CUPTI/lib/arm64", "extras/CUPTI/lib64"]),
        (LINUX, "link", "lib64", ["lib64"]),
        (X64, "link", "lib64", ["lib/x64", "lib"]),
        (ARM64, "link", "nvidia/cu13/lib", ["nvidia/cu13/lib/arm64", "nvidia/cu13/lib"]),
        (LINUX, "tool", "bin", ["bin"]),
        (X64, "tool", "bin", ["bin", "bin/x64", "bin/x86_64"]),
        (ARM64, "tool", "bin", ["bin", "bin/arm64"]),
    ],
)
def test_folders(platform, kind, folder, folders):
    assert list(getattr(platform, f"{kind}_folders")([folder])) == folders


def test_no_folder_is_searched_twice():
    assert X64.toolkit_folders(("lib64", "lib")) == ("bin/x64", "bin")


def test_targets():
    assert LINUX.targets == ("x86_64-linux",)
    assert Platform("linux", "aarch64").targets == ("sbsa-linux", "aarch64-linux")
    assert Platform("linux", "riscv64").targets == X64.targets == ()


def test_program_files(monkeypatch):
    monkeypatch.setenv("PROGRAMFILES", "C:\\Program Files (x86)")
    monkeypatch.setenv("PROGRAMW6432", "C:\\Program Files")
    assert X64.program_files() == "C:\\Program Files"
    assert LINUX.program_files() is None
    monkeypatch.delenv("PROGRAMW6432")
    assert X64.program_files() == "C:\\Program Files (x86)"


@pytest.fixture
def asked_anew():
    _platform.current.cache_clear()
    yield
    _platform.current.cache_clear()


@pytest.mark.parametrize(("tag", "machine"), [("win-amd64", "x86_64"), ("win-arm64", "aarch64")])
def test_windows(asked_anew, monkeypatch, tag, machine):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sysconfig, "get_platform", lambda: tag)
    assert _platform.current() == Platform("windows", machine)


def test_a_processor_without_cuda(asked_anew, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "win-arm32")
    with pytest.raises(pathfinder.UnsupportedArchError, match="win-arm32"):
        _platform.current()


def test_this_computer(asked_anew):
    assert _platform.current() == Platform("linux", os.uname().machine)


@pytest.mark.parametrize(
    ("system", "name"), [("linux", "Linux"), ("windows", "Windows"), ("darwin", "macOS"), ("x", "x")]
)
def test_names(system, name):
    assert Platform(system, "x86_64").name == name
