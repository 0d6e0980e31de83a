"""What importing costs, and the public names."""

from __future__ import annotations

import importlib
import pickle

import pytest

import cupola

HEAVY = ("numpy", "ctypes", "dataclasses", "inspect", "enum", "typing", "logging", "pathlib", "llvmlite")


FORGET = f"import sys; [sys.modules.pop(m, None) for m in {HEAVY!r}]; "
SHOW = f"; print([m for m in {HEAVY!r} if m in sys.modules])"


@pytest.mark.parametrize(
    "statement",
    [
        "import cupola",
        "from cupola import Buffer, Device, Event, LaunchConfig, ObjectCode, Stream, launch",
        "from cupola import DeviceMemoryResource, PinnedMemoryResource, Program",
        "import cupola.graph",
        "import cupola.utils",
        "import cupola.numpy",
    ],
)
def test_import_is_light(run_python, statement):
    done = run_python(FORGET + statement + SHOW)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_import_brings_only_the_way_up(run_python):
    done = run_python("import sys, cupola; print(sorted(m for m in sys.modules if m.startswith('cupola')))")
    assert done.stdout.strip() == "['cupola', 'cupola._above']", done.stdout + done.stderr


def test_arrays_are_whole_however_their_module_was_imported(run_python):
    """As in a process that unpickles one."""
    done = run_python("from cupola.numpy._ndarray import empty; x = empty(3); print(x.cumsum()[1:].shape)")
    assert done.stdout.strip() == "(2,)", done.stderr


def test_import_starts_no_driver(run_python):
    done = run_python(
        "import cupola; from cupola import LEGACY_DEFAULT_STREAM, LaunchConfig, launch; "
        "LaunchConfig(grid=1, block=1); print(int(LEGACY_DEFAULT_STREAM.handle))",
        CUPOLA_DEVICE="neither",
    )
    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.parametrize("name", cupola.__all__)
def test_public_names_exist(name):
    assert getattr(cupola, name) is not None
    assert name in dir(cupola)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        cupola.no_such_name  # noqa: B018


def test_version():
    assert cupola.__version__[0].isdigit()


def test_names_that_moved_still_work():
    with pytest.warns(DeprecationWarning, match="cupola.utils.StridedMemoryView"):
        moved = cupola.StridedMemoryView
    assert moved is importlib.import_module("cupola.utils").StridedMemoryView


@pytest.mark.parametrize("name", ["Context", "Stream", "Event", "Kernel", "ObjectCode"])
def test_factory_only_classes(name):
    with pytest.raises(RuntimeError, match=f"^{name} objects cannot be instantiated directly; use "):
        getattr(cupola, name)()


def test_errors_keep_their_facts_in_a_pickle():
    error = cupola.CUDAError("CUDA_ERROR_X: text", name="CUDA_ERROR_X", status=7, call="cuX")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name, again.status, again.call) == ("CUDA_ERROR_X: text", "CUDA_ERROR_X", 7, "cuX")
