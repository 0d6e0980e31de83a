"""The choice of provider and the search for symbols, with a libcuda.so.1 made for the test."""

from __future__ import annotations

import re
import shutil

import pytest

from tests import processes

LIBCUDA = """
#include <string.h>
typedef int (*function)();
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuMemcpy(void *a, void *b, unsigned long n) { (void)a, (void)b, (void)n; return 11; }
int cuMemcpy_ptds(void *a, void *b, unsigned long n) { (void)a, (void)b, (void)n; return 12; }
int cuEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; *ms = 2.5f; return 0; }
static int stream_id(void *stream, unsigned long long *id) { (void)stream; *id = 42; return 0; }
static int old_create(void **context, unsigned flags, int device) {
    (void)flags, (void)device;
    *context = (void *)1;
    return 0;
}
int cuGetProcAddress_v2(const char *name, function *f, int version, unsigned long long flags, int *found) {
    (void)flags;
    *found = 0;
    if (!strcmp(name, "cuStreamGetId") && version == 12000) { *f = (function)stream_id; return 0; }
    if (!strcmp(name, "cuCtxCreate")) { *f = (function)old_create; return 0; } /* an older signature */
    return 500;
}
"""


@pytest.fixture(scope="module")
def libcuda(tmp_path_factory):
    """Builds a libcuda.so.1; returns its folder."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")

    def build(init: int = 0, count: int = 1) -> str:
        folder = tmp_path_factory.mktemp("cuda")
        (folder / "cuda.c").write_text(LIBCUDA)
        processes.run(
            ["gcc", "-shared", "-fPIC", f"-DINIT={init}", f"-DCOUNT={count}", "-o", "libcuda.so.1", "cuda.c"],
            cwd=folder,
            check=True,
        )
        return str(folder)

    return build


@pytest.fixture(scope="module")
def good_libcuda(libcuda):
    return libcuda()


def run(run_python, source: str, **environment: str) -> str:
    done = run_python("from cupola.bindings import driver\n" + source, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CASES = [
    ("driver.cuInit(0)[0].name", "CUDA_SUCCESS", {}),
    ("int(driver.cuMemcpy(1, 2, 3)[0])", "11", {}),
    ("int(driver.cuMemcpy(1, 2, 3)[0])", "12", {"CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}),
    ("driver.cuEventElapsedTime(1, 2)[1]", "2.5", {}),  # an alias of the same signature
    ("driver.cuStreamGetId(1)[1]", "42", {}),  # cuGetProcAddress
]


@pytest.mark.parametrize(("expression", "expected", "environment"), CASES)
def test_symbols(run_python, good_libcuda, expression, expected, environment):
    source = f"driver.cuInit(0); print({expression})"
    assert run(run_python, source, CUPOLA_DEVICE="gpu", LD_LIBRARY_PATH=good_libcuda, **environment) == expected


MISSING = """
from cupola.bindings._provider import FunctionNotFoundError
try:
    driver.cuCtxCreate(None, 0, 0)
except FunctionNotFoundError as error:
    print(error, error.function, error.since)
