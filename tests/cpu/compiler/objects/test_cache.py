"""Object code on disk: found again, healed when damaged, trimmed, switched off."""

from __future__ import annotations

import errno
import marshal
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cupola.cpu.compiler import modules
from cupola.cpu.compiler.objects import machine, recall
from cupola.cpu.compiler.objects.cache import ObjectCache


def test_entry_is_found_again(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "new" / "folder", "machine")
    key = cache.key("ir")
    assert cache.get(key) is None
    cache.put(key, b"code" * 100)
    assert ObjectCache(cache.folder, "machine").get(key) == b"code" * 100
    assert [entry.suffix for entry in (tmp_path / "new" / "folder").iterdir()] == [".o"]


def test_key_depends_on_code_and_machine(tmp_path: Path) -> None:
    one, other = ObjectCache(tmp_path, "one"), ObjectCache(tmp_path, "other")
    assert len({one.key("a"), one.key("b"), other.key("a")}) == 3


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:20], lambda d: b"", lambda d: d[:-1] + b"?"])
def test_damaged_entry_is_removed(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    cache = ObjectCache(tmp_path, "machine")
    key = cache.key("ir")
    cache.put(key, b"object code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(key) is None and not path.exists()
    cache.put(key, b"object code")
    assert cache.get(key) == b"object code"


def test_an_entry_under_another_name_is_missing(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, "machine")
    one, other = cache.key("one"), cache.key("other")
    cache.put(one, b"object code")
    (tmp_path / f"{one}.o").rename(tmp_path / f"{other}.o")
    assert cache.get(other) is None and not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["directory", "loop", "full"])
def test_what_cannot_be_read_or_written_is_missing(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ObjectCache(tmp_path, "machine")
    key = cache.key("ir")
    path = tmp_path / f"{key}.o"
    if what == "directory":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path)
    else:

        def fail(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, "no space")

        monkeypatch.setattr(os, "replace", fail)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert cache.get(key) is None and len(os.listdir("/proc/self/fd")) == descriptors
    assert cache.put(key, b"object code") == (what == "loop"), "a link is replaced"
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize("data", [b"", b"\xff", b"N", marshal.dumps((1, 2)), marshal.dumps([[1], [2], [3]])])
def test_what_does_not_decode_is_missing(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a module, and of a body of a kernel, that are something else."""
    store = ObjectCache(tmp_path, "facts")
    monkeypatch.setattr(recall, "_store", lambda: store)
    monkeypatch.setattr(recall, "enabled", True)
    monkeypatch.setattr(ObjectCache, "get", lambda self, key: data)
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry nothing() { ret; }
"""
    loaded = modules.load_image(ptx.encode())
    assert [name for name, _ in loaded.entries] == ["nothing"]
    assert loaded.kernels[0].name == "nothing" and loaded.compile(0, (32, 1, 1)).address


def test_few_processes_count_a_full_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would look at every entry, of which there may be a hundred thousand."""
    counted = []
    monkeypatch.setattr(ObjectCache, "_trim", lambda self: counted.append(self))
    for number in range(1000):  # processes that compile a kernel
        cache = ObjectCache(tmp_path, "machine", limit=1 << 20)
        cache.put(cache.key(str(number)), b"code")
    assert 5 <= len(counted) <= 30
    counted.clear()
    for number in range(20):  # one that compiles much
        cache.put(cache.key(f"more {number}"), bytes(1000))
    assert cache in counted


def test_oldest_entries_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, "machine", limit=10_000)
    keys = [cache.key(str(number)) for number in range(12)]
    for age, key in enumerate(keys):
        cache.put(key, bytes(1000))
        path = tmp_path / f"{key}.o"
        if path.exists():
            os.utime(path, (1000 + age, 1000 + age))
    left = [key for key in keys if cache.get(key) is not None]
    assert 0 < len(left) < 12 and left == keys[-len(left) :]
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 10_000


def test_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "folder", "machine")
    cache.put(cache.key("ir"), b"code")
    assert cache.get(cache.key("ir")) is None


def test_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ObjectCache.default("machine").folder == tmp_path / "cupola"
    monkeypatch.setenv("CUPOLA_CPU_CACHE", "0")
    cache = ObjectCache.default("machine")
    cache.put(cache.key("ir"), b"code")
    assert cache.get(cache.key("ir")) is None and not list(tmp_path.iterdir())


PROGRAM = """
import cupola.cpu
cupola.cpu.use()
import numpy as np
import cupola.cpu.compiler.objects.machine as machine
compiled = []
emit = machine.emit_object
machine.emit_object = lambda ir: compiled.append(1) or emit(ir)
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
source = 'extern "C" __global__ void k(int *p, int n) { p[threadIdx.x * n] = 5; }'
options = ProgramOptions(arch=f"sm_{device.arch}")
kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("k")
stream = device.create_stream()
buffer = device.allocate(1024, stream=stream)
launch(stream, LaunchConfig(grid=1, block=256), kernel, buffer, np.int32(1))
stream.sync()
import sys
print(len(compiled), "cupola.cpu.compiler.ptx" in sys.modules)
launch(stream, LaunchConfig(grid=1, block=256), kernel, buffer, np.int32(2))
try:
    stream.sync()
except Exception as error:
    print(error)
sys.stdout.flush()
import os
os._exit(0)
"""


@pytest.mark.cpu_only
@pytest.mark.unchecked(reason="machine code of checked programs is not kept")
def test_second_process_compiles_nothing(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Nor does it read PTX, but to tell where a fault is."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    outputs = [run_python(PROGRAM, **environment).stdout.splitlines() for _ in range(2)]
    assert [lines[0] for lines in outputs] == ["1 True", "0 False"]
    told = [[line for line in lines if "0x" not in line] for lines in outputs]
    assert told[0][1:] == told[1][1:] and any("PTX line" in line for line in told[0])
    entries = list((tmp_path / "cupola").iterdir())
    assert len(entries) == 3  # the module, the body, its object code
    largest = max(entries, key=lambda entry: entry.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-10])
    assert run_python(PROGRAM, **environment).stdout.splitlines()[0] == "1 True"
    assert run_python(PROGRAM, **environment).stdout.splitlines()[0] == "0 False"


@pytest.mark.cpu_only
def test_without_llvmlite_modules_cannot_be_loaded(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_python(
        """
import sys
sys.modules["llvmlite"] = None  # as if it were not installed
from cupola import Device, ObjectCode
Device(0).set_current()
try:
    ObjectCode.from_ptx(b".version 8.0\\n.target sm_80\\n.address_size 64\\n.entry k() { ret; }").get_kernel("k")
except Exception as error:
    print(error)
""",
        CUPOLA_DEVICE="cpu",
    )
    assert "CUDA_ERROR_JIT_COMPILER_NOT_FOUND" in done.stdout and "pip install" in done.stdout, (
        done.stdout + done.stderr
    )


def test_without_a_home_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUPOLA_CPU_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the user is not listed
    assert ObjectCache.default("machine").folder is None


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_others_could_have_written_is_not_loaded(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ObjectCache(tmp_path / "cache", "machine")
    key = cache.key("ir")
    cache.put(key, b"object code")
    assert cache.folder is not None
    path = cache.folder / f"{key}.o"
    assert cache.folder.stat().st_mode & 0o777 == 0o700 and path.stat().st_mode & 0o777 == 0o600
    if what == "folder":
        cache.folder.chmod(0o777)
    elif what == "file":
        path.chmod(0o666)
    else:
        path.replace(tmp_path / "other")
        path.symlink_to(tmp_path / "other")
    with caplog.at_level("WARNING", "cupola"):
        assert ObjectCache(cache.folder, "machine").get(key) is None
    assert ("other users may write to it" in caplog.text) == (what != "link")


def test_quick_code_is_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled in the simplest way is longer, and is not what others find in the cache."""
    ir = """
define i32 @f(i32 %a) {
  %place = alloca i32
  store i32 %a, ptr %place
  %b = load i32, ptr %place
  %c = add i32 %b, 0
  ret i32 %c
}
"""
    made = []
    for quick in (False, True):
        monkeypatch.setattr(machine, "quick", quick)
        made.append((machine.cache_key("kernel"), machine.emit_object(ir)))
    (key, code), (other_key, longer) = made
    assert key != other_key
    assert len(longer) > len(code)


def test_exact_and_fast_code_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for numerics in ("exact", "fast", ""):
        monkeypatch.setenv("CUPOLA_CPU_NUMERICS", numerics)
        keys.add(machine.cache_key("kernel"))
    assert len(keys) == 2
