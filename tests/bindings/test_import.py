"""What importing a generated module costs: nothing but the module."""

from __future__ import annotations

import pytest

# Without the packages around it, whose own imports are their own business.
LOAD = """
import sys, types, _imp
from importlib.machinery import ModuleSpec
for name in ("cupola", "cupola.bindings"):
    sys.modules[name] = package = types.ModuleType(name)
    package.__path__ = []
before = set(sys.modules)
spec = ModuleSpec("cupola.bindings.{name}", None, origin={origin!r})
module = _imp.create_dynamic(spec)
_imp.exec_dynamic(module)
{use}
print(sorted(set(sys.modules) - before))
maps = open("/proc/self/maps").read()
print([library for library in ("libcuda", "libnv", "libcufile") if library in maps])
"""
USE = "module.CUresult(1), module.CUlaunchConfig(gridDimX=1), module.CUstream(1), module.CU_STREAM_LEGACY"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("driver", ""),
        ("driver", USE),
        ("runtime", "module.cudaError_t(2), module.dim3(x=2), module.cudaArray_t(1), module.cudaStreamLegacy"),
        ("nvrtc", "module.nvrtcResult(0)"),
        ("nvjitlink", "module.Result(0), module.nvJitLinkError(1)"),
        ("nvvm", "module.Result(0), module.nvvmError(1)"),
        ("nvfatbin", "module.Result(0), module.nvFatbinError(1)"),
        ("cufile", "module.OpError(0), module.IOVec(2), module.cuFileError(5001)"),
        ("nvml", "module.Return(0), module.ProcessInfo(2), module.NvmlError, module.FieldId.DEV_ECC_CURRENT"),
    ],
)
def test_import_brings_nothing_along(run_python, name, use):
    module = pytest.importorskip(f"cupola.bindings.{name}")
    done = run_python(LOAD.format(name=name, origin=module.__file__, use=use))
    assert done.stdout.splitlines() == ["[]", "[]"], done.stdout + done.stderr


def test_star_import(run_python):
    source = "from cupola.bindings.driver import *\nprint(cuInit.__name__, CUresult(0).name, CUstream(1), CUDA_VERSION)"
    assert run_python(source).stdout.strip() == "cuInit CUDA_SUCCESS <CUstream 0x1> 13050"


def test_a_second_import_is_the_same_library(run_python):
    source = """
import sys
from cupola.bindings import driver
first = driver.CUresult
del sys.modules["cupola.bindings.driver"]
import cupola.bindings.driver as again
print(again.CUresult is first, again.CUstream(1) == driver.CUstream(1))
"""
    assert run_python(source).stdout.strip() == "True True"


@pytest.mark.parametrize(("name", "call"), [("driver", "cuInit(0)"), ("runtime", "cudaGetErrorName(0)")])
def test_the_first_call_makes_all_names(run_python, name, call):
    """CPython does not specialize attributes of a module that has a __getattr__."""
    source = f"""
from cupola.bindings import {name} as module
names, early = module.__all__, module.{"CUresult" if name == "driver" else "cudaError_t"}
print(hasattr(module, "__getattr__"), set(names) <= set(vars(module)))
module.{call}
print(hasattr(module, "__getattr__"), set(names) <= set(vars(module)), module.__all__ == names)
print(getattr(module, early.__name__) is early, set(names) <= set(dir(module)))
module.nothing
"""
    done = run_python(source)
    assert done.stdout.splitlines() == ["True False", "False True True", "True True"], done.stdout + done.stderr
    assert f"AttributeError: module 'cupola.bindings.{name}' has no attribute 'nothing'" in done.stderr
