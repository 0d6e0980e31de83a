"""Program caches: the mapping, limits, damage, many processes; keys; Program.compile with a cache."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import stat
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig, ObjectCode, PinnedMemoryResource, Program, ProgramOptions, launch
from cupola.pathfinder import find_nvidia_header_directory
from cupola.utils import (
    FileStreamProgramCache,
    InMemoryProgramCache,
    ProgramCacheResource,
    make_program_cache_key,
)
from tests import processes

CHILD = Path(__file__).with_name("programs") / "cache_child.py"


@pytest.fixture(params=["memory", "files"])
def make(request, tmp_path):
    if request.param == "memory":
        return InMemoryProgramCache
    return lambda **options: FileStreamProgramCache(tmp_path / "cache", **options)


@pytest.fixture
def files(tmp_path):
    return FileStreamProgramCache(tmp_path / "cache")


def entries(cache):
    """The paths of the entries on disk."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(cache._entries) for name in names)


class TestMapping:
    @pytest.mark.parametrize("key", ["text", b"bytes", bytearray(b"array"), "ü", b"\x00\xff", ""])
    @pytest.mark.parametrize("value", [b"", b"code", bytearray(b"code"), memoryview(b"code"), b"x" * 100_000])
    def test_round_trip(self, make, key, value):
        cache = make()
        cache[key] = value
        assert cache[key] == bytes(value) == cache.get(key) and type(cache[key]) is bytes
        assert len(cache) == 1
        cache[key] = b"other"
        assert cache[key] == b"other" and len(cache) == 1
        del cache[key]
        assert cache.get(key) is None and cache.get(key, b"default") == b"default" and len(cache) == 0

    def test_text_is_its_utf8(self, make):
        cache = make()
        cache["ü"] = b"1"
        assert cache["ü".encode()] == b"1"

    def test_missing(self, make):
        cache = make()
        with pytest.raises(KeyError, match="absent"):
            cache["absent"]
        with pytest.raises(KeyError, match="absent"):
            del cache["absent"]

    @pytest.mark.parametrize("key", [5, None, memoryview(b"x"), ("a",)])
    def test_bad_keys(self, make, key):
        cache = make()
        for do in (
            lambda: cache[key],
            lambda: cache.__setitem__(key, b""),
            lambda: cache.__delitem__(key),
            lambda: cache.get(key),
        ):
            with pytest.raises(TypeError, match="a key is"):
                do()

    @pytest.mark.parametrize("value", [5, None, "text", [b"x"]])
    def test_bad_values(self, make, value):
        with pytest.raises(TypeError, match="a cache keeps"):
            make()["key"] = value

    def test_object_code(self, make, tmp_path):
        cache = make()
        cache["data"] = ObjectCode.from_ptx(bytearray(b"some PTX"))
        path = tmp_path / "code.ptx"
        path.write_bytes(b"more PTX")
        cache["file"] = ObjectCode.from_ptx(path)
        assert (cache["data"], cache["file"]) == (b"some PTX", b"more PTX")
        with pytest.raises(FileNotFoundError):
            cache["none"] = ObjectCode.from_ptx("/no/such/file")
        assert len(cache) == 2

    def test_what_is_kept_with_the_code_is_no_part_of_it(self, make):
        code, cache = ObjectCode.from_cubin(b"machine code"), make()
        code._take_heads(b".entry k(.param .f32 x)")
        cache["code"] = code
        found = cache["code"]
        assert found == b"machine code" == bytes(code.code) and bytes(found) == b"machine code"
        cache["again"] = found
        for stored in (found, cache["again"], pickle.loads(pickle.dumps(found))):
            again = ObjectCode.from_cubin(stored)
            assert again.code == b"machine code" and type(again.code) is bytes
            assert again._signatures() == b".entry k(.param .f32 x)"

    def test_update_clear_close(self, make):
        with make() as cache:
            cache.update({"a": b"1", "b": b"2"})
            cache.update([("b", b"3"), (b"c", b"4")])
            assert [cache[k] for k in "abc"] == [b"1", b"3", b"4"]
        assert cache["a"] == b"1"
        cache.clear()
        assert len(cache) == 0 and cache.get("a") is None
        cache["a"] = b"5"
        assert cache["a"] == b"5"

    def test_what_it_is_not(self, make):
        cache = make()
        with pytest.raises(TypeError, match="use get"):
            "a" in cache  # noqa: B015
        with pytest.raises(TypeError, match="iterated"):
            list(cache)
        with pytest.raises(TypeError, match="pickled|belongs to this process"):
            pickle.dumps(cache)
        with pytest.raises(TypeError):
            ProgramCacheResource()


