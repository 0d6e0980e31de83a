"""Which functions of the runtime there are on the CPU device."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bindings.libcudart import installed

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def there() -> set[str]:
    from cupola.cpu import _driver

    names = _driver.runtime_symbols()
    assert len(set(names)) == len(names)
    return set(names)


@pytest.fixture(scope="module")
def lookup() -> Callable[[str], int | None]:
    from cupola.cpu import _driver

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer = get(_driver.runtime_lookup, b"cupola.cpu._driver.runtime_lookup")
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(pointer)
    return lambda name: function(name.encode())


@pytest.fixture(scope="module")
def all_functions() -> set[str]:
    header = (ROOT / "src/cupola/bindings/include/cupola/runtime.h").read_text()
    return set(re.findall(r"\(\*(cuda\w+)\)\(", header[header.index("cupola_table_head head") :]))


def test_every_function_is_found(there, lookup):
    assert all(lookup(name) for name in there)
    assert not lookup("cudaNoSuchThing") and not lookup("")


def test_variants_for_the_default_stream_of_a_thread(there, lookup):
    """A function has one exactly where libcudart has one."""
    library = ctypes.CDLL(str(installed(13)))
    known = {name for name in there if hasattr(library, name)}  # an older one lacks some
    wanted = {name for name in known if hasattr(library, name + "_ptsz") or hasattr(library, name + "_ptds")}
    assert {name for name in known if lookup(name + "_ptsz")} == wanted


def test_the_documentation_lists_what_is_missing(there, all_functions):
    text = (ROOT / "docs/bindings.md").read_text()
    section = re.search(r"### The runtime on the CPU device\n(.*?)\n## ", text, re.S)
    assert section
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (.+?) \|$", section[1], re.M)
    listed = {name for row in rows for name in re.findall(r"`(cuda\w+)`", row[2])}
    assert listed == all_functions - there
    assert sum(int(row[1]) for row in rows) == len(there)
    assert f"{len(there)} of\nthe {len(all_functions)} functions" in section[1]


def test_what_is_missing_says_so(run_python):
    source = """
from cupola.bindings import runtime
try:
    runtime.cudaGLSetGLDevice(0)
except runtime.FunctionNotFoundError if hasattr(runtime, "FunctionNotFoundError") else RuntimeError as error:
    print(error)
"""
    done = run_python(source, CUPOLA_DEVICE="cpu")
    assert done.stdout.strip() == "the CPU device has no such runtime function: cudaGLSetGLDevice", done.stderr
