"""Runs a program on several ranks, with the MPI that is installed beside this Python or on the machine."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import processes

pytest.importorskip("mpi4py", reason="needs mpi4py: pip install cupola[test]")


def files_of_mpich(name: str) -> list[Path]:
    try:
        found = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())).resolve() for file in found if file.name == name]


def command_and_environment(ranks: int, **variables: str) -> tuple[list[str], dict[str, str]]:
    """What stands before a program that is to run on `ranks` ranks."""
    beside = [str(path) for path in files_of_mpich("mpiexec")]
    command = beside[0] if beside else shutil.which("mpiexec")
    if command is None:
        pytest.skip("there is no mpiexec: pip install mpich")
    environment = {**os.environ, **variables}
    if libraries := files_of_mpich("libmpi.so.12"):
        environment.setdefault("MPI4PY_LIBMPI", str(libraries[0]))
    # Open MPI asks whether it may have more ranks than cores, and may be run by root, as in containers.
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    # OpenBLAS and the CPU device have threads of their own: few cores have to do for all ranks.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.environ.get("CUPOLA_DEVICE") != "gpu":
        environment["CUPOLA_DEVICE"] = "cpu"
    return [command, "-n", str(ranks)], environment


def mpiexec(ranks: int, arguments: Sequence[object], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program on `ranks` ranks."""
    command, environment = command_and_environment(ranks, **variables)
    whole = [*command, sys.executable, *map(str, arguments)]
    return processes.run(whole, env=environment)