class TestLimit:
    @pytest.mark.parametrize("limit", [0, -1])
    def test_bad(self, make, limit):
        with pytest.raises(ValueError, match="positive"):
            make(max_size_bytes=limit)

    def test_in_memory_counts_the_code(self):
        cache = InMemoryProgramCache(max_size_bytes=10)
        cache.update([("a", b"1234"), ("b", b"1234")])
        assert cache["a"] and len(cache) == 2
        cache["c"] = b"1234"
        assert cache.get("b") is None and cache["a"] and cache["c"]
        cache["c"] = b"12"
        cache["d"] = b"1234"
        assert len(cache) == 3
        cache["big"] = b"x" * 11
        assert len(cache) == 0
        cache["a"] = b"x" * 10
        assert len(cache) == 1

    def test_on_disk_the_oldest_go_first(self, tmp_path):
        cache = FileStreamProgramCache(tmp_path, max_size_bytes=3 * 1100)
        for name in "abc":
            cache[name] = name.encode() * 1000
            time.sleep(0.01)
        assert cache["a"]  # is now the newest
        time.sleep(0.01)
        cache["d"] = b"d" * 1000
        assert cache.get("b") is None and all(cache.get(name) for name in "acd")
        cache["big"] = b"x" * 4000
        assert len(cache) == 0

    def test_of_another_process_counts_when_it_is_opened(self, tmp_path, files):
        for name in "abcdef":
            files[name] = b"x" * 1000
        limited = FileStreamProgramCache(files.path, max_size_bytes=3000)
        limited["g"] = b"x" * 1000
        assert len(files) == 2 and files["g"]


