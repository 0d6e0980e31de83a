"""Libraries are found in the documented order, once, and a miss says where it was looked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from cupola import pathfinder
from cupola.pathfinder import _dynamic_libraries as dynamic
from cupola.pathfinder._tables import LIBRARIES, TOOLKIT_LIBRARIES

# cudla exists on no ordinary machine, so only the library made here can be found.
PRINT_CUDLA = """
from cupola.pathfinder import load_nvidia_dynamic_lib
found = load_nvidia_dynamic_lib("cudla")
print(found.abs_path, found.found_via, found.was_already_loaded_from_elsewhere)
"""


def run(source: str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        env={**env, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make_library(folder: os.PathLike[str], soname: str) -> str:
    """Build an empty shared library, as the loader refuses anything else."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler to make a library to be found")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, soname)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", os.devnull, f"-Wl,-soname,{soname}", "-o", path], check=True
    )
    return path


def test_nvrtc_is_loaded_only_once():
    first = pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert first is pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert first.abs_path is not None and os.path.isabs(first.abs_path) and "libnvrtc.so" in first.abs_path
    assert first._handle_uint


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(pathfinder.DynamicLibUnknownError, match=r"'nvrct'.*nvrtc"):
        pathfinder.load_nvidia_dynamic_lib("nvrct")


def test_a_missing_library_says_where_it_was_looked_for_and_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(dynamic, "_find_installed", lambda library: None)
    monkeypatch.setattr(dynamic, "_try_open", lambda soname, extra_mode=0: 0)
    monkeypatch.setattr(dynamic, "_loaded", {})
    monkeypatch.setattr(dynamic, "get_cuda_path_or_home", lambda: str(tmp_path))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    with pytest.raises(pathfinder.DynamicLibNotFoundError) as error:
        pathfinder.load_nvidia_dynamic_lib("nvrtc")
    text = str(error.value)
    for part in (
        "libnvrtc.so.13",
        "site-packages",
        "CONDA_PREFIX",
        str(tmp_path),
        'pip install "cupola[cu13]"',
    ):
        assert part in text, part


def test_the_driver_is_not_looked_for_in_wheels(monkeypatch):
    monkeypatch.setattr(dynamic, "_find_installed", lambda library: pytest.fail("looked in wheels"))
    monkeypatch.setattr(dynamic, "_try_open", lambda soname, extra_mode=0: 0)
    monkeypatch.setattr(dynamic, "_loaded", {})
    with pytest.raises(pathfinder.DynamicLibNotFoundError, match="CUPOLA_DEVICE=cpu"):
        pathfinder.load_nvidia_dynamic_lib("cuda")


@pytest.mark.parametrize(
    ("variable", "folder", "via"),
    [
        ("CONDA_PREFIX", "lib", "conda"),
        ("CUDA_PATH", "lib64", "CUDA_PATH"),
        ("CUDA_HOME", "lib", "CUDA_PATH"),
    ],
)
def test_order_beyond_wheels(tmp_path, variable, folder, via):
    path = make_library(tmp_path / folder, "libcudla.so.1")
    assert run(PRINT_CUDLA, **{variable: str(tmp_path)}) == f"{path} {via} False"


def test_a_library_that_is_already_loaded_wins(tmp_path):
    path = make_library(tmp_path / "somewhere", "libcudla.so.1")
    make_library(tmp_path / "conda" / "lib", "libcudla.so.1")
    source = f"import ctypes; ctypes.CDLL({path!r})\n" + PRINT_CUDLA
    out = run(source, CONDA_PREFIX=str(tmp_path / "conda"))
    assert out == f"{path} was-already-loaded-from-elsewhere True"


def test_a_file_that_is_no_library_is_an_error(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudla.so.1").write_text("not a library")
    source = """
    from cupola.pathfinder import load_nvidia_dynamic_lib
    try:
        load_nvidia_dynamic_lib("cudla")
    except RuntimeError as error:
        print(error)
    """
    assert "cannot be loaded" in run(source, CONDA_PREFIX=str(tmp_path))


def test_the_table_is_consistent():
    assert len(pathfinder.SUPPORTED_NVIDIA_LIBNAMES) == 29 == len(TOOLKIT_LIBRARIES)
    for name, library in LIBRARIES.items():
        assert library.sonames, name
        assert all(soname.startswith("lib") and ".so" in soname for soname in library.sonames), name
        assert set(library.depends) <= set(LIBRARIES), name
