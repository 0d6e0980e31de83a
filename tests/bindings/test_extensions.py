"""Code of others that calls through the tables: the examples in C and Cython, built as a user would build them."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bindgen.libraries import LIBRARIES
from cupola.bindings import driver, get_include
from tests import processes

EXTENSIONS = Path(__file__).resolve().parents[2] / "examples" / "extensions"
KERNEL = r"""
extern "C" __global__ void scale(float* x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
"""


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "") or sysconfig.get_config_var("CC") or "cc")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not shutil.which(command[0]):
        command = ["gcc"]
    missing = None if shutil.which(command[0]) else "a C compiler"
    missing = missing or (None if header.exists() else "Python's headers")
    if missing:
        assert not os.environ.get("CI"), f"CI must have {missing}"
        pytest.skip(f"needs {missing}")
    return command


def cython_source(target: Path) -> Path:
    if not importlib.util.find_spec("Cython"):
        assert not os.environ.get("CI"), "CI must have Cython"
        pytest.skip("needs Cython")
    site = Path(get_include()).parents[2]
    command = [
        sys.executable,
        "-m",
        "cython",
        "-3",
        f"-I{site}",
        str(EXTENSIONS / "scale_cython.pyx"),
        "-o",
        str(target),
    ]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    return target


def build(name: str, folder: Path) -> ModuleType:
    command = compiler()
    source = EXTENSIONS / "scale.c" if name == "scale_c" else cython_source(folder / f"{name}.c")
    target = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{get_include()}"]
    command += ["-O1", "-shared", "-fPIC", *includes, str(source), "-o", str(target)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location(name, target)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["scale_c", "scale_cython"])
def test_an_extension_launches_through_the_table(name, tmp_path, device, stream):
    from cupola import Program, ProgramOptions

    module = build(name, tmp_path)
    code = Program(KERNEL, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
    function = int(driver.cuLibraryGetKernel(int(code.handle), b"scale")[1])
    _, address = driver.cuMemAlloc(4 * 300)
    data = np.arange(300, dtype=np.float32)
    assert driver.cuMemcpyHtoD(address, data, data.nbytes)[0] == 0
    module.scale(function, int(address), 2.5, 300, int(stream.handle))
    back = np.empty_like(data)
    assert driver.cuMemcpyDtoH(back, address, data.nbytes)[0] == 0
    driver.cuMemFree(address)
    np.testing.assert_array_equal(back, data * np.float32(2.5))
    with pytest.raises(RuntimeError, match="the launch failed: CUDA_ERROR_INVALID_"):
        module.scale(function, 0, 1.0, 0, int(stream.handle))  # a grid without blocks


def test_headers_and_declarations_are_in_the_package():
    package = resources.files("cupola.bindings")
    include = package.joinpath("include", "cupola")
    assert {f"{name}.h" for name in (*LIBRARIES, "table")} <= {path.name for path in include.iterdir()}
    assert all(package.joinpath(f"c{name}.pxd").is_file() for name in LIBRARIES)
    assert (Path(get_include()) / "cupola" / "driver.h").is_file()