class TestFiles:
    def test_layout(self, files):
        files["key"] = b"code"
        (path,) = entries(files)
        relative = os.path.relpath(path, files.path)
        assert relative == os.path.join(
            "entries", "2c", "70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"
        )
        with open(path, "rb") as file:
            assert file.read().startswith(b"code")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.join(files.path, "tmp")).st_mode) == 0o700
        assert os.listdir(os.path.join(files.path, "tmp")) == []

    def test_default_directory(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        cache = FileStreamProgramCache()
        assert cache.path == str(tmp_path / "cupola" / "program-cache")
        assert repr(cache) == f"<FileStreamProgramCache {cache.path!r}>"

    def test_default_directory_is_made_for_this_user_alone(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
        cache = FileStreamProgramCache()
        for folder in (cache.path, os.path.dirname(cache.path)):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700

    def test_default_directory_that_others_can_read_is_closed_to_them(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        for folder in (tmp_path / "cupola", tmp_path / "cupola" / "program-cache"):
            folder.mkdir()
            folder.chmod(0o755)
        cache = FileStreamProgramCache()
        for folder in (cache.path, os.path.dirname(cache.path)):
            assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700

    @pytest.mark.parametrize("folder", ["cupola", "cupola/program-cache"])
    @pytest.mark.parametrize(
        ("what", "why"),
        [
            ("group", "other users may write to it"),
            ("others", "other users may write to it"),
            ("owner", "it belongs to the user with id"),
            ("link", "it is not a folder"),
        ],
    )
    def test_default_directory_that_others_could_write_to(self, monkeypatch, tmp_path, caplog, folder, what, why):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setattr("cupola._private_folder._refused", set())
        FileStreamProgramCache()["key"] = b"code"
        place = tmp_path / folder
        if what == "owner":
            status = os.lstat

            def of_somebody_else(path, *arguments, **options):
                found = status(path, *arguments, **options)
                fields = list(found)
                fields[stat.ST_UID] = os.geteuid() + 1
                return os.stat_result(fields) if os.fspath(path) == str(place) else found

            monkeypatch.setattr(os, "lstat", of_somebody_else)
        elif what == "link":
            place.rename(tmp_path / "elsewhere")
            place.symlink_to(tmp_path / "elsewhere")
        else:
            place.chmod(0o770 if what == "group" else 0o707)
        with caplog.at_level("WARNING", "cupola"), pytest.raises(PermissionError, match="another path"):
            FileStreamProgramCache()
        assert f"{place} is not used as a cache: {why}" in caplog.text

    @pytest.mark.parametrize("what", ["folder", "entries", "group", "entry", "link", "loop", "directory", "owner"])
    def test_what_others_could_have_written_is_not_believed(self, tmp_path, monkeypatch, caplog, what):
        """Also in a folder that is named."""
        monkeypatch.setattr("cupola._private_folder._refused", set())
        cache = FileStreamProgramCache(tmp_path / "cache")
        cache["key"] = b"code"
        (path,) = entries(cache)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        if what == "link":
            os.replace(path, tmp_path / "elsewhere")
            os.symlink(tmp_path / "elsewhere", path)
        elif what == "loop":
            os.unlink(path)
            os.symlink(path, path)
        elif what == "directory":
            os.unlink(path)
            os.mkdir(path)
        elif what == "owner":
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        else:
            place = {"entry": path, "entries": os.path.join(cache.path, "entries")}.get(what, cache.path)
            os.chmod(place, 0o770 if what == "group" else 0o777)
        descriptors = os.listdir("/proc/self/fd")
        with caplog.at_level("WARNING", "cupola"):
            for opened in (cache, FileStreamProgramCache(cache.path)):
                assert opened.get("key") is None
        assert len(os.listdir("/proc/self/fd")) == len(descriptors)
        assert ("is not used as a cache" in caplog.text) == (what not in ("link", "loop"))
        if what in ("link", "loop", "entry"):
            cache["key"] = b"new"  # in its place
            assert cache["key"] == b"new"
        elif what != "directory":
            cache["other"] = b"new"
            assert cache.get("other") is None and not os.listdir(os.path.join(cache.path, "tmp"))

    def test_a_folder_may_be_a_link_of_the_user(self, tmp_path):
        (tmp_path / "there").mkdir()
        (tmp_path / "here").symlink_to(tmp_path / "there")
        FileStreamProgramCache(tmp_path / "here")["key"] = b"code"
        assert FileStreamProgramCache(tmp_path / "there")["key"] == b"code"

    def test_an_entry_under_the_name_of_another_is_missing(self, files):
        files["key"], files["other"] = b"code", b"another"
        first, second = entries(files)
        os.replace(first, second)
        assert files.get("key") is None and files.get("other") is None and entries(files) == []

    def test_no_home(self, monkeypatch):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the user is not listed
        with pytest.raises(RuntimeError, match="XDG_CACHE_HOME"):
            FileStreamProgramCache()

    def test_path_is_a_file(self, tmp_path):
        path = tmp_path / "file"
        path.touch()
        with pytest.raises((FileExistsError, NotADirectoryError)):
            FileStreamProgramCache(path)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[:-1],
            lambda data: data[:1000],
            lambda data: data[1:],
            lambda data: data[:500] + b"!" + data[501:],
            lambda data: data + b"more",
            lambda data: b"cupolaPC",
        ],
    )
    def test_damage_is_noticed_and_healed(self, files, damage):
        files["key"] = bytes(range(256)) * 16
        (path,) = entries(files)
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(damage(data))
        assert files.get("key") is None
        assert entries(files) == []
        files["key"] = b"new"
        assert files["key"] == b"new"

    def test_directories_come_back(self, files):
        import shutil

        files["a"] = b"1"
        shutil.rmtree(files.path)
        assert files.get("a") is None and len(files) == 0
        files["a"] = b"2"
        assert files["a"] == b"2"

    def test_reading_counts_nothing(self, files, monkeypatch):
        """A process that finds what it wants does not look at all entries."""
        files["key"] = b"code"
        monkeypatch.setattr(FileStreamProgramCache, "_scan", lambda self: pytest.fail("all entries are looked at"))
        cache = FileStreamProgramCache(files.path, max_size_bytes=3000)
        assert cache["key"] == b"code" and cache.get("other") is None
        del cache["key"]

    def test_stale_temporary_files_go(self, files):
        paths = [os.path.join(files.path, "tmp", name) for name in ("entry-old", "entry-new")]
        for path in paths:
            with open(path, "w") as file:
                file.write("x")
        hours_ago = time.time() - 2 * 3600
        os.utime(paths[0], (hours_ago, hours_ago))
        FileStreamProgramCache(files.path)
        assert [os.path.exists(path) for path in paths] == [False, True]

    def test_a_failed_write_leaves_nothing(self, files, monkeypatch):
        def fail(*arguments):
            raise OSError("no space")

        monkeypatch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no space"):
            files["key"] = b"code"
        monkeypatch.undo()
        assert len(files) == 0 and os.listdir(os.path.join(files.path, "tmp")) == []

    def test_use_keeps_the_time_of_writing(self, files):
        files["key"] = b"code"
        (path,) = entries(files)
        os.utime(path, (1e9, 1e9))
        assert files["key"] == b"code"
        status = os.stat(path)
        assert status.st_mtime == 1e9 and status.st_atime > 1.5e9


def test_many_processes(tmp_path):
    """Readers, writers, deletions, eviction and damage at the same time: a read gives the right bytes or none."""
    path = str(tmp_path / "cache")
    hits = 0
    with contextlib.ExitStack() as stack:
        for child in [
            stack.enter_context(
                processes.Child([sys.executable, CHILD, path, seed], stdout=processes.PIPE, stderr=processes.PIPE)
            )
            for seed in range(6)
        ]:
            out, error = child.communicate()
            assert child.returncode == 0, error
            hits += int(out)
    assert hits > 0
    assert os.listdir(os.path.join(path, "tmp")) == []


def test_a_folder_that_is_removed_while_it_is_made(tmp_path, monkeypatch):
    cache = FileStreamProgramCache(tmp_path)
    folder = os.path.dirname(cache._path_of("key"))
    os.mkdir(folder)
    make, removed = os.mkdir, []

    def mkdir(path, mode=0o777):
        try:
            make(path, mode)
        except FileExistsError:
            if path == folder and not removed:
                os.rmdir(folder)  # another process clears the cache
                removed.append(path)
            raise

    monkeypatch.setattr(os, "mkdir", mkdir)
    cache["key"] = b"code"
    assert cache["key"] == b"code" and removed == [folder]


def test_many_threads(make):
    cache = make(max_size_bytes=20_000)
    wrong = []

    def work(seed):
        for step in range(100):
            key = f"key {(seed + step) % 17}"
            found = cache.get(key)
            if found is None:
                cache[key] = key.encode() * 200
            elif found != key.encode() * 200:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


SOURCE = 'extern "C" __global__ void k(float* x, float a) { *x = a; }'
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


def key(**changes):
    options = {"arch": "sm_90", **changes.pop("options", {})}
    given = {"code": SOURCE, "code_type": "c++", "target_type": "ptx", **changes}
    return make_program_cache_key(options=ProgramOptions(**options), **given)


class TestKey:
    def test_is_stable(self):
        assert isinstance(key(), bytes) and len(key()) == 32 and key() == key()
        assert key(code_type="C++", target_type="PTX") == key()
        assert key(options={"debug": False}) == key() and key(options={"include_path": []}) == key()
        for option in ("include_path", "undefine_macro", "ptxas_options"):
            assert key(options={option: False}) == key(options={option: True}) == key(), "as in cuda.core"
        assert key(name_expressions=("a", "b")) == key(name_expressions=["b", "a"])

    @pytest.mark.parametrize(
        "changes",
        [
            {"code": SOURCE + " "},
            {"target_type": "cubin"},
            {"target_type": "ltoir"},
            {"options": {"arch": "sm_80"}},
            {"options": {"ftz": False}},
            {"options": {"name": "other"}},
            {"options": {"define_macro": "A"}},
            {"options": {"use_fast_math": True}},
            {"name_expressions": ("a",)},
            {"name_expressions": (b"a",)},
            {"extra_digest": b""},
            {"extra_digest": b"x"},
            {"options": {"include_path": find_nvidia_header_directory("cudart")}},
            {"code": PTX, "code_type": "ptx"},
            {"code": PTX, "code_type": "nvvm"},
            {"code": PTX, "code_type": "nvvm", "options": {"extra_sources": [("a", "b")]}},
            {"code": PTX, "code_type": "nvvm", "options": {"use_libdevice": True}, "extra_digest": b"x"},
        ],
        ids=repr,
    )
    def test_everything_counts(self, changes):
        assert key(**changes) not in (key(), key(name_expressions=("b",)))

    def test_versions_of_the_headers_that_are_there_count(self, monkeypatch):
        from cupola.core.program import _program_key

        source = "#include <cuda_fp16.h>\n" + SOURCE
        before = key(code=source)
        assert key(code=source, options={"cuda_headers": False}) != before
        monkeypatch.setattr(_program_key, "_header_versions", lambda folder: b"other headers")
        assert key(code=source) != before

    def test_versions_count(self, monkeypatch):
        from cupola.core.program import _nvrtc, _program_key

        folder = find_nvidia_header_directory("cudart")
        before, with_headers = key(), key(options={"include_path": folder})
        monkeypatch.setattr(_program_key, "_header_versions", lambda folder: b"other headers")
        assert key() == before and key(options={"include_path": folder}) != with_headers
        monkeypatch.setattr(_nvrtc, "version", lambda: (99, 0))
        assert key() != before

        def missing():
            raise RuntimeError("no such library")

        monkeypatch.setattr(_nvrtc, "version", missing)
        assert key() == key() != before

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"no_cache": False}, {}),
            ({"ptxas_options": []}, {}),
            ({"ptxas_options": "-v"}, {"ptxas_options": ["-v"]}),
            ({"time": "a.csv"}, {"time": "b.csv"}),
            ({"std": "c++17", "define_macro": "A"}, {}),
        ],
        ids=repr,
    )
    def test_ptx_has_the_options_of_the_linker(self, first, second):
        def of(options):
            return key(code=PTX, code_type="ptx", target_type="cubin", options=options)

        assert of(first) == of(second) != of({"max_register_count": 16})

    @pytest.mark.parametrize(
        ("changes", "error", "text"),
        [
            ({"code_type": "c"}, ValueError, "unknown code_type"),
            ({"target_type": "fatbin"}, ValueError, "does not compile to 'fatbin'"),
            ({"code": PTX, "code_type": "ptx", "target_type": "ltoir"}, ValueError, "does not compile to 'ltoir'"),
            ({"code": PTX, "code_type": "nvvm", "target_type": "cubin"}, ValueError, "does not compile"),
            ({"options": {"create_pch": "x"}}, ValueError, "create_pch writes a file"),
            ({"options": {"time": "x"}, "extra_digest": b"x"}, ValueError, "time writes a file"),
            ({"options": {"fdevice_time_trace": "x"}}, ValueError, "fdevice_time_trace writes"),
            ({"options": {"include_path": "/tmp"}}, ValueError, "include_path '/tmp' holds files"),
            ({"options": {"include_path": ""}}, ValueError, "include_path"),
            ({"options": {"pre_include": "x.h"}}, ValueError, "pre_include makes NVRTC read"),
            ({"options": {"pch": True}}, ValueError, "pch makes NVRTC read"),
            ({"options": {"use_pch": "x"}}, ValueError, "use_pch makes NVRTC read"),
            ({"options": {"pch_dir": "x"}}, ValueError, "pch_dir makes NVRTC read"),
            ({"options": {"name": "folder/x.cu"}}, ValueError, "directory of the program's name"),
            ({"options": {"extra_sources": []}}, ValueError, "NVVM programs only"),
            ({"code": "#include \"/etc/passwd\"\n"}, ValueError, "includes '/etc/passwd'"),
            ({"code": PTX, "code_type": "nvvm", "options": {"use_libdevice": True}}, ValueError, "use_libdevice"),
            ({"code": PTX, "code_type": "nvvm", "options": {"std": "c++17"}}, CUDAError, "std"),
            ({"code": b"x"}, TypeError, "c\\+\\+ code is text, not bytes"),
            ({"code": 5, "code_type": "nvvm"}, TypeError, "text or bytes, not int"),
            ({"name_expressions": (bytearray(b"a"),)}, TypeError, "name expression"),
            ({"extra_digest": "x"}, TypeError, "extra_digest must be bytes"),
        ],
        ids=repr,
    )  # fmt: skip
    def test_bad(self, changes, error, text):
        with pytest.raises(error, match=text):
            key(**changes)

    def test_a_digest_stands_for_the_files(self, tmp_path):
        options = {"include_path": str(tmp_path), "pre_include": "x.h", "name": "folder/x.cu"}
        assert key(options=options, extra_digest=b"1") != key(options=options, extra_digest=b"2")
        assert key(options=options, extra_digest=b"1") == key(options=options, extra_digest=bytearray(b"1"))

    def test_headers_beside_the_program(self, tmp_path, monkeypatch):
        code = '#include "mine.h"\n' + SOURCE
        assert key(code=code)
        (tmp_path / "mine.h").touch()
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=r"includes 'mine.h', which the key does not cover"):
            key(code=code)
        assert key(code=code, options={"no_source_include": True})
        assert key(code=code, extra_digest=b"1")


