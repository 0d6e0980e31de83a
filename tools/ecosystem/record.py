"""Run programs and tests of packages above CUDA on the CPU device, and record what came of each.

Writes tools/ecosystem/records/<package>.json; page.py makes docs/ecosystem.md of them. The packages are those of
``make ecosystem``. More is needed for numba's tests (``filecheck``, ``cffi``), ``numba_mlir`` (``numba-cuda-mlir``),
``jax`` (``jax[cuda13]``, nvcc), ``torch`` (PyTorch's CUDA build, 3 GB with its libraries, nvcc of the same CUDA,
``ninja``), ``cupy`` (``cupy-cuda13x``) and ``warp`` (``warp-lang``).

usage: python tools/ecosystem/record.py [PACKAGE ...]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).parent / "records"
sys.path.insert(0, str(ROOT))

NUMBA_MODULES = (
    "test_array", "test_device_func", "test_laplace", "test_reduction", "test_sync", "test_transpose",
    "test_warp_ops",
)  # fmt: skip
"""A selection of its 2,042 tests that takes a minute: docs/migrate.md has all of them."""

PRIVATE = "a first operation, which says why it fails"
SAMPLES = "programs of the kinds of its samples, written for cupola, each compared with NumPy"
NVMATH = (
    "programs written for cupola, each compared with NumPy: products with epilogs, products of numbers of eight bits "
    "(with tensors of PyTorch), structured matrices, direct solvers, Fourier transforms with callbacks, sparse "
    "products, sparse direct solvers and batches of them. Its tensors need cuTENSOR, which the CPU device does not have"
)

# Why something fails: what its output contains, and the reason as the page gives it.
REASONS = (
    (
        "hidden parameters",
        "the kernel's tensor maps are made by NVIDIA's driver at each launch, by host code inside the cubin: "
        "use the model `a100`, or `allow_tma=False`",
    ),
    (
        "code=compute_XX as well",
        "PyTorch's own kernels are machine code only in its wheels, without PTX; those that `torch.compile` makes run",
    ),
    (
        "Untyped global name 'uniform'",
        "numba-cuda-mlir 0.6 leaves the functions of its `random` plain Python, so no kernel can call them",
    ),
    ("CUDNN_STATUS_NOT_INITIALIZED", "it needs cuDNN, which has NVIDIA's runtime inside; that works on GPUs only"),
    ("has NVIDIA's CUDA runtime inside", "NVIDIA's runtime is inside the package; that works on GPUs only"),
)


FAILURE = re.compile(r"^(?:FAIL|ERROR): (\w+) .*?\n-+\n(?:.*\n)*?(\w+(?:\.\w+)*: .*|\w+Error)$", re.M)
"""In the output of unittest: a test's name, and the last line of its traceback."""


def reason_for(output: str) -> str:
    for text, reason in REASONS:
        if text in output:
            return reason
    lines = output.strip().splitlines()
    return lines[-1][:200] if lines else "no output"


def cupola_run(model: str, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "--model", model, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ), check=False)
    return done.returncode, done.stdout + done.stderr


def programs(package: str, distribution: str, models: tuple[str, ...], what: str) -> list[dict[str, Any]]:
    """Each program in a process of its own, on each of the models."""
    from tests.ecosystem.test_programs import names_of

    # CuPy itself; and ranks for NCCL
    options = {"cupy": ["--no-cupy"], "nccl4py": ["--devices", "3"]}.get(package, [])
    runs = []
    for model in models:
        counts: Counter[str] = Counter()
        reasons: dict[str, list[str]] = {}
        for name in names_of(package):
            status, output = cupola_run(model, *options, f"tests/ecosystem/{package}_programs.py", name)
            counts["passed" if status == 0 else "failed"] += 1
            if status:
                reasons.setdefault(reason_for(output), []).append(name)
        words = " ".join([model, *options])
        command = f"cupola run --device cpu --model {words} tests/ecosystem/{package}_programs.py NAME"
        runs.append(row(distribution, command, what, counts, reasons))
    return runs


def numba_tests(distribution: str) -> list[dict[str, Any]]:
    """A process for each module of tests, as a kernel's error stays with its context."""
    counts: Counter[str] = Counter()
    reasons: dict[str, list[str]] = {}
    for module in NUMBA_MODULES:
        _, output = cupola_run("h200", "-m", "numba.runtests", "-v", f"numba.cuda.tests.cudapy.{module}")
        ran = re.search(r"^Ran (\d+) tests?", output, re.M)
        if not ran:
            counts["failed"] += 1
            reasons.setdefault(reason_for(output), []).append(module)
            continue
        summary = re.findall(r"(failures|errors|skipped|expected failures)=(\d+)", output.splitlines()[-1])
        found = {name: int(number) for name, number in summary}
        failed = found.get("failures", 0) + found.get("errors", 0)
        skipped = found.get("skipped", 0)
        for name, why in FAILURE.findall(output):
            if why.startswith("Skipped: "):  # a whole module, which unittest counts as an error
                failed, skipped = failed - 1, skipped + 1
            else:
                reasons.setdefault(why[:200], []).append(name)
        counts.update(passed=int(ran[1]) - failed - skipped, failed=failed, skipped=skipped)
    names = ", ".join(module.removeprefix("test_") for module in NUMBA_MODULES)
    what = f"{len(NUMBA_MODULES)} modules of its own tests: {names}"
    command = "cupola run --device cpu -m numba.runtests numba.cuda.tests.cudapy.MODULE"
    return [row(distribution, command, what, counts, reasons)]


def row(
    distribution: str, command: str, what: str, counts: Counter[str], reasons: dict[str, list[str]]
) -> dict[str, Any]:
    numbers = {name: counts[name] for name in ("passed", "failed", "skipped")}
    return {"package": distribution, "version": version(distribution), "command": command, "what": what} | {
        **numbers,
        "reasons": {reason: sorted(names) for reason, names in sorted(reasons.items())},
    }


PACKAGES = {
    "cutile": lambda: programs("cutile", "cuda-tile", ("a100", "h200"), SAMPLES),
    "nvmath": lambda: programs("nvmath", "nvmath-python", ("h200",), NVMATH),
    "nccl4py": lambda: programs("nccl4py", "nccl4py", ("h200",), SAMPLES),
    "triton": lambda: programs("triton", "triton", ("a100", "h200"), SAMPLES),
    "numba": lambda: [*programs("numba", "numba-cuda", ("h200",), SAMPLES), *numba_tests("numba-cuda")],
    "numba_mlir": lambda: programs("numba_mlir", "numba-cuda-mlir", ("h200",), SAMPLES),
    "jax": lambda: programs("jax", "jax", ("rtx5090",), SAMPLES),
    "torch": lambda: programs("torch", "torch", ("rtx5090",), SAMPLES.replace("NumPy", "PyTorch on the host")),
    "cupy": lambda: programs("cupy", "cupy-cuda13x", ("h200",), PRIVATE),
    "warp": lambda: programs("warp", "warp-lang", ("h200",), PRIVATE),
}


def main() -> None:
    for name in sys.argv[1:] or PACKAGES:
        runs = PACKAGES[name]()
        RECORDS.mkdir(exist_ok=True)
        (RECORDS / f"{name}.json").write_text(json.dumps(runs, indent=2) + "\n")
        for run in runs:
            print(run["package"], run["passed"], "passed", run["failed"], "failed", run["skipped"], "skipped")


if __name__ == "__main__":
    main()
