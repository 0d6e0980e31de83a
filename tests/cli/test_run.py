"""``cupola run``: programs that import CUDA Python, in processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes

SAXPY = """
import sys
import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
source = "extern \\"C\\" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }"
code = Program(source, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
buffer = LegacyPinnedMemoryResource().allocate(4 * 32)
values = np.from_dlpack(buffer).view(np.float32)
values[:] = np.arange(32)
launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("scale"), buffer, np.float32(sys.argv[1]))
stream.sync()
print(values.sum())
"""

# Imports as programs write them -> what must be true then.
IMPORTS = {
    "import cuda.core, cupola": "cuda.core.Device is cupola.Device and cuda.core.__version__ == '1.2.2'",
    "from cuda import core; import cupola": "core.launch is cupola.launch and 'Stream' in dir(core)",
    # As nvmath-python tells packages apart.
    "import cuda.core, cupola; S = cupola.Stream": "S is cuda.core.Stream and S.__module__ == 'cuda.core'",
    "from cuda.core.utils import StridedMemoryView as V; import cupola.utils": "V is cupola.utils.StridedMemoryView",
    "from cuda.core.graph import GraphBuilder as G; import cupola.graph": "G is cupola.graph.GraphBuilder",
    "import cuda.core.typing as t, cupola.typing": "t is cupola.typing",
    "from cuda.core._utils.cuda_utils import CUDAError as E; import cupola": "E is cupola.CUDAError",
    "from cuda.core._utils.cuda_utils import handle_return": "callable(handle_return)",
    "import cuda.bindings": "int(cuda.bindings.__version__.split('.')[0]) >= 13",
    "from cuda.bindings import driver as d; import cupola.bindings.driver": "d is cupola.bindings.driver",
    "import cuda.bindings.nvrtc as n; import cupola.bindings.nvrtc": "n is cupola.bindings.nvrtc",
    "from cuda import cuda as d; import cupola.bindings.driver": "d is cupola.bindings.driver",
    "from cuda.core.experimental import Device as D; import cupola": "D is cupola.Device",
    "import cuda.core.experimental.utils as u; import cupola.utils": "u is cupola.utils",
    "from cuda.pathfinder import load_nvidia_dynamic_lib as f; import cupola.pathfinder": (
        "f is cupola.pathfinder.load_nvidia_dynamic_lib"
    ),
    "import cuda.bindings, importlib.util as u": "u.find_spec('cuda.bindings').name == 'cuda.bindings'",
    "from cuda.bindings._internal import nvvm": (
        "nvvm._inspect_function_pointer('__nvvmVersion') and not nvvm._inspect_function_pointer('__nvvmNothing')"
    ),
    "from cuda.bindings._internal import nvjitlink": "nvjitlink._inspect_function_pointer('__nvJitLinkVersion')",
    "from cuda.bindings._internal.utils import NotSupportedError as E": "issubclass(E, RuntimeError)",
    "from cuda.bindings._internal import _fast_enum as f; from cuda.bindings import runtime as r": (
        "isinstance(r.cudaError_t(1), f.FastEnum) and isinstance(r.cudaError_t, f.FastEnumMetaclass)"
        " and not isinstance(1, f.FastEnum) and not issubclass(type, f.FastEnumMetaclass)"
    ),
    "import cupola": "cupola.__spec__.name == 'cupola' and cupola.__version__ != '1.2.2'",
}


def run(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cupola", "run", *arguments]
    return processes.run(command, cwd=cwd, env={**os.environ, **environment})


@pytest.fixture
def script(tmp_path):
    def write(source: str, name: str = "script.py") -> str:
        path = tmp_path / name
        path.write_text(source)
        return str(path)

    return write


def test_a_program_runs_unchanged(script):
    done = run(script(SAXPY), "2")
    assert (done.returncode, done.stdout) == (0, f"{2.0 * sum(range(32))}\n"), done.stderr


def test_every_way_to_import(script):
    checks = "".join(f"{text}\nassert {truth}, {text!r}\n" for text, truth in IMPORTS.items())
    done = run(script(checks + "print('imported')"))
    assert done.stdout == "imported\n", done.stderr


def test_older_names_warn_where_they_are_imported(script):
    path = script("\nfrom cuda import cuda\n")
    done = run(path, PYTHONWARNINGS="always")
    assert f"{path}:2: DeprecationWarning: cuda.cuda is now cuda.bindings.driver" in done.stderr


def test_what_a_script_sees(script, tmp_path):
    script("value = 3", "beside.py")
    path = script("import sys, beside; print(__name__, __file__, sys.argv[1:], beside.value)")
    assert run(path, "-m", "--device", cwd=Path("/")).stdout == f"__main__ {path} ['-m', '--device'] 3\n"


def test_a_module(script, tmp_path):
    script("import sys, cuda.core; print(__name__, sys.argv[1:], cuda.core.Device.__module__)", "program.py")
    done = run("-m", "program", "--flag", cwd=tmp_path)
    assert done.stdout == "__main__ ['--flag'] cupola.core.device._device\n", done.stderr


def test_spawned_processes_have_the_names_too(script):
    path = script("""
import multiprocessing
from cuda.core import Device

def work(queue):
    import cuda.bindings.driver
    queue.put((Device.__module__, cuda.bindings.driver.__name__))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(*queue.get())
    process.join()
""")
    done = run(path)
    assert done.stdout == "cupola.core.device._device cupola.bindings.driver\n", done.stderr


def test_python_programs_that_it_starts_have_the_names_too(script):
    path = script("""
