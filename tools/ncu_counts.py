"""What the CPU device counts of kernels (`cupola profile`), compared with what Nsight Compute counts on a GPU.

    python tools/ncu_counts.py record FILE.json     on a GPU, with ncu and permission to read its counters
    python tools/ncu_counts.py compare FILE.json    on the CPU device: a table of what differs

The kernels are one access each, so that a count tells what the access costs.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
THREADS = 64

# Type, index for thread t (of 64), and which threads take part.
GLOBAL = [
    ("int", "t", "true"), ("int", "t + 1", "true"), ("int", "t + 8", "true"), ("int", "2 * t", "true"),
    ("int", "3 * t + 1", "true"), ("int", "8 * t", "true"), ("int", "32 * t", "true"), ("int", "0", "true"),
    ("int", "t / 4", "true"), ("int", "63 - t", "true"), ("int", "t * 7 % 64", "true"), ("int", "t ^ 5", "true"),
    ("int", "t", "t % 2"), ("int", "t", "t < 5"), ("int", "8 * t", "t % 32 < 16"), ("int", "t", "t > 40"),
    ("unsigned char", "t", "true"), ("unsigned char", "3 * t", "true"), ("unsigned char", "40 * t", "true"),
    ("short", "t", "true"), ("short", "2 * t + 1", "true"), ("short", "16 * t", "t % 3 == 0"),
    ("double", "t", "true"), ("double", "t + 1", "true"), ("double", "3 * t", "true"), ("double", "t / 2", "true"),
    ("double", "4 * t", "t % 2"), ("double", "0", "true"),
    ("int4", "t", "true"), ("int4", "t + 1", "true"), ("int4", "2 * t", "true"), ("int4", "t / 4", "true"),
    ("int4", "0", "true"), ("int4", "t * 7 % 64", "true"), ("int4", "t", "t % 2"),
]  # fmt: skip
SHARED = [
    ("int", "t", "true"), ("int", "2 * t", "true"), ("int", "3 * t", "true"), ("int", "4 * t", "true"),
    ("int", "8 * t", "true"), ("int", "32 * t", "true"), ("int", "33 * t", "true"), ("int", "0", "true"),
    ("int", "t / 2", "true"), ("int", "t ^ 5", "true"), ("int", "t * t % 64", "true"), ("int", "32 * t", "t % 2"),
    ("int", "32 * t", "t < 8"), ("int", "2 * t", "t % 32 < 16"),
    ("unsigned char", "t", "true"), ("unsigned char", "4 * t", "true"), ("unsigned char", "128 * t", "true"),
    ("short", "t", "true"), ("short", "2 * t", "true"), ("short", "64 * t", "t % 2"),
    ("double", "t", "true"), ("double", "2 * t", "true"), ("double", "3 * t", "true"), ("double", "16 * t", "true"),
    ("double", "0", "true"), ("double", "t / 2", "true"), ("double", "t", "t % 2"), ("double", "17 * t", "t % 32 < 16"),
    ("int4", "t", "true"), ("int4", "2 * t", "true"), ("int4", "3 * t", "true"), ("int4", "8 * t", "true"),
    ("int4", "0", "true"), ("int4", "t / 2", "true"), ("int4", "t", "t % 2"), ("int4", "t", "t % 32 < 8"),
]  # fmt: skip
ATOMIC = ["0", "t", "t % 4", "t / 8", "8 * t", "t % 2 * 16"]

METRICS = {
    "sectors of global loads": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "sectors of global stores": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "requests of global loads": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "requests of global stores": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "bank conflicts of shared loads": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "bank conflicts of shared stores": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "wavefronts of shared loads": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "wavefronts of shared stores": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "sectors of reductions": "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "requests of reductions": "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
}
"""What is compared, and what ncu calls it."""

OTHERS = {
    "instructions": "smsp__inst_executed.sum",
    "instructions of threads": "smsp__thread_inst_executed.sum",
    "sectors of atomics": "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "requests of atomics": "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "branches": "smsp__sass_branch_targets.sum",
    "branches that parted": "smsp__sass_branch_targets_threads_divergent.sum",
}
"""What is recorded, too, and cannot agree: the GPU executes other instructions than PTX's (docs/profiling.md)."""


