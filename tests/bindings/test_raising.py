"""Modules whose functions raise, with a library made for the test in which every function returns one status."""

from __future__ import annotations

import shutil
import sys

import pytest

from bindgen.ir import Module
from bindgen.libraries import LIBRARIES
from bindgen.plan import plans
from bindgen.typesystem import Types
from tests import processes

RAISING = [name for name, library in LIBRARIES.items() if library.error]

ROBUSTNESS = """
import ctypes, inspect, sys
import cupola.pathfinder as p
path, name, error = sys.argv[1:4]
p.load_nvidia_dynamic_lib = lambda name: p.LoadedDL(path, False, ctypes.CDLL(path)._handle, "test")
from cupola.bindings import _provider
_provider.override_lookup = lambda *_: None  # the CPU device wraps functions of nvJitLink,
_provider._emulated_nvml = lambda: None  # and has an NVML of its own,
_provider._emulated_math = lambda library: None  # and math libraries
module = __import__("cupola.bindings." + name, fromlist=["_"])
odd = [None, 0, -1, 1 << 70, 2.5, "x", b"x", bytearray(8), [], [object()], (None,), object(), True, module]
done = 0
for attribute in dir(module):
    function = getattr(module, attribute)
    if not inspect.isbuiltin(function):
        continue
    count = len(inspect.signature(function).parameters)
    for arguments in [(), (0,) * (count + 1), *((value,) * count for value in odd)]:
        try:
            repr(function(*arguments))
        except (TypeError, OverflowError, RuntimeError, BufferError, ValueError, IndexError, MemoryError):
            pass
        except getattr(module, error) as caught:
            assert caught.status == int(sys.argv[4]) or attribute.startswith("check_status"), caught
    done += 1
print(done)
"""


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("name", RAISING)
def test_every_function_survives_odd_arguments(tmp_path, name, status):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    library = LIBRARIES[name]
    module = Module.load(library.ir_path)
    statuses = (library.status, "CUfileError_t")  # a record with two ints is returned as a long
    functions = [f"long {f.symbol}() {{ return {status if f.returns in statuses else 0}; }}" for f in module.functions]
    path = tmp_path / "lib.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-o", path, "-"]
    processes.run(command, input="\n".join(functions), check=True)
    done = processes.run(
        [sys.executable, "-c", ROBUSTNESS, path, name, library.error, str(status)],
    )
    assert done.returncode == 0, done.stderr
    own = 1 + {"nvml": 2, "cufile": 1}.get(name, 0)  # inspect, check_status and check_status_size, op_status_error
    assert int(done.stdout) == len(plans(library, Types(module))) + own
