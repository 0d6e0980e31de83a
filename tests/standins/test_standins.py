"""Which package ``import cupy`` gives, in which processes, and what is said of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cupola import standins
from tests import processes

PROGRAM = """
import subprocess, sys, multiprocessing

def work(x):
    import cupy
    return cupy.__file__, float(cupy.asarray(x).sum())

if __name__ == "__main__":
    import cupy, cupyx, pickle
    from cupy.cuda import runtime
    import cupy.cuda.memory as memory
    import cupyx.scipy.special, numpy
    assert cupy.__name__ == "cupy" and cupyx.__name__ == "cupyx", (cupy, cupyx)
    assert runtime is cupy.cuda.runtime and memory.MemoryPool is cupy.cuda.MemoryPool
    assert cupy.ndarray.__module__ == "cupy" and type(cupy.zeros(2)) is cupy.ndarray
    print(cupy.__file__)
    print(subprocess.run([sys.executable, "-c", "import cupy; print(cupy.__file__)"], stdout=-1, text=True).stdout)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*pool.apply(work, (cupy.arange(4).get(),)))
"""

# A cupy that stands for CuPy itself, as it is installed.
REAL = 'raise ImportError("this is CuPy")\n'


def run(folder: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    (folder / "real" / "cupy").mkdir(parents=True, exist_ok=True)
    (folder / "real" / "cupy" / "__init__.py").write_text(REAL)
    path = os.pathsep.join(filter(None, [str(folder / "real"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "cupola", "run", *arguments, str(folder / "program.py")]
    settings = {**os.environ, "PYTHONPATH": path, **environment}
    return processes.run(command, env=settings)


@pytest.mark.cpu_only
def test_a_program_and_those_that_it_starts(tmp_path):
    done = run(tmp_path, PROGRAM, "--device", "cpu")
    ours = str(Path(standins.__file__).parent / "cupy" / "__init__.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [ours, ours, ours, "6.0"]
    said = [line for line in done.stderr.splitlines() if "stand-in" in line]
    assert len(said) == 1, done.stderr
    assert str(tmp_path / "real" / "cupy") in said[0] and "CUPOLA_CUPY=0" in said[0]


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("arguments", "setting", "theirs"),
    [
        (["--no-cupy"], "1", True),
        (["--cupy"], "0", False),
    ],
)
def test_the_switch(tmp_path, arguments, setting, theirs):
    program = "import cupy; print(cupy.__version__)"
    done = run(tmp_path, program, "--device", "cpu", *arguments, CUPOLA_CUPY=setting)
    assert ("this is CuPy" in done.stderr) == theirs, done.stderr
    assert (standins.VERSION in done.stdout) != theirs


def test_a_setting_that_is_not_known(tmp_path):
    done = run(tmp_path, "", CUPOLA_CUPY="perhaps")
    assert done.returncode == 2 and "CUPOLA_CUPY is 'perhaps': it may be 1, 0 or auto" in done.stderr


@pytest.mark.gpu_only
def test_nothing_is_replaced_on_a_gpu(tmp_path):
    assert "this is CuPy" in run(tmp_path, "import cupy", "--device", "gpu").stderr
    assert run(tmp_path, "import cupy; print(cupy.arange(3))", "--device", "gpu", "--cupy").stdout == "[0 1 2]\n"


MISSING = """
import cupy, cupyx
for function in (
    lambda: cupy.polynomial,
    lambda: cupy.block,
    lambda: cupy.nothing,
    lambda: cupy.hstak,
    lambda: cupy.linalg.solv,
    lambda: cupy.linalg.expm,
    lambda: cupy.fft.dct,
    lambda: cupy.random.gama,
    lambda: cupyx.scipy.special.gama,
    lambda: cupy.cuda.nccl,
    lambda: cupy.cuda.runtime.nothing,
    lambda: cupyx.GeneralizedUFunc,
    lambda: cupyx.scipy.interpolate,
    lambda: cupyx.scipy.special.nothing,
    lambda: cupy.random.PCG64,
    lambda: cupy.cuda.driver.launchKernel,
    lambda: cupy.zeros(2).setflags,
    lambda: __import__("cupyx.scipy.interpolate"),
    lambda: __import__("cupyx.distributed"),
    lambda: __import__("cupy.nothing.at_all"),
    lambda: cupy.get_array_wrap,
    lambda: cupyx.optimizing,
    lambda: cupyx.profiler.benchmark(len, devices=(0, 1)),
    lambda: cupyx.scipy.special.erf(cupy.asarray([1j])),
    lambda: cupy.cuda.MemoryPool().set_limit(),
    lambda: cupy.cuda.PinnedMemory(-1),
    lambda: cupy.ElementwiseKernel("T x", "", ""),
    lambda: cupy.ElementwiseKernel("T x", "T y", "y = x")(cupy.ones(3), 1.0),
    lambda: cupy.ElementwiseKernel("T x", "raw T y", "y[i] = x")(cupy.ones(3)),
    lambda: cupy.ElementwiseKernel("T x", "T y", "y = x")(cupy.ones(3), block_size=0),
    lambda: cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0)(cupy.ones((2, 3)), axis=1, out=cupy.ones(3)),
    lambda: cupy.RawKernel("", "f", ("-unknown",)).compile(),
    lambda: cupy.RawKernel("", "f", backend="other").compile(),
    lambda: cupy.fromDlpack(None),
    lambda: cupy.cuda.Stream.null.begin_capture(),
):
    try:
        function()
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("no error")
"""
TOLD = [
    "AttributeError CuPy has cupy.polynomial, and cupola's stand-in has not: poly1d",
    "AttributeError module 'cupy' has no attribute 'block'",
    "AttributeError module 'cupy' has no attribute 'nothing'",
    "AttributeError module 'cupy' has no attribute 'hstak'; did you mean 'hstack'?",
    "AttributeError cupola's stand-in for CuPy has no cupy.linalg.solv; did you mean 'solve'?",
    "AttributeError cupola's stand-in for CuPy has no cupy.linalg.expm; cupyx.scipy.linalg.expm is there",
    "AttributeError cupola's stand-in for CuPy has no cupy.fft.dct; cupyx.scipy.fft.dct is there",
    "AttributeError module 'cupy.random' has no attribute 'gama'; did you mean 'gamma'?",
    "AttributeError cupola's stand-in for CuPy has no cupyx.scipy.special.gama: scipy.special may have it for x.get()",
    "AttributeError cupola's stand-in for CuPy has no cupy.cuda.nccl: there is cupola.bindings.nccl",
    "AttributeError cupola's stand-in for CuPy has no cupy.cuda.runtime.nothing; cupola.bindings.runtime",
    "AttributeError CuPy has cupyx.GeneralizedUFunc, and cupola's stand-in has not: cupy.einsum",
    "AttributeError CuPy has cupyx.scipy.interpolate, and cupola's stand-in has not: scipy.interpolate",
    "AttributeError cupola's stand-in for CuPy has no cupyx.scipy.special.nothing",
    "AttributeError cupola's stand-in for CuPy has no cupy.random.PCG64",
    "AttributeError cupola's stand-in for CuPy has no cupy.cuda.driver.launchKernel; cupola.bindings.driver",
    "AttributeError ndarray.setflags is not in",
    "ModuleNotFoundError CuPy has cupyx.scipy.interpolate, and cupola's stand-in has not: scipy.interpolate",
    "ModuleNotFoundError CuPy has cupyx.distributed, and cupola's stand-in has not: cupola.bindings.nccl",
    "ModuleNotFoundError cupola's stand-in for CuPy has no cupy.nothing; docs/coming-from-cupy.md",
    "AttributeError CuPy has cupy.get_array_wrap, and cupola's stand-in has not: arrays need none",
    "AttributeError CuPy has cupyx.optimizing, and cupola's stand-in has not: RawKernel(...).attributes",
    "NotImplementedError benchmark(devices=(0, 1)): only the current device, 0, is measured",
    "TypeError cupyx.scipy.special.erf takes real numbers here",
    "ValueError a limit is either a size or a fraction",
    "ValueError size must not be negative",
    "ValueError kernel has no parameter for a result",
    "TypeError kernel: a result is an array of cupy, not float",
    "ValueError kernel: a raw result has no size; pass an array for it",
    "ValueError kernel: block_size is 0",
    "ValueError Out shape is mismatched: (3,) was given, the reduction has (2,)",
    "ValueError the option '-unknown' is not known",
    'ValueError Invalid backend: "other"',
    "NotImplementedError cupy.fromDlpack takes capsules, which CuPy has deprecated: cupy.from_dlpack",
    "RuntimeError cannot capture on the default",
]


def test_what_is_missing_says_so(tmp_path):
    done = run(tmp_path, MISSING, "--cupy")
    lines = done.stdout.splitlines()
    assert len(lines) == len(TOLD), done.stdout + done.stderr
    for line, told in zip(lines, TOLD, strict=True):
        assert line.startswith(told)


FAULT = """
import cupy
kernel = cupy.RawKernel('''
extern "C" __global__ void f(int* x) {
    x[threadIdx.x] = 1;
}''', "f")
x = cupy.zeros(3, "i4")
kernel((1,), (4,), (x,))
x.get()
"""


@pytest.mark.cpu_only
def test_a_store_behind_an_array_is_found(tmp_path):
    done = run(tmp_path, FAULT, "--device", "cpu")
    assert done.returncode == 1
    for text in (
        "CUDARuntimeError: cudaErrorIllegalAddress",
        "out-of-bounds write",
        "cupy:3 in f",
        "12-byte allocation",
    ):
        assert text in done.stderr


@pytest.mark.cpu_only
def test_pytest_has_it(tmp_path):
    (tmp_path / "test_it.py").write_text("import cupy\n\n\ndef test_it():\n    assert cupy.arange(3).sum() == 3\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cupola-names", "--cupola-device", "cpu"]
    done = processes.run([*command, "test_it.py"], cwd=tmp_path)
    assert "1 passed" in done.stdout and "`import cupy` is cupola's stand-in" in done.stdout, done.stdout


def test_cupy_that_is_imported_already(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("cupy", "cupyx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cupy.cuda", sys)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(RuntimeError, match=r"cupy.cuda is imported already.*CUPOLA_CUPY=0"):
        standins.install()
    assert not standins.is_active()


RECORDED = """
import cupy
stream = cupy.cuda.Stream(non_blocking=True)
x, out = cupy.arange(200_000), cupy.zeros((), "i8")
cupy.cuda.Device().synchronize()
with stream:
    used = [cupy.full(1056, 7, "u4") for _ in range(8)]
    stream.synchronize()
    del used  # memory that holds something
    stream.begin_capture()
    cupy.copyto(out, x.sum())
    graph = stream.end_capture()
    print(int(x.sum()) - 199_999 * 100_000)  # before anything of the graph has run
    for _ in range(2):
        x += 1
        graph.launch()
        print(int(out) - 199_999 * 100_000)
