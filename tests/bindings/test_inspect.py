"""What the modules say about the library they have loaded."""

from __future__ import annotations

import dataclasses
import importlib
import json

import pytest

from bindgen.libraries import LIBRARIES
from cupola import pathfinder
from cupola.bindings import Inspection, driver, nvrtc
from cupola.bindings._inspection import report

KNOWN = [
    ("cuInit", "cuInit", True, 2000, 0),
    ("cuNew", "cuNew_v2", False, 13010, 0),
    ("cuNewer", "cuNewer", False, 13040, 0),
    ("cuOlder", "cuOlder", False, 12090, 12),
    ("cuUnknown", "cuUnknown", False, 0, 0),
]


def made(loaded: str = "/lib/libcuda.so.1", per_thread: bool = False) -> Inspection:
    return report("cupola.bindings.driver", "driver", loaded, 13000, 13050, per_thread, KNOWN)


def test_a_report():
    said = made()
    assert (said.module, said.library, said.version, said.major) == ("driver", "/lib/libcuda.so.1", "13.0", 13)
    assert said.available == ("cuInit",) and "cuInit" in said and "cuNew" not in said and "cuNothing" not in said
    assert said.missing == {
        "cuNew": "CUDA 13.1 or newer",
        "cuNewer": "CUDA 13.4 or newer",
        "cuOlder": "CUDA 12, not newer",
        "cuUnknown": "an unknown version",
    }
    assert said.functions["cuNew"].symbol == "cuNew_v2" and said.functions["cuInit"].since == "2.0"
    assert json.loads(json.dumps(dataclasses.asdict(said)))["functions"]["cuOlder"]["until"] == 12


def test_its_text():
    assert repr(made()).splitlines() == [
        "cupola.bindings.driver (CUDA 13.5) calls /lib/libcuda.so.1, version 13.0",
        "1 of 5 functions are available",
        "CUDA 12, not newer: cuOlder",
        "CUDA 13.1 or newer: cuNew",
        "CUDA 13.4 or newer: cuNewer",
        "an unknown version: cuUnknown",
    ]
    assert repr(made("cupola CPU device", True)).splitlines()[2:] == [
        "the default stream is the per-thread one",
        "not emulated: cuNew, cuNewer, cuOlder, cuUnknown",
    ]


def test_missing_functions_are_seen_without_calling_them(new_stub):
    stub = new_stub()
    stub("missing.update(['cuMemAlloc_v2', 'cuMemAlloc'])")
    assert stub("driver.inspect().missing") == "{'cuMemAlloc': 'CUDA 3.2 or newer'}"
    assert stub("driver.inspect().library, driver.inspect().version, calls") == "('stub driver', '13.5', [])"
    assert "FunctionNotFoundError" in stub("driver.cuMemAlloc(1)")


def test_every_function_is_listed():
    for name in LIBRARIES:
        module = importlib.import_module(f"cupola.bindings.{name}")
        try:
            said = module.inspect()
        except pathfinder.DynamicLibNotFoundError:
            continue  # NVML and cuFile come with a driver or a wheel of their own
        assert said.functions and all(callable(getattr(module, function)) for function in said.functions)
        assert "inspect" in dir(module) and "inspect" not in module.__all__


def test_the_loaded_libraries():
    assert driver.inspect().library == driver._provider_name()
    assert {"cuInit", "cuMemAlloc", "cuLaunchKernel"} <= set(driver.inspect().available)
    said, loaded = nvrtc.inspect(), pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert (said.library, said.version) == (loaded.abs_path, loaded.version)
    assert said.major == nvrtc.nvrtcVersion()[1]


@pytest.mark.cpu_only
def test_the_cpu_device():
    said = driver.inspect()
    assert said.library == "cupola CPU device" and said.major == 13
    # Interop with video stays missing, in the report and in the call.
    assert "cuVDPAUGetDevice" in said.missing and "cuVDPAUGetDevice" in repr(said)
    with pytest.raises(RuntimeError, match="the CPU device does not emulate cuVDPAUGetDevice"):
        driver.cuVDPAUGetDevice(1, 1)


def test_without_a_library(run_python):
    done = run_python(
        "from cupola.bindings import _provider\n"
        "_provider.provide = lambda library: 1 / 0\n"
        "from cupola.bindings import nvrtc\n"
        "try: nvrtc.inspect()\n"
        "except ZeroDivisionError as error: print('the error of the search')\n"
    )
    assert done.stdout.strip() == "the error of the search", done.stderr
