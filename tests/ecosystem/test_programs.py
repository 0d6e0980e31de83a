"""cuTile, numba, nvmath-python and Triton, unchanged, run programs of their kinds on the CPU device as NumPy would.

These packages come with ``make ecosystem``. PyTorch's and JAX's CUDA builds, gigabytes, run where they are installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cupola.pathfinder._dynamic_libraries import copies_of
from tests import processes

pytestmark = pytest.mark.cpu_only

FOLDER = Path(__file__).parent
MODULES = {
    "triton": "triton",
    "cutile": "cuda.tile",
    "nvmath": "nvmath",
    "nvmath_device": "nvmath",
    "numba": "numba_cuda",
    "nccl4py": "nccl.core",
    "torch": "torch",
    "jax": "jax_cuda13_plugin",
}


INSTALL = {"torch": "pip install torch ninja", "jax": 'pip install "jax[cuda13]"'}
"""How to get what `make ecosystem` leaves out, as it has gigabytes. Some programs need `cupola[nvcc]`, too."""


def names_of(package: str) -> list[str]:
    """The programs, which stand in the order of their functions."""
    text = (FOLDER / f"{package.removesuffix('_mlir')}_programs.py").read_text()
    tuple_of_names = re.search(r"for f in \(([^)]*)\)", text)
    assert tuple_of_names
    return re.findall(r"\w+", tuple_of_names[1])


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it
        return False


def run(package: str, model: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program: a name of the package's, or another script."""
    if not is_installed(MODULES[package]):
        pytest.skip(f"{MODULES[package]} is not installed: {INSTALL.get(package, 'make ecosystem')}")
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "--model", model, *arguments]
    return processes.run(command)


@pytest.mark.parametrize("model", ["a100", "h200"])
@pytest.mark.parametrize("name", names_of("triton"))
def test_triton(model: str, name: str) -> None:
    done = run("triton", model, str(FOLDER / "triton_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


CUTILE = [("h200", name) for name in names_of("cutile")] + [("a100", "matmul"), ("a100", "attention")]


@pytest.mark.parametrize(("model", "name"), CUTILE)
def test_cutile(model: str, name: str) -> None:
    done = run("cutile", model, str(FOLDER / "cutile_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


STEPS = """\
break add_kernel if blockIdx.x == 1 && threadIdx.x == 0
break stepped_{0}.py:{1}
continue
where
clear 1
continue
list {1}
step
p blockIdx.x * 2
clear
continue
"""


@pytest.mark.parametrize(("package", "line"), [("triton", 21), ("cutile", 19)])
def test_stepping_by_lines_of_python(package: str, line: int, tmp_path: Path) -> None:
    """Kernels have the lines of the Python that they are written in, though the PTX in their cubins has none."""
    if not is_installed(MODULES[package]):
        pytest.skip(f"{MODULES[package]} is not installed: make ecosystem")
    script = f"stepped_{package}.py"
    command = [sys.executable, "-m", "cupola", "debug", "--model", "a100", str(FOLDER / script)]
    # Triton's cache goes by the text of a kernel, and has the path that it was compiled under, maybe another clone's.
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    done = processes.run(command, input=STEPS.format(package, line), env=environment)
    lines = done.stdout.replace(f"{FOLDER}{os.sep}", "")
    text = (FOLDER / script).read_text().split("\n")
    launch = next(number for number, line in enumerate(text, 1) if line.startswith(("add_kernel[", "ct.launch")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"launched at {script}:{launch}    {text[launch - 1]}" in lines, lines
    assert f"{script}:{line} in add_kernel, block (" in lines, lines
    assert f"-> {text[line - 1].strip()}" in lines, lines
    assert f"  {line} B-> {text[line - 1]}" in lines, lines
    assert "and 31 more of its warp" in lines, lines


@pytest.mark.parametrize("name", [name for name in names_of("nvmath_device") if name not in ("cholesky", "lu")])
def test_nvmath_device(name: str) -> None:
    if not copies_of("mathdx"):
        pytest.skip('libmathdx is not installed: pip install "nvmath-python[cu13-dx]"')
    done = run("nvmath_device", "h200", str(FOLDER / "nvmath_device_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", names_of("numba"))
def test_numba(name: str) -> None:
    done = run("numba", "h200", str(FOLDER / "numba_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", names_of("torch"))
def test_torch(name: str) -> None:
    done = run("torch", "rtx5090", str(FOLDER / "torch_programs.py"), name)
    if name.startswith("eager"):  # needs a kernel that is machine code only, or cuDNN
        assert done.returncode == 1 and re.search("runs PTX|has NVIDIA's CUDA runtime inside", done.stderr), done.stderr
    else:
        assert done.returncode == 0 and f"{name} agrees" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", names_of("jax"))
def test_jax(name: str) -> None:
    done = run("jax", "rtx5090", str(FOLDER / "jax_programs.py"), name)
    if name == "convolution":
        assert done.returncode and "has NVIDIA's CUDA runtime inside" in done.stderr, done.stderr
    else:
        assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", names_of("nvmath"))
def test_nvmath(name: str) -> None:
    if name == "eight_bits" and is_installed("nvmath") and not is_installed("torch"):
        pytest.skip(f"its tensors are PyTorch's: {INSTALL['torch']}")
    done = run("nvmath", "h200", str(FOLDER / "nvmath_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", names_of("nccl4py"))
def test_nccl4py(name: str) -> None:
    done = run("nccl4py", "h200", "--devices", "3", str(FOLDER / "nccl4py_programs.py"), name)
    assert done.returncode == 0 and f"{name} agrees with NumPy" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "page", "text"),
    [
        ("cutile", "tiles.md", "import cuda.tile"),
        ("triton", "tiles.md", "import triton"),
        ("numba", "kernels-in-python.md", "def saxpy"),
        ("numba", "kernels-in-python.md", "def number"),
        ("jax", "guides/jax.md", "import jax"),
        ("nvmath", "matrix-products.md", "advanced.matmul"),
    ],
)
def test_the_page_has_a_program_that_runs(package: str, page: str, text: str, tmp_path: Path) -> None:
    sources = re.findall(r"^```py\n(.*?)^```$", (FOLDER.parents[1] / "docs" / page).read_text(), re.M | re.S)
    (source,) = (s for s in sources if text in s)
    program = tmp_path / "program.py"
    program.write_text(source)
    done = run(package, "rtx5090" if package == "jax" else "h200", str(program))
    assert done.returncode == 0 and done.stdout == "True\n", done.stdout + done.stderr
