"""The programs of the pages about many devices and many processes, as several processes or on several devices."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.conftest import on_cpu_device

pytestmark = [pytest.mark.unchecked(reason="other processes run the kernels"), pytest.mark.timeout(300)]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, language: str, begins: str = "") -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.M | re.S)
    return [block for block in found if block.startswith(begins)]


def run(program: Path, text: str, devices: int) -> str:
    program.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        if on_cpu_device():
            patch.setenv("CUPOLA_CPU_DEVICES", str(devices))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("NCCL_NVLS_ENABLE", "0")
        done = processes.run([sys.executable, program])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_many_machines_on_three_ranks(tmp_path):
    pytest.importorskip("mpi4py", reason="needs mpi4py: pip install cupola[test]")
    from tests.mpi.mpiexec import mpiexec

    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks("many-machines.md", "python")))
    done = mpiexec(3, ["-m", "mpi4py", program])
    assert (done.returncode, done.stderr) == (0, "")


def test_many_devices_with_four(tmp_path):
    printed = run(tmp_path / "program.py", "\n".join(blocks("many-devices.md", "python")), 4)
    if on_cpu_device():
        assert [line.split()[0] for line in printed.splitlines()] == list("0123")


def test_actors_of_ray(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed")
    whole, transport = blocks("ray.md", "text")
    imports = "".join(re.findall(r"^import .*\n", whole, re.M))
    for number, text in enumerate((whole, imports + "cupola.ray.init()\n" + transport)):
        assert "499999500000.0" in run(tmp_path / f"program{number}.py", text, 2)


def test_a_cluster_of_dask(tmp_path):
    """With an array that fits everywhere."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    (text,) = blocks("dask.md", "text", "if __name__")
    sizes = {"200_000, 100_000": "200, 100", "5_000, 10_000": "50, 100"}
    assert all(size in text for size in sizes)
    for large, small in sizes.items():
        text = text.replace(large, small)
    imports = "import dask.array as da\nimport distributed\nimport cupola.dask\n"
    *kind, deviation = run(tmp_path / "program.py", imports + text, 2).split()
    assert " ".join(kind) == "<class 'cupola.numpy._ndarray.ndarray'>"
    assert 0.28 < float(deviation) < 0.30  # of even numbers between 0 and 1
