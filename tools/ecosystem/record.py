"""Run programs and tests of packages above CUDA on the CPU device, and record what came of each.

Writes tools/ecosystem/records/<package>.json; page.py makes docs/ecosystem.md of them. The packages are those of
``make ecosystem``. More is needed for numba's tests (``filecheck``, ``cffi``, half an hour), ``nvmath_device``
(``nvmath-python[cu13-dx]``), ``numba_mlir`` (``numba-cuda-mlir``),
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
from importlib.metadata import distribution as distribution_of
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).parent / "records"
sys.path.insert(0, str(ROOT))

NUMBA_TESTS = "numba.cuda.tests"
NUMBA_EXCLUDED = {
    "cudadrv.test_managed_alloc.TestManagedAlloc.test_managed_alloc_driver_undersubscribe": (
        "it fills half of the device's memory, 70 GB of the host's"
    ),
}
"""Tests that are not run, and why."""
NUMBA_LONGEST = 1800  # seconds of a module

PRIVATE = "a first operation, which says why it fails"
SAMPLES = "programs of the kinds of its samples, written for cupola, each compared with NumPy"
NVMATH = (
    "programs written for cupola, each compared with NumPy: products with epilogs, products of numbers of eight bits "
    "(with tensors of PyTorch), structured matrices, direct solvers, Fourier transforms with callbacks, sparse "
    "products, sparse direct solvers and batches of them. Its tensors need cuTENSOR, which the CPU device does not have"
)

NVMATH_DEVICE = (
    "programs whose kernels, in numba-cuda, call functions of nvmath.device, compared with NumPy: Fourier transforms, "
    "products, solvers and random numbers"
)

# Why something fails: what its output contains, and the reason as the page gives it.
REASONS = (
    (
        "hidden parameters",
        "the kernel's tensor maps are made by NVIDIA's driver at each launch, by host code inside the cubin: "
        "use the model `a100`, or `allow_tma=False`",
    ),
    (
        "runs PTX, for it",
        "PyTorch's own kernels are machine code only in its wheels, without PTX; those that `torch.compile` makes run",
    ),
    (
        "Untyped global name 'uniform'",
        "numba-cuda-mlir 0.6 leaves the functions of its `random` plain Python, so no kernel can call them",
    ),
    ("target_shared_assign", "numba and numba-cuda do not share a file of their caches"),
    ("AssertionError: 0 != 1 : Counter()", "numba and numba-cuda do not share a file of their caches"),
    (
        "tensormap.replace",
        "the test changes a tensor map in shared memory that its kernel does not have, which a GPU may not notice",
    ),
    ("out-of-bounds read", "the test reads beyond its array, which a GPU may not notice"),
    ("out-of-bounds write", "the test writes beyond its array, which a GPU may not notice"),
    ("CUDNN_STATUS_NOT_INITIALIZED", "it needs cuDNN, which has NVIDIA's runtime inside; that works on GPUs only"),
    ("has NVIDIA's CUDA runtime inside", "NVIDIA's runtime is inside the package; that works on GPUs only"),
)


FAILURE = re.compile(r"^(?:FAIL|ERROR): (\w+) (?:\(([\w.]+)\))?.*\n-+\n((?:(?!={70}).*\n)*?)(?======|-----)", re.M)
"""In the output of unittest: a test's name, its place, and its traceback."""


def reason_for(output: str) -> str:
    for text, reason in REASONS:
        if text in output:
            return reason
    lines = output.strip().splitlines()
    return lines[-1][:200] if lines else "no output"


def cupola_run(model: str, *arguments: str, longest: float | None = None) -> tuple[int, str]:
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "--model", model, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ), check=False, timeout=longest
        )
    except subprocess.TimeoutExpired as error:
        return 1, f"{error.output or ''}\nit takes longer than {longest} s"
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
    """All modules of its tests, a process for each, as a kernel's error stays with its context.

    A test that fails is run once more in a process of its own: behind a test that ends the context all others fail.
    """
    counts: Counter[str] = Counter()
    reasons: dict[str, list[str]] = {}
    modules = numba_modules()
    for module in modules:
        ran, skipped, failures = numba_run(module)
        for name, place, why in failures:
            alone = numba_run(place)[2] if place else [(name, place, why)]
            for _, _, still in alone:
                reasons.setdefault(still, []).append(name)
            ran, counts["failed"] = ran - bool(alone), counts["failed"] + bool(alone)
        counts.update(passed=ran - skipped, skipped=skipped)
        print(module, ran, "ran", skipped, "skipped", [name for name, _, _ in failures], flush=True)
    for name, why in NUMBA_EXCLUDED.items():
        counts["skipped"] += 1
        reasons.setdefault(f"not run: {why}", []).append(name.rpartition(".")[2])
    what = (
        f"all {len(modules)} modules of its own tests, each in a process of its own, and each test that failed once "
        "more in one of its own; passed are also tests that are expected to fail and do"
    )
    command = f"cupola run --device cpu --model h200 -m numba.runtests -v {NUMBA_TESTS}.MODULE"
    return [row(distribution, command, what, counts, reasons)]


