"""What a program of another language is started with."""

from __future__ import annotations

import builtins
import io
import os
import sys
import sysconfig
from pathlib import Path

import pytest

from cupola.cpu import programs


def check_folder(folder):
    for name in (*programs.LIBRARIES, "link12/libcudart.so", "link13/libcudart.so"):
        assert (Path(folder) / name).resolve(strict=True).suffix == ".so"
    assert os.stat(folder).st_mode & 0o777 == 0o700


def test_the_folder_of_libraries(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = programs.library_folder()
    check_folder(folder)
    assert Path(folder).is_relative_to(tmp_path) and programs.library_folder() == folder

    link = Path(folder) / "libcudart.so.13"  # a link to a file that is gone, and a link that is missing
    link.unlink()
    link.symlink_to("/nowhere")
    (Path(folder) / "libcuda.so").unlink()
    check_folder(programs.library_folder())


def test_without_a_cache_the_folder_is_temporary(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/cache")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = programs.library_folder()
    check_folder(folder)
    assert Path(folder).parent == tmp_path and programs.library_folder() == folder

    os.rename(folder, tmp_path / "own")  # somebody else was first
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    other = programs.library_folder()
    check_folder(other)
    assert other != folder


@pytest.mark.parametrize(("before", "after"), [(None, "{}"), ("", "{}"), ("/a:/b", "{}:/a:/b"), ("/a:{}", "/a:{}")])
def test_the_environment(monkeypatch, tmp_path, before, after):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = programs.library_folder()
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if before is not None:
        monkeypatch.setenv("LD_LIBRARY_PATH", before.format(folder))
    found = programs.environment()
    assert found["LD_LIBRARY_PATH"] == after.format(folder)
    assert (found["CUPOLA_DEVICE"], found["CUPOLA_PYTHON"]) == ("cpu", sys.executable)
    assert Path(found["CUPOLA_LIBPYTHON"]).name.startswith("libpython3")


def without_libpython(monkeypatch, folder):
    real = builtins.open
    monkeypatch.setattr("builtins.open", lambda path, *rest: io.StringIO() if path == "/proc/self/maps" else real(path))
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: str(folder) if name == "LIBDIR" else None)
    monkeypatch.setattr(sys, "base_prefix", "/nowhere")
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: exists(path) and not str(path).startswith("/usr/lib"))


def test_a_libpython_that_is_not_loaded(monkeypatch, tmp_path):
    library = tmp_path / f"libpython3.{sys.version_info.minor}{sys.abiflags}.so.1.0"
    library.touch()
    without_libpython(monkeypatch, tmp_path)
    assert programs.find_libpython() == str(library)


def test_no_libpython(monkeypatch, tmp_path):
    without_libpython(monkeypatch, tmp_path)
    with pytest.raises(RuntimeError, match=r"needs libpython3\.\d+t?\.so\.1\.0.*apt install libpython3"):
        programs.find_libpython()