"""


def test_a_sum_that_blocks_share_in_a_graph(tmp_path):
    """What its blocks count with is not what they count with outside."""
    done = run(tmp_path, RECORDED, "--cupy")
    assert done.stdout.split() == ["0", "200000", "400000"], done.stderr


POOL = """
import cupy
pool = cupy.cuda.MemoryPool()
one, other = pool.malloc(1000), pool.malloc(5000)
with pool._changing():
    del one
    print(pool._used)
print(pool.used_bytes(), pool.n_free_blocks())
del other
print(pool.used_bytes(), pool.total_bytes())
"""


def test_what_is_given_back_in_the_middle_of_an_allocation(tmp_path):
    """As the collector does when it finds a cycle with arrays."""
    assert run(tmp_path, POOL, "--cupy").stdout.splitlines() == ["{0: 6144}", "5120 1", "0 6144"]


AT_THE_END = """
import builtins
import cupy
from cupy.cuda import memory, runtime

stream = cupy.cuda.Stream(non_blocking=True)
builtins.kept = [  # until after the modules
    memory.MemoryAsync(64, stream), memory.Memory(64), memory.ManagedMemory(64), cupy.cuda.PinnedMemory(64),
    cupy.cuda.alloc_pinned_memory(64), cupy.cuda.malloc_async(64), memory.default_pool.malloc(64), cupy.ones(3),
]
for name in list(vars(runtime)):  # as Python does when it ends
    setattr(runtime, name, None)
"""


def test_memory_that_outlives_the_modules_is_given_back_in_silence(tmp_path):
    done = run(tmp_path, AT_THE_END, "--cupy")
    assert done.returncode == 0
    assert "Exception ignored" not in done.stderr, done.stderr
