"""Make docs/ecosystem.md of what record.py has recorded.

usage: python tools/ecosystem/page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "ecosystem.md"

HEAD = """# Packages above CUDA

Which packages run on the CPU device as they are, and how far. `tools/ecosystem/record.py` runs what this page lists
and records what came of it; `tools/ecosystem/page.py` makes the page of the records. `make ecosystem` runs the programs
as tests.

The commands are run in a clone of this repository. `make ecosystem` installs cuTile, Triton, numba-cuda, nvmath-python
and nccl4py in its `.venv`; the other packages are large, or of use here only to see why they fail:
`pip install "nvmath-python[cu13-dx]"` (functions of `nvmath.device`), `pip install torch ninja`,
`pip install "jax[cuda13]"`, `pip install numba-cuda-mlir`. Programs of PyTorch and JAX that build extensions need
`cupola[nvcc]`, and the numbers of eight bits of nvmath-python need PyTorch.

**Other versions** may do as well. When a program imports one that is not in the table, the `cupola` logger says so,
once; `cupola doctor` lists the packages that are installed.

| package | version | run | passed | failed | skipped |
|---|---|---|---|---|---|
"""


TAIL = """PyTorch's wheels have no PTX for their own kernels: 2.9, 2.11, 2.12, 2.14 and 2.15 have machine code only, for
compute capability up to 12.0. The `cupola` logger says so at the first such kernel. What PyTorch compiles
itself runs (`torch.compile` with Triton, `jiterator` and special functions with NVRTC), and so do copies, streams,
products (cuBLAS, cuBLASLt), Fourier transforms, `torch.distributed` with NCCL, and extensions that
`torch.utils.cpp_extension` builds with PTX (`TORCH_CUDA_ARCH_LIST="12.0+PTX"`); they are linked with the shared
runtime. JAX compiles all its kernels, whose PTX is kept (`--xla_gpu_generate_line_info`, which `cupola run` sets in
`XLA_FLAGS`), and foreign functions of `jax.ffi` are built by `cupola nvcc -shared`.

[Tiles in Python](tiles.md) is about cuTile and Triton, [Kernels in Python](kernels-in-python.md) about numba;
[Coming from CUDA Python](migrate.md#numba) says more about numba-cuda's tests, and
[CUDA C++ programs](cuda-programs.md) says what of nvcc's programs runs. Packages with NVIDIA's runtime inside, such as
CuPy and Warp, need a GPU: the `cupola` logger and `cupola doctor` say so. For CuPy there is
[a stand-in](coming-from-cupy.md), with which its programs run."""


def render(runs: list[dict[str, Any]]) -> str:
    """The page of these runs, with the reason for each class of failures."""
    rows = [
        f"| {r['package']} | {r['version']} | `{r['command']}` | {r['passed']} | {r['failed']} | {r['skipped']} |"
        for r in runs
    ]
    parts = [HEAD + "\n".join(rows), "## What was run"]
    parts.append(
        "\n".join(
            f"- **{package}**: {what}." for package, what in dict.fromkeys((r["package"], r["what"]) for r in runs)
        )
    )
    why = []
    for run in runs:
        model = f", `{run['command'].split('--model ')[1].split()[0]}`" if "--model" in run["command"] else ""
        for reason, names in run["reasons"].items():
            what = ", ".join(f"`{name}`" for name in names)
            why.append(f"| {run['package']}{model} | {what} | {reason} |")
    if why:
        parts += ["## What fails, and why", "\n".join(["| package | what | reason |", "|---|---|---|", *why])]
    parts.append(TAIL)
    return "\n\n".join(parts) + "\n"


def records() -> list[dict[str, Any]]:
    return [run for file in sorted((HERE / "records").glob("*.json")) for run in json.loads(file.read_text())]


if __name__ == "__main__":
    PAGE.write_text(render(records()))
