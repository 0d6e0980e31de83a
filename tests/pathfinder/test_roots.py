"""The public names, and the order of site-packages."""

from __future__ import annotations

import site
import sys

import pytest

from cupola import __version__, pathfinder
from cupola.pathfinder import _roots


@pytest.mark.parametrize(("in_venv", "order"), [(True, ["system", "user"]), (False, ["user", "system"])])
def test_order_of_site_packages(monkeypatch, tmp_path, in_venv, order):
    folders = {name: tmp_path / name / "site-packages" for name in ("system", "user", "absent")}
    for name in order:
        folders[name].mkdir(parents=True)
    monkeypatch.setattr(_roots.sysconfig, "get_paths", lambda: dict.fromkeys(["purelib", "platlib"], folders["system"]))
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(folders["user"]))
    monkeypatch.setattr(sys, "path", [str(folders[name]) for name in ("absent", "user", "system")])
    monkeypatch.setattr(sys, "prefix", "/venv" if in_venv else sys.base_prefix)
    assert list(_roots.site_packages()) == [str(folders[name]) for name in order]


def test_errors():
    for error in (pathfinder.DynamicLibUnknownError, pathfinder.DynamicLibNotAvailableError):
        assert issubclass(error, pathfinder.DynamicLibNotFoundError)
    for name in ("DynamicLib", "BitcodeLib", "StaticLib"):
        assert issubclass(getattr(pathfinder, f"{name}NotFoundError"), RuntimeError)
    assert issubclass(pathfinder.UnsupportedArchError, RuntimeError)


def test_public_names():
    assert pathfinder.__version__ == __version__
    assert all(hasattr(pathfinder, name) for name in pathfinder.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pathfinder.nothing


def test_an_empty_variable_is_unset(nowhere, monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "")
    assert pathfinder.get_cuda_path_or_home() is None
    monkeypatch.setenv("CUDA_HOME", "/later")
    assert pathfinder.get_cuda_path_or_home() is None, "the answer is remembered"