def run(code, stream, value):
    with PinnedMemoryResource().allocate(4, stream=stream) as buffer:
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), buffer, value)
        stream.sync()
        return float(np.from_dlpack(buffer).view(np.float32)[0])


@pytest.mark.unchecked(reason="checked programs are compiled anew")
class TestCompile:
    @pytest.mark.parametrize("target", ["ptx", "cubin", "ltoir"])
    def test_second_time_from_the_cache(self, make, device, target):
        cache = make()
        options = {"arch": f"sm_{device.arch}"}
        first = Program(SOURCE, "c++", options).compile(target, cache=cache)
        assert len(cache) == 1
        program = Program(SOURCE, "c++", options)
        program._compiler.compile = None  # nothing is compiled any more
        second = program.compile(target.upper(), cache=cache)
        assert second.code == first.code
        assert (second.code_type, second.name, second.symbol_mapping) == (target, "default_program", {})

    def test_types_of_parameters_are_kept(self, make, device, stream):
        cache = make()
        for _ in range(2):
            code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin", cache=cache)
            assert run(code, stream, 3) == 3.0
        stored = cache[
            make_program_cache_key(
                code=SOURCE, code_type="c++", target_type="cubin", options=ProgramOptions(arch=f"sm_{device.arch}")
            )
        ]
        assert stored == code.code and run(ObjectCode.from_cubin(stored), stream, 4) == 4.0

    def test_ptx_programs(self, make, device, stream):
        cache = make()
        options = {"arch": f"sm_{device.arch}"}
        text = Program(SOURCE, "c++", options).compile("ptx").code.rstrip(b"\0").decode()
        for _ in range(2):
            code = Program(text, "ptx", {**options, "name": "mine"}).compile("cubin", cache=cache)
            assert code.name == "mine" and run(code, stream, 5) == 5.0
        assert len(cache) == 1

    @pytest.mark.parametrize("what", ["full", "directory", "loop", "read-only"])
    def test_a_cache_that_cannot_be_written_is_a_miss(self, files, device, monkeypatch, caplog, what):
        program = Program(SOURCE, "c++")
        program.compile("cubin", cache=files)
        (path,) = entries(files)
        os.unlink(path)
        if what == "directory":
            os.mkdir(path)
        elif what == "loop":
            os.rmdir(os.path.dirname(path))
            os.symlink(os.path.dirname(path), os.path.dirname(path))
        else:

            def fail(*arguments):
                raise OSError(errno.ENOSPC if what == "full" else errno.EROFS, "no")

            monkeypatch.setattr(os, "fsync", fail)
        with caplog.at_level("WARNING", "cupola"):
            assert len(program.compile("cubin", cache=files).code) > 100
        assert "could not be put into <FileStreamProgramCache" in caplog.text
        assert os.listdir(os.path.join(files.path, "tmp")) == []

    def test_damage_is_compiled_again(self, files, device, stream):
        for _ in range(3):
            code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin", cache=files)
            assert run(code, stream, 2.5) == 2.5
            (path,) = entries(files)
            with open(path, "r+b") as file:
                file.seek(100)
                file.write(b"damage")

    def test_name_of_the_present_program(self, make, device):
        cache = make()
        for _ in range(2):
            program = Program(SOURCE, "c++", {"lineinfo": True, "arch": "sm_90"})
            code = program.compile("ptx", cache=cache)
            assert code.name == program._compiler.name != "default_program"


