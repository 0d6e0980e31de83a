"""The loader of Windows, over a kernel32 made here: which functions are called, with what."""

from __future__ import annotations

from typing import Any

import pytest

from cupola.pathfinder import _loader_windows as loader


class Kernel32:
    """Knows the DLLs that are loaded and those that can be, and writes down what it is asked."""

    def __init__(self) -> None:
        self.loaded: dict[str, int] = {"nvcuda.dll": 0x7FF0_0000_0000}
        self.there: dict[str, int] = {"nvml.dll": 5, "C:\\cuda\\bin\\nvrtc64_130_0.dll": 6}
        self.paths: dict[int, str] = {6: "C:\\cuda\\bin\\nvrtc64_130_0.dll"}
        self.calls: list[tuple[Any, ...]] = []

    def GetModuleHandleW(self, name: str) -> int | None:
        return self.loaded.get(name)

    def LoadLibraryExW(self, name: str, file: None, flags: int) -> int | None:
        assert file is None
        self.calls.append(("load", name, flags))
        return self.there.get(name)

    def AddDllDirectory(self, folder: str) -> int:
        self.calls.append(("add", folder))
        return 1

    def GetModuleFileNameW(self, handle: int, buffer: Any, size: int) -> int:
        self.calls.append(("path", size))
        path = self.paths.get(handle, "")
        buffer.value = path[: size - 1]
        return len(path) if len(path) < size else size


@pytest.fixture(autouse=True)
def kernel32(monkeypatch) -> Kernel32:
    kernel32 = Kernel32()
    monkeypatch.setattr(loader, "_kernel32", lambda: kernel32)
    monkeypatch.setattr(loader, "_last_error", lambda: "The specified module could not be found. (error 126)")
    monkeypatch.setattr(loader.os.path, "dirname", lambda path: path.rpartition("\\")[0])
    monkeypatch.setattr(loader.os.path, "abspath", lambda path: path)
    loader._add_folder.cache_clear()
    return kernel32


def test_a_file_is_loaded_with_its_neighbours(kernel32):
    path = "C:\\cuda\\bin\\nvrtc64_130_0.dll"
    assert loader.open_file(path) == 6
    assert loader.open_file(path, deep_bind=True) == 6
    # LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR; the folder is added once.
    assert kernel32.calls == [("add", "C:\\cuda\\bin"), ("load", path, 0x1100), ("load", path, 0x1100)]


def test_a_file_that_is_refused():
    with pytest.raises(RuntimeError, match=r"found C:\\broken.dll, but it cannot be loaded: .*could not be found"):
        loader.open_file("C:\\broken.dll")


@pytest.mark.parametrize(
    ("name", "number", "reason"),
    [("nvml.dll", 0, ""), ("absent.dll", 126, ""), ("broken.dll", 193, "The specified module")],
)
def test_why_a_name_is_refused(monkeypatch, name, number, reason):
    monkeypatch.setattr(loader, "_last_error_number", lambda: number)
    assert loader.refusal(name).startswith(reason) and bool(loader.refusal(name)) == bool(reason)


def test_by_name(kernel32):
    assert loader.try_open("nvcuda.dll") == loader.try_open("nvcuda.dll", only_if_loaded=True) == 0x7FF0_0000_0000
    assert kernel32.calls == [], "it is loaded already"
    assert loader.try_open("nvml.dll", only_if_loaded=True) == 0
    assert loader.try_open("nvml.dll") == 5
    assert loader.try_open("absent.dll") == 0
    assert kernel32.calls == [("load", "nvml.dll", 0), ("load", "absent.dll", 0)]  # 0: the usual order, with PATH


@pytest.mark.parametrize(
    ("length", "sizes"),
    [(30, [260]), (259, [260]), (260, [260, 520]), (2000, [260, 520, 1040, 2080]), (32766, None), (40000, None)],
)
def test_path_of_a_handle(kernel32, length, sizes):
    path = "C:\\" + "x" * (length - 3)
    kernel32.paths[9] = path
    assert loader.path_of(9) == (path if length < 32767 else None)
    if sizes:
        assert [size for _, size in kernel32.calls] == sizes


def test_a_handle_that_is_none():
    assert loader.path_of(1) is None
