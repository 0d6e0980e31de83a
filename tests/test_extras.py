"""What is built on packages that are not installed with cupola says which to install."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="arrays need NumPy")

# The package that is missing -> what is then tried.
USES = {
    "mpi4py": "import cupola.mpi",
    "dask": "import cupola.dask",
    "distributed": "import cupola.dask; cupola.dask.local_cluster",
    "ray": "import cupola.ray",
}
PROGRAM = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
missing, said = {}, {}
for package, statement in uses.items():
    missing = {package}
    try:
        exec(statement)
    except ImportError as error:
        said[package] = str(error)
print(json.dumps(said))
"""


def test_a_missing_package_is_named(run_python):
    done = run_python(f"uses = {USES!r}\n{PROGRAM}")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for package in USES:
        extra = {"mpi4py": "mpi", "distributed": "dask"}.get(package, package)
        assert f'pip install "cupola[{extra}]"' in said.get(package, ""), (package, said)


def test_the_extras_have_what_is_used():
    project = Path(__file__).resolve().parents[1] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    wanted = {
        "mpi": {"mpi4py"},
        "nccl": {"nccl4py", "nvidia-nccl-cu13"},
        "dask": {"dask", "distributed"},
        "ray": {"ray"},
    }
    for extra, packages in wanted.items():
        named = {line.split(">")[0].split("=")[0].split(";")[0].strip() for line in extras[extra]}
        assert packages <= named, (extra, named)