def test_what_compile_refuses(device):
    program = Program(SOURCE, "c++", {"arch": "sm_90"})
    with pytest.raises(TypeError, match="cache must be a ProgramCacheResource, not dict"):
        program.compile("ptx", cache={})
    with pytest.raises(ValueError, match="name_expressions"):
        program.compile("ptx", ("k",), cache=InMemoryProgramCache())
    with pytest.raises(ValueError, match="unsupported target"):
        program.compile("fatbin", cache=InMemoryProgramCache())
    with pytest.raises(ValueError, match="time writes a file"):
        Program(SOURCE, "c++", {"arch": "sm_90", "time": "x"}).compile("ptx", cache=InMemoryProgramCache())
    program.close()
    with pytest.raises(RuntimeError, match="closed"):
        program.compile("ptx", cache={})


@pytest.mark.parametrize("observer", ["CHECK", "COVERAGE"])
def test_nobody_who_observes_kernels_changes_what_a_cache_is_for(device, monkeypatch, tmp_path, observer):
    """They have programs compiled anew, some another way: neither from the cache nor for it."""
    monkeypatch.setenv(f"CUPOLA_{observer}", "race" if observer == "CHECK" else str(tmp_path / "covered"))
    cache, times = InMemoryProgramCache(), tmp_path / "times.csv"
    with pytest.raises(ValueError, match="time writes a file"):
        Program(SOURCE, "c++", {"arch": "sm_90", "time": str(times)}).compile("ptx", cache=cache)
    assert not times.exists()
    assert b".entry" in Program(SOURCE, "c++", {"arch": "sm_90"}).compile("ptx", cache=cache).code
    assert len(cache) == 0