def kernels() -> dict[str, str]:
    """The kernels by their names."""
    found: dict[str, str] = {}
    for number, (kind, index, condition) in enumerate(GLOBAL):
        found[f"load_{number}"] = (
            f'extern "C" __global__ void load_{number}({kind} *out, const {kind} *x) '
            f"{{ int t = threadIdx.x; if ({condition}) out[t] = __ldcg(&x[{index}]); }}"
        )
        found[f"store_{number}"] = (
            f'extern "C" __global__ void store_{number}({kind} *out, {kind} *x, {kind} value) '
            f"{{ int t = threadIdx.x; if ({condition}) x[{index}] = value; }}"
        )
    for number, (kind, index, condition) in enumerate(SHARED):
        words = f"extern __shared__ int4 words[]; {kind} *s = ({kind} *)words; int t = threadIdx.x % 32;"
        found[f"shared_load_{number}"] = (
            f'extern "C" __global__ void shared_load_{number}({kind} *out) '
            f"{{ {words} if ({condition}) out[threadIdx.x] = s[{index}]; }}"
        )
        found[f"shared_store_{number}"] = (
            f'extern "C" __global__ void shared_store_{number}({kind} *out, {kind} value) '
            f"{{ {words} if ({condition}) s[{index}] = value; __syncthreads(); "
            "if (threadIdx.x == 0) out[0] = s[0]; }"
        )
    for number, index in enumerate(ATOMIC):
        found[f"reduction_{number}"] = (
            f'extern "C" __global__ void reduction_{number}(int *out) '
            f"{{ int t = threadIdx.x; atomicAdd(&out[{index}], 1); }}"
        )
        found[f"atomic_{number}"] = (
            f'extern "C" __global__ void atomic_{number}(int *out, int *x) '
            f"{{ int t = threadIdx.x; x[t] = atomicAdd(&out[{index}], t); }}"
        )
    return found


def launch_all(names: Sequence[str]) -> None:
    """Launch each of some kernels once."""
    from cupola import Device, LaunchConfig, Program, ProgramOptions, launch

    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    options = ProgramOptions(arch=f"sm_{dev.arch}", lineinfo=True, disable_warnings=True)
    source = "\n".join(kernels()[name] for name in names)
    code = Program(source, "c++", options).compile("cubin")
    out, x = dev.allocate(1 << 16, stream=stream), dev.allocate(1 << 16, stream=stream)
    out.fill(0, stream=stream)
    x.fill(0, stream=stream)
    stream.sync()
    for name in names:
        kind = _type_of(name)
        config = LaunchConfig(grid=1, block=THREADS, shmem_size=17 * 1024 if name.startswith("shared") else 0)
        arguments = {"load": (out, x), "store": (out, x, kind), "shared_load": (out,), "shared_store": (out, kind)}
        given = arguments.get(name.rpartition("_")[0], (out,) if name.startswith("reduction") else (out, x))
        launch(stream, config, code.get_kernel(name), *given)
    stream.sync()


def _type_of(name: str) -> Any:
    import ctypes

    group, _, number = name.rpartition("_")
    rows = SHARED if group.startswith("shared") else GLOBAL
    if group in ("reduction", "atomic"):
        return None
    return {
        "int": ctypes.c_int(1), "unsigned char": ctypes.c_uint8(1), "short": ctypes.c_int16(1),
        "double": ctypes.c_double(1), "int4": (ctypes.c_int * 4)(1, 2, 3, 4),
    }[rows[int(number)][0]]  # fmt: skip