import subprocess, sys
program = "from cuda.core import Device; import ctypes; print(Device.__module__, ctypes.CDLL('libcuda.so.1').cuInit(0))"
print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout, end="")
""")
    folders = os.pathsep.join(["somewhere", *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("--device", "cpu", path, PYTHONPATH=folders)
    assert done.stdout == "cupola.core.device._device 0\n", done.stderr
    printed = script("import os; print(os.environ['PYTHONPATH'])")
    assert run(printed, PYTHONPATH=folders).stdout.strip().endswith(f"_alias_packages{os.pathsep}{folders}")


@pytest.mark.parametrize("source, status, message", [
    ("import sys; sys.exit(7)", 7, ""),
    ("raise SystemExit('enough')", 1, "enough\n"),
    ("1 / 0", 1, 'Traceback (most recent call last):\n  File "{path}", line 1, in <module>'),
    ("1 +", 1, "SyntaxError: invalid syntax"),
    ("import cuda.core.nonsense", 1, "cupola has no cupola.nonsense, so it has no cuda.core.nonsense"),
    ("from cuda.core import nonsense", 1, "cannot import name 'nonsense' from 'cuda.core'"),
    ("import cuda.core; cuda.core.nonsense", 1, "module 'cuda.core' has no attribute 'nonsense': it is cupola"),
    ("import cuda.tile_of_nobody", 1, "No module named 'cuda.tile_of_nobody'"),
])  # fmt: skip
def test_how_programs_end(source, status, message, script):
    path = script(source)
    done = run(path)
    assert done.returncode == status, done.stderr
    assert message.format(path=path) in done.stderr if message else done.stderr == ""


@pytest.mark.parametrize("arguments, status, message", [
    ([], 2, "name a script"),
    (["/nowhere/script.py"], 1, "cannot read /nowhere/script.py: No such file"),
    (["/"], 1, "is a folder"),
    (["-m", "no_such_module"], 1, "cupola: no module named no_such_module"),
    (["-m", "json.no_such_module"], 1, "cupola: no module named json.no_such_module"),
    (["--device", "tpu", "x.py"], 2, "invalid choice: 'tpu'"),
    (["--device", "gpu", "--model", "t4", "x.py"], 2, "for the CPU device only"),
    (["--model", "abacus", "x.py"], 2, "model must be one of"),
])  # fmt: skip
def test_wrong_arguments(arguments, status, message):
    done = run(*arguments)
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (status, True, False), done.stderr


def test_the_cpu_device_as_asked_for(script):
    path = script("from cuda.core import Device; print([d.arch for d in Device.get_all_devices()])")
    done = run("--device", "cpu", "--model", "t4", "--devices", "2", path)
    assert done.stdout == "['75', '75']\n", done.stderr


def test_too_late(run_python):
    done = run_python("""
import sys, types
sys.modules["cuda.core"] = types.ModuleType("cuda.core")
from cupola import _aliases
_aliases.install()
""")
    assert "cuda.core is imported already" in done.stderr


def test_where_a_program_looks_for_libraries_itself(script):
    """As tinygrad does; what a process of another language would be started with."""
    path = script("""
import ctypes.util, os
from cupola.cpu import programs
expected = programs.environment()
print(*sorted(name for name in expected if os.environ.get(name) != expected[name]))
print(os.environ["LD_LIBRARY_PATH"].split(os.pathsep)[0] == programs.library_folder())
""")
    done = run("--device", "cpu", path, LD_LIBRARY_PATH="/somewhere")
    assert done.stdout == "\nTrue\n", done.stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="ctypes.util.find_library asks gcc or ld")
def test_ctypes_finds_the_driver(script):
    path = script("import ctypes, ctypes.util as u; print(ctypes.CDLL(u.find_library('cuda')).cuInit(0))")
    done = run("--device", "cpu", path)
    assert done.stdout == "0\n", done.stderr


@pytest.fixture
def python_without_cupola() -> None:
    """That `python -S` is one, unless cupola is found by PYTHONPATH."""
    if processes.run([sys.executable, "-S", "-c", "import cupola"]).returncode == 0:
        pytest.skip("cupola is on PYTHONPATH, which python -S has, too")


@pytest.mark.usefixtures("python_without_cupola")
@pytest.mark.parametrize("name", ["cuda.core", "cuda.bindings.driver", "cuda.pathfinder", "cupy", "cupyx"])
def test_a_python_without_cupola_that_a_program_starts(script, name):
    """Of another version, say, or of another environment: here one that has no folder of packages."""
    path = script(f"""
import subprocess, sys
raise SystemExit(subprocess.run([sys.executable, "-S", "-c", "import {name}"]).returncode)
""")
    done = run("--device", "cpu", path)
    assert done.returncode == 1
    assert f"{sys.executable} (Python " in done.stderr and ") has no cupola: install it there" in done.stderr


@pytest.mark.usefixtures("python_without_cupola")
def test_a_python_without_cupola_that_calls_the_driver(script):
    path = script("import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))")
    done = run("--device", "cpu", sys.executable, "-S", path)
    assert done.stdout == "3\n", done.stderr
    assert f"{sys.executable} (Python " in done.stderr and ") has no cupola: install it there" in done.stderr
    assert "No module" not in done.stderr


@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_no_device_is_chosen_before_the_program_begins(script, device):
    """It may fork before, or choose by itself."""
    path = script("from cupola.bindings import _provider; print(_provider.current())")
    done = run(path, CUPOLA_DEVICE=device)
    assert done.stdout == "None\n", done.stderr
