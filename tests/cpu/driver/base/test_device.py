"""Set-up of the CPU device, its models and attributes; starting, forking and exit of the process."""

from __future__ import annotations

import ctypes

import pytest

import cupola.cpu
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status

pytestmark = pytest.mark.cpu_only

H200 = {
    "MAX_THREADS_PER_BLOCK": 1024,
    "WARP_SIZE": 32,
    "MULTIPROCESSOR_COUNT": 132,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "L2_CACHE_SIZE": 60 << 20,
    "MAX_GRID_DIM_X": 2**31 - 1,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_BLOCK_DIM_Z": 64,
    "TOTAL_CONSTANT_MEMORY": 65536,
    "UNIFIED_ADDRESSING": 1,
    "MEMORY_POOLS_SUPPORTED": 1,
    "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": 1,
    "HOST_NUMA_ID": 0,
}


@pytest.mark.parametrize("name, value", H200.items())
def test_attributes_of_the_default_model(context, name, value):
    attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    assert ok(driver.cuDeviceGetAttribute(attribute, 0)) == value


def test_every_attribute_has_a_value(context):
    for attribute in driver.CUdevice_attribute:
        if attribute.name != "CU_DEVICE_ATTRIBUTE_MAX":
            ok(driver.cuDeviceGetAttribute(attribute, 0))
    assert status(driver.cuDeviceGetAttribute(0, 0)) == "CUDA_ERROR_INVALID_VALUE"
    assert status(driver.cuDeviceGetAttribute(5000, 0)) == "CUDA_ERROR_INVALID_VALUE"


ATOMIC = driver.CUatomicOperation
ATOMIC_CAPABILITIES = {
    # Bits: signed, unsigned, reduction, 32, 64, 128 bits, vectors of four floats (CUatomicOperationCapability).
    ATOMIC.CU_ATOMIC_OPERATION_INTEGER_ADD: 0b0011111,
    ATOMIC.CU_ATOMIC_OPERATION_INTEGER_INCREMENT: 0b0001110,
    ATOMIC.CU_ATOMIC_OPERATION_XOR: 0b0011111,
    ATOMIC.CU_ATOMIC_OPERATION_CAS: 0b0111011,
    ATOMIC.CU_ATOMIC_OPERATION_FLOAT_ADD: 0b1011101,
    ATOMIC.CU_ATOMIC_OPERATION_FLOAT_MAX: 0,
}


def test_atomic_operations_on_memory_of_the_host(context):
    operations = list(ATOMIC_CAPABILITIES)
    found = ok(driver.cuDeviceGetHostAtomicCapabilities(operations, len(operations), 0))
    assert [int(each) for each in found] == list(ATOMIC_CAPABILITIES.values())
    every = list(ATOMIC)[:-1]
    assert len(ok(driver.cuDeviceGetHostAtomicCapabilities(every, len(every), 0))) == ATOMIC.CU_ATOMIC_OPERATION_MAX


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([0], 0, 0), "INVALID_VALUE", "count is 0"),
        (([0, 13], 2, 0), "INVALID_VALUE", r"operations[1] is 13"),
        (([0], 1, 9), "INVALID_DEVICE", "there is no device 9"),
        ((None, 0, 9), "INVALID_VALUE", "count is 0"),
    ],
)
def test_atomic_operations_asked_for_wrongly(context, arguments, error, text):
    """An H200 gives the same errors, with the same one first."""
    result = driver.cuDeviceGetHostAtomicCapabilities(*arguments)
    assert status(result) == f"CUDA_ERROR_{error}"
    assert text in explanation(result)


def test_atomic_operations_on_memory_of_another_device(run_on_devices, context):
    assert status(driver.cuDeviceGetP2PAtomicCapabilities([0], 1, 0, 0)) == "CUDA_ERROR_INVALID_DEVICE"
    assert status(driver.cuDeviceGetP2PAtomicCapabilities([0], 1, 0, 9)) == "CUDA_ERROR_INVALID_DEVICE"
    done = run_on_devices(
        2,
        """
from cupola.bindings import driver
driver.cuInit(0)
print(*driver.cuDeviceGetP2PAtomicCapabilities([0, 8], 2, 0, 1)[1])
""",
    )
    assert done.stdout.split() == ["31", "59"], done.stderr