def numba_modules() -> list[str]:
    folder = Path(str(distribution_of("numba-cuda").locate_file("numba_cuda/numba/cuda/tests")))
    return sorted(".".join(file.relative_to(folder).with_suffix("").parts) for file in folder.glob("*/test_*.py"))


def numba_run(place: str) -> tuple[int, int, list[tuple[str, str, str]]]:
    """Run a module or a test: how many ran and were skipped, and name, place and reason of each that failed."""
    places = [place]
    if any(name.startswith(f"{place}.") for name in NUMBA_EXCLUDED):
        listed = cupola_run("h200", "-m", "numba.runtests", "-l", f"{NUMBA_TESTS}.{place}")[1]
        found = re.findall(rf"^{re.escape(NUMBA_TESTS)}\.(\S+)$", listed, re.M)
        places = [name for name in found if name not in NUMBA_EXCLUDED]
    arguments = ("-m", "numba.runtests", "-v", *(f"{NUMBA_TESTS}.{name}" for name in places))
    _, output = cupola_run("h200", *arguments, longest=NUMBA_LONGEST)
    ran = re.search(r"^Ran (\d+) tests?", output, re.M)
    if not ran:
        return numba_pytest(place)
    summary = re.findall(r"(skipped)=(\d+)", output.splitlines()[-1])
    skipped = sum(int(number) for _, number in summary)
    failures = []
    for name, where, traceback in FAILURE.findall(output):
        why = reason_for(traceback)
        if why.startswith("Skipped: "):  # a whole module, which unittest counts as an error
            skipped += 1
        else:
            failures.append((name, where.removeprefix(f"{NUMBA_TESTS}."), why))
    return int(ran[1]), skipped, failures


def numba_pytest(module: str) -> tuple[int, int, list[tuple[str, str, str]]]:
    """Run a module whose tests are functions of pytest, as `numba_run` does the others."""
    options = ("-q", "-rfE", "-p", "no:cacheprovider", "--import-mode=importlib", "--pyargs")
    arguments = ("-m", "pytest", *options, f"{NUMBA_TESTS}.{module}")
    _, output = cupola_run("h200", *arguments, longest=NUMBA_LONGEST)
    counts = Counter({name: int(n) for n, name in re.findall(r"(\d+) (passed|failed|skipped|error)", output)})
    failed = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)(?: - (.*))?$", output, re.M)
    if not counts.total() or counts["error"] > len(failed):  # not even collected
        return 1, 0, [(module, "", reason_for(output))]
    return counts.total(), counts["skipped"], [(name, "", reason_for(why)) for name, why in failed]


def row(
    distribution: str, command: str, what: str, counts: Counter[str], reasons: dict[str, list[str]]
) -> dict[str, Any]:
    numbers = {name: counts[name] for name in ("passed", "failed", "skipped")}
    return {"package": distribution, "version": version(distribution), "command": command, "what": what} | {
        **numbers,
        "reasons": {reason: sorted(names) for reason, names in sorted(reasons.items())},
    }


PACKAGES = {
    "cutile": lambda: programs("cutile", "cuda-tile", ("a100", "h200", "rtx5090"), SAMPLES),
    "nvmath": lambda: programs("nvmath", "nvmath-python", ("h200",), NVMATH),
    "nccl4py": lambda: programs("nccl4py", "nccl4py", ("h200",), SAMPLES),
    "triton": lambda: programs("triton", "triton", ("a100", "h200"), SAMPLES),
    "numba": lambda: [*programs("numba", "numba-cuda", ("h200",), SAMPLES), *numba_tests("numba-cuda")],
    "nvmath_device": lambda: programs("nvmath_device", "nvmath-python", ("h200",), NVMATH_DEVICE),
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