"""


def test_an_older_driver_is_not_asked_for_a_newer_signature(run_python, good_libcuda):
    text = run(run_python, MISSING, CUPOLA_DEVICE="gpu", LD_LIBRARY_PATH=good_libcuda)
    assert text == (
        f"function cuCtxCreate is not found in {good_libcuda}/libcuda.so.1, which has CUDA 12.4: "
        "it needs CUDA 12.5 or newer cuCtxCreate 12.5"
    )


CHOICE = """
from cupola.bindings import _provider
driver.cuInit(0)
print(_provider.current())
"""


def test_auto_takes_the_gpu(run_python, good_libcuda):
    assert run(run_python, CHOICE, CUPOLA_DEVICE="auto", LD_LIBRARY_PATH=good_libcuda) == "gpu"


@pytest.mark.parametrize("broken", [{"init": 100}, {"init": 3}, {"count": 0}])
def test_auto_falls_back_to_the_cpu_device_and_says_so(run_python, libcuda, broken):
    source = "import logging; logging.basicConfig(level=logging.INFO)\n" + CHOICE
    done = run_python(
        "from cupola.bindings import driver\n" + source, CUPOLA_DEVICE="", LD_LIBRARY_PATH=libcuda(**broken)
    )
    assert done.stdout.strip() == "cpu", done.stderr
    # A warning on a machine that has a GPU all the same.
    assert len(re.findall("^(?:INFO|WARNING):cupola:running on the CPU device: ", done.stderr, re.MULTILINE)) == 1


def test_a_fall_back_is_a_warning_where_there_is_a_gpu(run_python, libcuda):
    source = (
        "from cupola.bindings import _provider, driver\n_provider.sign_of_a_gpu = lambda: 'there is /dev/nvidia7'\n"
    )
    said = "although there is /dev/nvidia7: `cupola doctor` says"
    for variables, wanted in (({}, 1), ({"CUDA_VISIBLE_DEVICES": ""}, 0), ({"CUPOLA_DEVICE": "cpu"}, 0)):
        chosen = {"CUPOLA_DEVICE": "", "LD_LIBRARY_PATH": libcuda(count=0), **variables}
        done = run_python(
            source + CHOICE.replace("from cupola.bindings import _provider", "driver.cuInit(0)"), **chosen
        )
        assert done.stdout.strip() == "cpu" and done.stderr.count(said) == wanted, done.stderr


def test_signs_of_a_gpu(tmp_path):
    from cupola.bindings import _provider

    def sign() -> str:
        return _provider.sign_of_a_gpu(str(tmp_path))

    assert sign() == ""
    for place, vendor, kind in (("0000:01:00.0", "0x8086", "0x030000"), ("0000:02:00.0", "0x10de", "0x040300")):
        folder = tmp_path / "sys" / "bus" / "pci" / "devices" / place
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    assert sign() == ""  # a GPU of Intel, and the sound of one of NVIDIA
    (folder / "class").write_text("0x030200\n")
    assert sign() == "a GPU of NVIDIA is at PCI 0000:02:00.0"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    assert sign() == f"there is {tmp_path}/dev/nvidia0"


def test_gpu_without_a_driver(run_python, tmp_path):
    source = """
from cupola.pathfinder import DynamicLibNotFoundError
driver._open = lambda path: (_ for _ in ()).throw(OSError("not there"))
try:
    driver.cuInit(0)
except DynamicLibNotFoundError as error:
    print(error)
"""
    assert "set CUPOLA_DEVICE=cpu" in run(run_python, source, CUPOLA_DEVICE="gpu")


def test_neither_device(run_python):
    source = """
import sys
driver._open = lambda path: (_ for _ in ()).throw(OSError("not there"))
sys.modules["cupola.cpu._driver"] = None
for _ in range(2):
    try:
        driver.cuInit(0)
    except RuntimeError as error:
        print(error)
"""
    lines = run(run_python, source, CUPOLA_DEVICE="auto").splitlines()
    assert len(lines) == 2 and all("no device to run on" in x and "cupola[cpu]" in x for x in lines)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"CUPOLA_DEVICE": "tpu"}, "CUPOLA_DEVICE must be auto, gpu or cpu, got 'tpu'"),
        (
            {"CUPOLA_DEVICE": "cpu", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "abc"},
            "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM must be a number, got 'abc'",
        ),
    ],
)
def test_bad_settings(run_python, environment, message):
    source = "try:\n    driver.cuInit(0)\nexcept ValueError as error:\n    print(error)"
    assert run(run_python, source, **environment) == message


def test_requests(run_python):
    source = """
from cupola.bindings import _provider
for device in ("tpu", "cpu"):
    try:
        _provider.request(device)
    except ValueError as error:
        print(error)
print(_provider.current(), driver._provider_name())
driver.cuInit(0)
print(_provider.current(), driver._provider_name())
_provider.request("cpu"), _provider.request("auto")
try:
    _provider.request("gpu")
except RuntimeError as error:
    print(error)
"""
    assert run(run_python, source, CUPOLA_DEVICE="gpu").splitlines() == [
        "device must be 'auto', 'gpu' or 'cpu', got 'tpu'",
        "None None",
        "cpu cupola CPU device",
        "the cpu device is in use already: choose before the first CUDA call, or set CUPOLA_DEVICE=gpu",
    ]


NVML = """
int nvmlInitWithFlags(unsigned flags) { return flags ? 2 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
"""


@pytest.mark.parametrize(
    ("visible", "expected"), [(None, False), ("0", False), ("1,-1", False), ("", True), ("-1", True), ("-1,0", True)]
)
def test_without_visible_devices_it_will_be_the_cpu_device(run_python, tmp_path, visible, expected):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "nvml.c").write_text(NVML)
    processes.run(["gcc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"], cwd=tmp_path, check=True)
    source = "from cupola.bindings import _provider; print(_provider.is_cpu(), _provider.current())"
    environment = {"CUPOLA_DEVICE": "auto", "LD_LIBRARY_PATH": str(tmp_path)}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    assert run(run_python, source, **environment) == f"{expected} None"