def test_name_and_addresses(context):
    assert ok(driver.cuDeviceGetName(64, 0)).rstrip(b"\0") == b"cupola CPU device (H200 model)"
    assert ok(driver.cuDeviceGetName(7, 0)) == b"cupola\0"
    bus = ok(driver.cuDeviceGetPCIBusId(13, 0)).rstrip(b"\0")
    assert bus == b"0000:10:00.0"
    for text in (bus, b"0000:10:00", b"10:00.0"):
        assert int(ok(driver.cuDeviceGetByPCIBusId(text))) == 0
    assert status(driver.cuDeviceGetByPCIBusId(b"nonsense")) == "CUDA_ERROR_INVALID_VALUE"
    assert status(driver.cuDeviceGetByPCIBusId(b"0000:99:00.0")) == "CUDA_ERROR_INVALID_DEVICE"


def test_a_device_that_is_not_there_is_explained(context):
    result = driver.cuDeviceGet(7)
    assert status(result) == "CUDA_ERROR_INVALID_DEVICE"
    assert "no device 7" in explanation(result)


def test_error_names_and_texts():
    for code in driver.CUresult:
        if code.name in {"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "CUDA_ERROR_MULTICAST_RESOURCE_FULL"}:
            continue
        result = driver.cuGetErrorName(code)
        if int(result[0]) == 0:
            assert ok(result) == code.name.encode()
            assert ok(driver.cuGetErrorString(code))
    assert ok(driver.cuGetErrorString(1)) == b"invalid argument"
    assert status(driver.cuGetErrorName(12345)) == "CUDA_ERROR_INVALID_VALUE"


def test_entry_points_are_found_by_name_and_version(context):
    address, found = ok(driver.cuGetProcAddress(b"cuStreamQuery", 12000, 0))
    assert address and int(found) == 0
    per_thread, _ = ok(driver.cuGetProcAddress(b"cuStreamQuery", 12000, 2))
    assert per_thread and per_thread != address
    old, _ = ok(driver.cuGetProcAddress(b"cuCtxCreate", 11000, 0))
    new, _ = ok(driver.cuGetProcAddress(b"cuCtxCreate", 13000, 0))
    assert old != new
    assert status(driver.cuGetProcAddress(b"cuNoSuchThing", 12000, 0)) == "CUDA_ERROR_NOT_FOUND"


def test_every_symbol_resolves_to_itself():
    from cupola.cpu import _driver

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer = get(_driver.lookup, b"cupola.cpu._driver.lookup")
    lookup = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(pointer)
    symbols = _driver.symbols()
    assert len(set(symbols)) == len(symbols)
    assert all(lookup(name.encode()) for name in symbols)
    assert lookup(b"cuStreamQuery_ptsz") and lookup(b"cuLaunchKernel_ptsz") and lookup(b"cuMemcpyHtoD_v2_ptds")
    assert not lookup(b"cuStreamCreate_ptsz") and not lookup(b"cuNoSuchThing") and not lookup(b"")


# --- processes of their own -------------------------------------------------------------------------------


def run_checks(run_python, source, **environment):
    done = run_python(
        "from cupola.bindings import driver as d\ndef status(r): return r[0].name\n" + source, **environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


ATTRIBUTES = """
A = d.CUdevice_attribute
def attribute(name, device=0): return d.cuDeviceGetAttribute(getattr(A, "CU_DEVICE_ATTRIBUTE_" + name), device)[1]
"""


@pytest.mark.parametrize("model", cupola.cpu.models, ids=lambda m: m.key)
def test_models(run_python, model):
    run_checks(
        run_python,
        f"""import cupola.cpu
cupola.cpu.use({model.key!r}, devices=2)
d.cuInit(0)
assert d.cuDeviceGetCount()[1] == 2
cupola.cpu.use({model.key!r}, devices=2)  # the same again
try:
    cupola.cpu.use({model.key!r}, devices=1)
except RuntimeError:
    pass
else:
    raise AssertionError("another device behind the first call")
{ATTRIBUTES}
capability = attribute("COMPUTE_CAPABILITY_MAJOR", 1), attribute("COMPUTE_CAPABILITY_MINOR", 1)
assert capability == {model.compute_capability}
assert attribute("MULTIPROCESSOR_COUNT") == {model.multiprocessor_count}
assert d.cuDeviceTotalMem(0)[1] == {model.memory_bytes}
assert d.cuDeviceGetName(64, 0)[1].rstrip(b"\\0").decode() == {model.name!r}
assert d.cuDeviceCanAccessPeer(0, 1)[1] == 1 and d.cuDeviceCanAccessPeer(0, 0)[1] == 0
assert bytes(d.cuDeviceGetUuid(0)[1].bytes) != bytes(d.cuDeviceGetUuid(1)[1].bytes)
first, second = d.cuDevicePrimaryCtxRetain(0)[1], d.cuDevicePrimaryCtxRetain(1)[1]
d.cuCtxSetCurrent(first)
assert status(d.cuCtxEnablePeerAccess(second, 0)) == "CUDA_SUCCESS"
assert status(d.cuCtxEnablePeerAccess(second, 0)) == "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"
assert status(d.cuCtxDisablePeerAccess(second)) == "CUDA_SUCCESS"
assert status(d.cuCtxDisablePeerAccess(second)) == "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"
assert status(d.cuCtxEnablePeerAccess(first, 0)) == "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"
""",
        CUPOLA_DEVICE="auto",
    )


def test_the_environment_sets_the_device_up(run_python):
    source = f"d.cuInit(0){ATTRIBUTES}\nassert attribute('MULTIPROCESSOR_COUNT', 2) == 40"
    run_checks(run_python, source, CUPOLA_CPU_MODEL="t4", CUPOLA_CPU_DEVICES="3")
    run_checks(run_python, "assert status(d.cuInit(0)) == 'CUDA_ERROR_INVALID_VALUE'", CUPOLA_CPU_MODEL="nonsense")
    run_checks(run_python, "assert status(d.cuInit(0)) == 'CUDA_ERROR_INVALID_VALUE'", CUPOLA_CPU_DEVICES="0")
    run_checks(run_python, "assert d.cuDriverGetVersion()[1] == 12080", CUPOLA_CPU_CUDA_VERSION="12.8")
    for wrong in ("11.8", "99.0", "13", "13.10", "x"):
        refused = "assert status(d.cuDriverGetVersion()) == 'CUDA_ERROR_INVALID_VALUE'"
        run_checks(run_python, refused, CUPOLA_CPU_CUDA_VERSION=wrong)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"model": "gtx"}, "h200"),
        ({"devices": 0}, "between 1 and 16"),
        ({"devices": 17}, "between 1 and 16"),
        ({"threads": 0}, "at least 1"),
        ({"cuda_version": "11.8"}, "from '12.0' to '13"),
        ({"cuda_version": "99.0"}, "from '12.0' to '13"),
        ({"cuda_version": "13"}, "from '12.0' to '13"),
        ({"numerics": "quick"}, "'exact' or 'fast'"),
    ],
)
def test_use_refuses_nonsense(arguments, says):
    with pytest.raises(ValueError, match=says):
        cupola.cpu.use(**arguments)


