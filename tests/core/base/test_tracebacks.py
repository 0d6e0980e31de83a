"""Compiled modules add no frames to tracebacks, and errors without a traceback are safe in all that Cython makes."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
import threading
import traceback
from pathlib import Path

import pytest

from cupola import LaunchConfig, Stream, launch
from tests import processes
from tests.bindings.test_extensions import compiler

ROOT = Path(__file__).resolve().parents[3]
CALLS = {
    "driver": lambda device: device.allocate(1 << 46, stream=device.default_stream),
    "arguments": lambda device: launch(device.default_stream, LaunchConfig(grid=1, block=1), None),
    "static": lambda device: Stream.from_handle("none"),
    "lock": lambda device: device.create_graph_builder().end_building(),
    "property": lambda device: device.create_graph_builder().graph_definition,
}

# What Cython makes code for that takes an error apart, each with errors that no frame has touched.
FORMS = """
import sys

cdef int fail(object error) except -1:
    raise error

cdef int fail_without_gil(object error) except -1 nogil:
    with gil:
        raise error

def plain(error):
    fail(error)

def without_gil(error):
    with nogil:
        fail_without_gil(error)

def asked(error):
    try:
        fail(error)
    except ValueError:
        kind, value, trace = sys.exc_info()
        assert kind is ValueError and value is error and trace is None, trace
        raise

def named(error):
    try:
        fail(error)
    except ValueError as caught:
        assert caught is error and caught.__traceback__ is None
        raise caught

def chained(error):
    try:
        fail(KeyError(1))
    except KeyError as cause:
        raise error from cause

def during(error):
    try:
        fail(KeyError(1))
    except KeyError:
        fail(error)

def at_last(error):
    try:
        fail(error)
    finally:
        try:
            fail(KeyError(1))
        except KeyError:
            pass

def loop(error):
    while True:
        try:
            fail(error)
        finally:
            return fail(error)

def items(error):
    try:
        yield 1
        fail(KeyError(1))
    except KeyError:
        yield 2
    fail(error)

def generator(error):
    for _ in items(error):
        pass

def thrown(error):
    found = items(error)
    next(found)
    found.throw(error)

def expression(error):
    return [i for i in (fail(error) for _ in range(3))]

def through_python(error, call):
    try:
        call(fail_later(error))
    except ValueError:
        fail(error)

def fail_later(error):
    def later():
        fail(error)
    return later

async def waiting(error):
    fail(error)

def coroutine(error):
    waiting(error).send(None)

def rounds(error):
    for i in range(3):
        try:
            fail(error)
        except ValueError as caught:
            if i == 0:
                continue
            found = caught
            break
    raise found

def returned(error):
    found = None
    try:
        fail(error)
    except ValueError as caught:
        found = caught
    return found
"""
NAMES = [
    "plain", "without_gil", "asked", "named", "chained", "during", "at_last", "loop", "generator", "thrown",
    "expression", "coroutine", "rounds",
]  # fmt: skip


@pytest.mark.skipif(os.environ.get("CUPOLA_TRACEBACK") == "full", reason="the frames of compiled modules are asked for")
@pytest.mark.parametrize("name", CALLS)
def test_tracebacks_end_in_the_program_s_line(device, name):
    with pytest.raises(Exception) as caught:
        CALLS[name](device)
    files = [frame.filename for frame in traceback.extract_tb(caught.tb)]
    assert files[:2] == [__file__, __file__] and not [file for file in files if not os.path.isfile(file)], files


def test_they_are_there_when_asked_for(run_python):
    source = "import cupola\ncupola.Stream.from_handle('none')"
    for setting, shown in (("full", True), ("", False), ("other", False)):
        done = run_python(source, CUPOLA_TRACEBACK=setting)
        assert done.returncode == 1 and ("_stream.pyx" in done.stderr) is shown, done.stderr


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    pytest.importorskip("Cython")
    command, folder = compiler(), tmp_path_factory.mktemp("forms")
    (folder / "forms.pyx").write_text(FORMS)
    processes.run([sys.executable, "-m", "cython", "-3", "forms.pyx"], cwd=folder, check=True)
    target = folder / f"forms{sysconfig.get_config_var('EXT_SUFFIX')}"
    header = ROOT / "src" / "cupola" / "core" / "base" / "frames.h"
    command += ["-O0", "-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}", "-include", str(header)]
    processes.run([*command, str(folder / "forms.c"), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("forms", target)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_errors_pass_through_compiled_code(forms, name):
    for _ in range(3):
        error = ValueError(name)
        with pytest.raises(ValueError, match=name) as caught:
            getattr(forms, name)(error)
        assert caught.value is error
        assert {frame.filename for frame in traceback.extract_tb(error.__traceback__)} == {__file__}
        assert isinstance(error.__cause__, KeyError) is (name == "chained")
        assert isinstance(error.__context__, KeyError) is (name in ("chained", "during"))


def test_errors_pass_through_python_and_threads(forms):
    def call(later):
        later()

    error = ValueError("both")
    with pytest.raises(ValueError, match="both") as caught:
        forms.through_python(error, call)
    names = [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert "call" in names and not {"through_python", "fail"} & set(names)

    found: list[BaseException] = []
    thread = threading.Thread(target=lambda: found.append(forms.returned(ValueError("there"))))
    thread.start()
    thread.join()
    assert found[0].__traceback__ is None
    with pytest.raises(ValueError, match="there") as caught:
        raise found[0]
    assert len(traceback.extract_tb(caught.tb)) == 1


def test_an_error_leaves_no_reference_behind(forms):
    error = ValueError("held")
    for name in NAMES:
        before = sys.getrefcount(error)
        for _ in range(5):
            with pytest.raises(ValueError, match="held"):
                getattr(forms, name)(error)
            error.__traceback__ = error.__cause__ = error.__context__ = None
        assert sys.getrefcount(error) == before, name
