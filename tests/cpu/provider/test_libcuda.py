"""The CPU device as ``libcuda.so.1``, for programs that load the driver themselves."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests import processes

pytestmark = pytest.mark.cpu_only

# What programs do with ctypes: the plain name of a function has its oldest meaning, as in NVIDIA's library.
CTYPES = """
import ctypes
lib = ctypes.CDLL({name!r})
def call(function, *arguments):
    status = getattr(lib, function)(*arguments)
    assert status == 0, (function, status)
count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
size, free = ctypes.c_size_t(), ctypes.c_size_t()
text = ctypes.create_string_buffer(100)
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(count))
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDeviceGetName", text, 100, device)
call("cuCtxCreate", ctypes.byref(context), 0, device)
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(size))
pointer = ctypes.c_uint64()
call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(64))
call("cuMemsetD32_v2", pointer, 7, ctypes.c_size_t(16))
back = (ctypes.c_uint * 16)()
call("cuMemcpyDtoH_v2_ptds", back, pointer, ctypes.c_size_t(64))
call("cuCtxDestroy_v2", context)
address = ctypes.c_void_p()
call("cuGetProcAddress", b"cuInit", ctypes.byref(address), 12000, ctypes.c_uint64(0))
print(count.value, text.value.decode(), sum(back), bool(address), hasattr(lib, "cuNothing"))
print(lib.cuFlushGPUDirectRDMAWrites())
"""

# The same by another library, which says that it needs libcuda.so.1.
C = """
extern int cuInit(unsigned), cuDeviceGetCount(int *);
int devices(void) { int count = -1; return cuInit(0) ? -2 : cuDeviceGetCount(&count) ? -3 : count; }
"""


def cupola_run(tmp_path, source, *options):
    path = tmp_path / "script.py"
    path.write_text(source)
    command = [sys.executable, "-m", "cupola", "run", *(options or ("--device", "cpu")), str(path)]
    return processes.run(command)


@pytest.mark.parametrize("name", ["libcuda.so.1", "libcuda.so"])
def test_ctypes(name, tmp_path):
    done = cupola_run(tmp_path, CTYPES.format(name=name), "--model", "t4", "--devices", "2")
    assert done.stdout == "2 cupola CPU device (T4 model) 112 True False\n801\n", done.stderr


def test_bindings_and_library_are_one_driver(tmp_path):
    done = cupola_run(
        tmp_path,
        """
import ctypes
from cuda.core import Device
device = Device(0)
device.set_current()
context = ctypes.c_void_p()
assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
print(context.value == int(device.context.handle))
""",
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_library_that_is_linked_to_libcuda(tmp_path):
    (tmp_path / "needs.c").write_text(C)
    (tmp_path / "stub.c").write_text("int cuInit(unsigned f) { return 1; } int cuDeviceGetCount(int *n) { return 1; }")
    for command in (
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "stub.c", "-o", "libstub.so"],
        ["gcc", "-shared", "-fPIC", "needs.c", "libstub.so", "-o", "needs.so"],
    ):
        processes.run(command, cwd=tmp_path, check=True)
    done = cupola_run(tmp_path, f"import ctypes; print(ctypes.CDLL({str(tmp_path / 'needs.so')!r}).devices())")
    assert done.stdout == "1\n", done.stderr


def test_no_other_process_has_it(run_python):
    done = run_python("""
import sys
from cupola import Device
Device(0).set_current()
assert "cupola.cpu.libcuda" not in sys.modules
print("_libcuda" in open("/proc/self/maps").read())
""")
    assert done.stdout == "False\n", done.stderr


def test_the_gpu_is_out_of_reach_then(run_python):
    done = run_python("""
from cupola.bindings import _provider
from cupola.cpu import libcuda
libcuda.provide()
libcuda.provide()
_provider.request("gpu")
try:
    _provider._provide_driver()
except RuntimeError as error:
    print(error)
_provider.request("auto")
print(_provider._provide_driver()[0])
""")
    assert "this process already uses the CPU device as its libcuda.so.1" in done.stdout, done.stderr
    assert done.stdout.endswith("cupola CPU device\n")


def test_every_function_is_exported():
    from bindgen.emit import symbols

    text = symbols("driver", "cuGraphInstantiate_v2")
    from cupola.cpu import _driver

    exported = {line[len("SYMBOL(") : -1] for line in text.splitlines()[1:]}
    private = {name for name in _driver.symbols() if name.endswith("_v1")}
    other = {name for name in _driver.symbols() if not name.startswith("cu") or name.startswith("cupola")}
    assert set(_driver.symbols()) - exported - private - other == set()


def test_why_an_image_is_refused_is_on_the_logger(tmp_path):
    """These programs get a status only."""
    source = """
import ctypes
lib = ctypes.CDLL("libcuda.so.1")
device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
assert lib.cuInit(0) == lib.cuDeviceGet(ctypes.byref(device), 0) == 0
assert lib.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
text = b".version 8.0 .target sm_50 .address_size 64 .visible .entry k() { nonsense.u32 1; ret; }"
print([lib.cuModuleLoadData(ctypes.byref(module), text) for _ in range(2)])
"""
    done = cupola_run(tmp_path, source)
    assert done.stdout == "[218, 218]\n", done.stderr
    assert done.stderr.count("unsupported PTX instruction") == 1, done.stderr