def test_use_comes_too_late(context):
    with pytest.raises(RuntimeError, match="in use already"):
        cupola.cpu.use("t4")


def test_nothing_works_before_init(run_python):
    run_checks(
        run_python,
        """
assert d.cuDriverGetVersion()[1] == d.CUDA_VERSION
assert d.cuGetErrorName(1)[1] == b"CUDA_ERROR_INVALID_VALUE"
for call in (d.cuDeviceGetCount, d.cuCtxGetCurrent, d.cuCtxSynchronize, lambda: d.cuStreamCreate(0),
             lambda: d.cuDevicePrimaryCtxRetain(0), lambda: d.cuStreamQuery(0), lambda: d.cuMemAlloc(16)):
    assert status(call()) == "CUDA_ERROR_NOT_INITIALIZED", call
assert status(d.cuInit(1)) == "CUDA_ERROR_INVALID_VALUE"
assert status(d.cuInit(0)) == status(d.cuInit(0)) == "CUDA_SUCCESS"
""",
    )


def test_a_forked_child_is_told_so(run_python):
    run_checks(
        run_python,
        """
import os, sys
sys.path.insert(0, "")
from tests.cpu.driver.calls import explanation
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
stream = d.cuStreamCreate(1)[1]
child = os.fork()
if not child:
    code = 1
    try:
        result = d.cuStreamSynchronize(stream)
        assert status(result) == "CUDA_ERROR_NOT_INITIALIZED", status(result)
        assert "fork" in explanation(result)
        assert status(d.cuInit(0)) == "CUDA_ERROR_NOT_INITIALIZED"
        assert status(d.cuMemAlloc(64)) == "CUDA_ERROR_NOT_INITIALIZED"
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
assert status(d.cuStreamSynchronize(stream)) == "CUDA_SUCCESS"
""",
    )


def test_a_child_forked_before_init_may_use_the_device(run_python):
    run_checks(
        run_python,
        """
import os
child = os.fork()
if not child:
    code = 1
    try:
        assert status(d.cuInit(0)) == "CUDA_SUCCESS"
        assert status(d.cuDevicePrimaryCtxRetain(0)) == "CUDA_SUCCESS"
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
""",
    )


def test_the_process_may_exit_while_work_is_queued(run_python):
    run_checks(
        run_python,
        """
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
address = d.cuMemHostAlloc(64, 0)[1]
for _ in range(4):
    assert status(d.cuStreamWaitValue32(d.cuStreamCreate(1)[1], address, 1, 1)) == "CUDA_SUCCESS"
""",
    )