CHUNK = 11
"""Kernels of one run of ncu, which takes seconds to begin; the first run has few, to tell soon whether it works."""


def chunks() -> list[list[str]]:
    """The names of all kernels, mixed, so that the first ones are of all kinds."""
    names = list(kernels())
    mixed = [name for first in range(14) for name in names[first::14]]
    return [mixed[:3], *(mixed[at : at + CHUNK] for at in range(3, len(mixed), CHUNK))]


def record(path: str) -> int:
    """Write what ncu counts, after each of its runs."""
    found: dict[str, dict[str, int]] = {}
    metrics = {**METRICS, **OTHERS}
    for names in chunks():
        command = ["ncu", "--csv", "--page", "raw", "--cache-control", "none", "--clock-control", "none"]
        command += ["--metrics", ",".join(metrics.values()), sys.executable, __file__, "launch", *names]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CUPOLA_DEVICE": "gpu"})
        start = done.stdout.find('"ID"')
        if start < 0:
            print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr, flush=True)
            print(
                "ncu has counted nothing: is it allowed to read counters (ERR_NVGPUCTRPERM), and does nobody else read "
                "them, such as DCGM?",
                file=sys.stderr,
            )
            return 1
        for row in csv.DictReader(io.StringIO(done.stdout[start:])):
            if not row.get("ID"):
                continue  # the units
            kernel = row["Kernel Name"].partition("(")[0]
            for name, metric in metrics.items():
                if row.get(metric):
                    found.setdefault(kernel, {})[name] = int(float(row[metric].replace(",", "")))
        lines = [f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)]
        Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{len(found)} kernels", flush=True)
    return 0


def counted() -> dict[str, dict[str, int]]:
    """What the CPU device counts, in a process of its own."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_PROFILE": folder}
        subprocess.run([sys.executable, __file__, "launch"], check=True, env=variables)
        (path,) = Path(folder).glob("part-*.json")
        record = json.loads(path.read_text())
    return {kernel["name"]: _numbers(kernel) for kernel in record["kernels"]}


def _numbers(kernel: dict[str, Any]) -> dict[str, int]:
    sums: dict[str, list[int]] = {kind: [0] * 11 for kind in ("load", "store", "atomic")}
    for row in kernel["rows"]:
        for kind, numbers in row["accesses"].items():
            sums[kind] = [a + b for a, b in zip(sums[kind], numbers, strict=True)]
    load, store, atomic = sums["load"], sums["store"], sums["atomic"]
    return {
        "sectors of global loads": load[2],
        "sectors of global stores": store[2],
        "requests of global loads": load[0],
        "requests of global stores": store[0],
        "bank conflicts of shared loads": load[6] - load[7],
        "bank conflicts of shared stores": store[6] - store[7],
        "wavefronts of shared loads": load[6],
        "wavefronts of shared stores": store[6],
        "sectors of reductions": atomic[2] if kernel["name"].startswith("reduction") else 0,
        "requests of reductions": atomic[0] if kernel["name"].startswith("reduction") else 0,
    }


def differences(recorded: dict[str, dict[str, int]], found: dict[str, dict[str, int]]) -> list[str]:
    """What does not agree, a line each."""
    said: list[str] = []
    for name in recorded:
        source = kernels()[name]
        for metric in METRICS:
            there, here = recorded[name].get(metric), found.get(name, {}).get(metric)
            if there != here:
                said.append(f"{name}: {metric}: {here}, on the GPU {there}: {source}")
    return said


def main() -> int:
    """Run the command line."""
    what, *rest = sys.argv[1:] or ["compare"]
    if what != "launch" and len(rest) != 1:
        sys.exit(__doc__)
    if what == "launch":
        launch_all(rest or list(kernels()))
        return 0
    if what == "record":
        return record(rest[0])
    said = differences(json.loads(Path(rest[0]).read_text()), counted())
    print("\n".join([*said, f"{len(said)} counts differ"]))
    return 1 if said else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
