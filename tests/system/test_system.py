"""cupola.system: every accessor on the device of this run, a GPU's or the CPU device's."""

from __future__ import annotations

import inspect
import os
import pickle
import sys
from pathlib import Path

import pytest

import cupola
from cupola import system
from cupola.bindings import nvml
from cupola.system import _names, typing
from tests import limits, processes

BUSY = Path(__file__).with_name("programs") / "busy.py"

KINDS = {
    "addressing_mode": (typing.AddressingMode, type(None)),
    "arch": typing.DeviceArch,
    "attributes": object,
    "bar1_memory_info": object,
    "brand": str,
    "compute_running_processes": list,
    "cooler": object,
    "cuda_compute_capability": tuple,
    "current_clock_event_reasons": list,
    "dynamic_pstates_info": object,
    "index": int,
    "inforom": object,
    "is_auto_boosted_clocks_enabled": tuple,
    "is_c2c_enabled": bool,
    "is_display_active": bool,
    "is_display_connected": bool,
    "is_persistence_mode_enabled": bool,
    "memory_info": object,
    "mig": object,
    "minor_number": int,
    "module_id": int,
    "name": str,
    "num_fans": int,
    "numa_node_id": int,
    "pci_bus_id": str,
    "pci_info": object,
    "performance_state": (int, type(None)),
    "repair_status": object,
    "serial": str,
    "supported_clock_event_reasons": list,
    "supported_pstates": list,
    "temperature": object,
    "utilization": object,
    "uuid": str,
    "uuid_without_prefix": str,
}
"""Property of a device -> its type, where the device has it."""


@pytest.fixture
def gpu() -> system.Device:
    return system.Device(index=0)


def test_the_table_has_all_properties():
    properties = {n for n, _ in inspect.getmembers(system.Device, lambda m: isinstance(m, property))}
    assert {name for name in properties if not name.startswith("_")} == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_each_property_has_its_type_or_is_not_supported(gpu, name):
    try:
        value = getattr(gpu, name)
    except system.NotSupportedError:
        return
    assert isinstance(value, KINDS[name])


# Accessors whose properties an H200 has, and so has its model.
ACCESSORS = ["bar1_memory_info", "memory_info", "mig", "pci_info", "repair_status", "temperature", "utilization"]


@pytest.mark.parametrize("accessor", ACCESSORS)
def test_each_property_of_an_accessor_answers(gpu, accessor):
    subject = getattr(gpu, accessor)
    names = [n for n, m in inspect.getmembers(type(subject)) if isinstance(m, property)]
    assert names
    for name in names:
        try:
            assert isinstance(getattr(subject, name), (int, bool, str)), name
        except (system.NotSupportedError, system.InvalidArgumentError):
            assert (accessor, name) in {("bar1_memory_info", "reserved"), ("mig", "mode"), ("mig", "parent")}, name


def test_devices_are_found_in_three_ways(gpu):
    assert gpu.index == 0 and len(list(system.Device.get_all_devices())) == system.get_num_devices()
    for again in (
        system.Device(uuid=gpu.uuid),
        system.Device(uuid=gpu.uuid.encode()),
        system.Device(pci_bus_id=gpu.pci_bus_id),
    ):
        assert again.index == 0 and again is not gpu
    assert 0 in [device.index for device in system.Device.get_all_devices_with_cpu_affinity(0)]
    assert gpu.uuid == "GPU-" + gpu.uuid_without_prefix


@pytest.mark.parametrize("arguments", [{}, {"index": 0, "uuid": "GPU-1"}, {"index": 0, "uuid": "1", "pci_bus_id": "2"}])
def test_exactly_one_way_is_taken(arguments):
    with pytest.raises(ValueError, match="one of index, uuid and pci_bus_id"):
        system.Device(**arguments)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"index": 10_000}, "InvalidArgumentError"),
        ({"index": system.Device.get_device_count()}, "InvalidArgumentError"),
        ({"uuid": "GPU-00000000-0000-0000-0000-000000000000"}, "NotFoundError"),
        ({"uuid": "x"}, "NotFoundError"),
        ({"pci_bus_id": "00000000:FF:00.0"}, "NotFoundError"),
        ({"pci_bus_id": "x"}, "InvalidArgumentError"),
        ({"pci_bus_id": ""}, "InvalidArgumentError"),
    ],
)
def test_devices_that_there_are_not(arguments, error):
    with pytest.raises(getattr(system, error)) as raised:
        system.Device(**arguments)
    assert isinstance(raised.value, system.NvmlError)


def test_the_same_device_in_cuda(gpu):
    device = gpu.to_cuda_device()
    assert device.uuid == gpu.uuid_without_prefix and device.name == gpu.name
    assert tuple(device.compute_capability) == gpu.cuda_compute_capability
    assert device.to_system_device().uuid == gpu.uuid


def test_versions():
    assert system.get_user_mode_driver_version() >= (12, 0)
    kernel = system.get_kernel_mode_driver_version()
    assert len(kernel) in (2, 3) and all(isinstance(part, int) for part in kernel)
    assert system.get_nvml_version()[1:] == kernel and system.get_driver_branch().startswith("r")


def test_memory_of_this_process_is_seen(gpu, device):
    """Others may allocate and free at the same time, so only what must be there is asked for."""
    before = gpu.memory_info
    buffer = device.allocate(64 << 20, stream=device.default_stream)
    device.sync()
    after = gpu.memory_info
    buffer.close()
    assert after.total == before.total and 64 << 20 <= after.used <= after.total - after.free


HOLD = """
import sys
from cupola import Device
device = Device(0)
device.set_current()
buffer = device.allocate(96 << 20, stream=device.default_stream)
device.sync()
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.cpu_only  # in a container NVML may not list the processes of a GPU
def test_memory_of_another_process_is_seen_until_it_ends(gpu):
    def used() -> dict[int, int]:
        return {process.pid: process.used_gpu_memory for process in gpu.compute_running_processes}

    with processes.Child([sys.executable, "-c", HOLD], stdin=processes.PIPE, stdout=processes.PIPE) as child:
        assert child.stdout.readline() == "ready\n"
        assert used()[child.pid] >= 96 << 20
        assert os.path.basename(system.get_process_name(child.pid)).startswith("python")
        assert child.pid in used()
    # It has ended within the time that the list of processes is kept.
    assert child.pid not in used()


# A process that publishes a page as the CPU device does, with numbers copied from that of its parent.
IMPOSTOR = """
import fcntl, os, sys
page = bytearray(sys.stdin.buffer.read())
page[16:24] = os.getpid().to_bytes(8, "little")
file = os.memfd_create("cupola-usage", os.MFD_ALLOW_SEALING)
os.write(file, page)
if sys.argv[1] == "sealed":
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
print("ready", flush=True)
os.read(os.eventfd(0), 8)
"""


@pytest.mark.cpu_only
def test_a_page_that_can_be_cut_off_is_passed_over(gpu, device):
    """Who reads behind its end would get SIGBUS."""
    files = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    page = next(file for file in files if os.path.islink(file) and "cupola-usage" in os.readlink(file))
    both = {"stdin": processes.PIPE, "stdout": processes.PIPE, "text": False}
    with (
        processes.Child([sys.executable, "-c", IMPOSTOR, "open"], **both) as left_open,
        processes.Child([sys.executable, "-c", IMPOSTOR, "sealed"], **both) as sealed,
    ):
        for child in (left_open, sealed):
            child.stdin.write(Path(page).read_bytes())
            child.stdin.close()
            assert child.stdout.readline() == b"ready\n"
        listed: list[int] = []

        def sealed_is_listed() -> bool:
            """The list of processes is kept for a few milliseconds. One that has the second has had the first."""
            listed[:] = [process.pid for process in gpu.compute_running_processes]
            return sealed.pid in listed

        limits.until(sealed_is_listed, lambda: listed)
    assert os.getpid() in listed and left_open.pid not in listed


def test_utilization_of_another_process_is_seen(gpu):
    """A kernel that runs until it is told to stop keeps the device busy, whoever started it."""
    with processes.Child([sys.executable, BUSY], stdin=processes.PIPE, stdout=processes.PIPE) as child:
        assert child.stdout.readline() == "ready\n"
        limits.until(lambda: gpu.utilization.gpu > 80, lambda: f"the device is busy at {gpu.utilization.gpu} %")
        assert gpu.get_clock("sm").get_current_mhz() > 0
        child.communicate("\n")
    assert child.returncode == 0


FAULT = """
from cupola import CUDAError, Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(15)
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void fault(int* x) { %s }'
kernel = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fault")
launch(stream, LaunchConfig(grid=1, block=1), kernel, 0)
try:
    stream.sync()
except CUDAError as error:
    print(error.name)
"""
WATCH = """
import subprocess, sys
from cupola import system
events = system.Device(index=15).register_events(["xid_critical_error"])
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
event = events.wait(timeout_ms=60_000)
print(child.communicate()[0].strip(), event.event_type, event.event_data, event.device.index, event.gpu_instance_id)
"""


# On a device that no other test uses: what they provoke would be seen, too.
@pytest.mark.cpu_only  # a fault may not be provoked on a GPU that others use
@pytest.mark.parametrize(
    "body, error, xid",
    [
        ("*x = 1;", "CUDA_ERROR_ILLEGAL_ADDRESS", 31),
        ("__trap();", "CUDA_ERROR_LAUNCH_FAILED", 13),
        (
            "__shared__ int y[2]; *(volatile int*)((char*)y + 1) = (int)(long long)x;",
            "CUDA_ERROR_MISALIGNED_ADDRESS",
            13,
        ),
    ],
    ids=["address", "trap", "misaligned"],
)
def test_a_fault_is_an_xid_event_although_its_process_ends_behind_it(body, error, xid):
    environment = os.environ | {"CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_DEVICES": "16"}
    command = [sys.executable, "-c", WATCH, FAULT % body]
    done = processes.run(command, env=environment)
    assert done.stdout.split() == [error, "xid_critical_error", str(xid), "15", str(2**32 - 1)], done.stderr


def test_waiting_ends_after_its_time(gpu):
    assert typing.EventType.XID_CRITICAL_ERROR in gpu.get_supported_event_types()
    with pytest.raises(system.TimeoutError):
        gpu.register_events("xid_critical_error").wait(timeout_ms=20)
    with pytest.raises(system.TimeoutError):
        system.register_events(["bind", "unbind"]).wait(timeout_ms=20)
    with pytest.raises(ValueError, match="must not be negative"):
        gpu.register_events("xid_critical_error").wait(-1)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda gpu: gpu.register_events("no_such_event"), ValueError),
        (lambda gpu: gpu.register_events(8), TypeError),
        (lambda gpu: system.register_events(["nothing"]), ValueError),
        (lambda gpu: gpu.get_clock("sound"), ValueError),
        (lambda gpu: gpu.get_clock("sm").get_current_mhz("yesterday"), ValueError),
        (lambda gpu: gpu.get_clock("sm").get_min_max_clock_of_pstate_mhz(16), ValueError),
        (lambda gpu: gpu.get_fan(100), ValueError),
        (lambda gpu: gpu.get_nvlink(100), (ValueError, system.NotSupportedError)),
        (lambda gpu: gpu.get_clock("sm").get_min_max_clock_of_pstate_mhz("P0"), TypeError),
        (lambda gpu: system.get_p2p_status(gpu, None, "read"), TypeError),
        (lambda gpu: system.get_topology_common_ancestor(gpu.index, gpu), TypeError),
        (lambda gpu: gpu.get_cpu_affinity("room"), ValueError),
        (lambda gpu: system.get_p2p_status(gpu, gpu, "smell"), ValueError),
        (lambda gpu: system.get_process_name(2**31 - 1), system.NotFoundError),
    ],
)
def test_mistakes(gpu, call, error):
    with pytest.raises(error) as raised:
        call(gpu)
    if error is ValueError:
        assert any(word in str(raised.value) for word in ("must be", "there are no", "has no", "is a number"))


def test_clocks_and_temperatures(gpu):
    for kind in typing.ClockType:
        clock = gpu.get_clock(kind)
        assert 0 < clock.get_current_mhz() <= clock.get_max_mhz(), kind
    lowest, highest = gpu.get_clock("graphics").get_min_max_clock_of_pstate_mhz(0)
    assert lowest <= highest == gpu.get_clock("graphics").get_max_mhz()
    assert gpu.get_clock("graphics").get_offsets(0).clock_offset_mhz >= -10_000
    assert 0 < gpu.temperature.get_sensor() < 120 and gpu.performance_state in gpu.supported_pstates
    assert gpu.temperature.get_thermal_settings("gpu")[0].current_temp >= 0  # 0 on an H200 at times
    with pytest.raises(IndexError):
        gpu.temperature.get_thermal_settings("gpu")[5]
    assert len(gpu.dynamic_pstates_info) == 8 and gpu.dynamic_pstates_info[0].is_present in (True, False)


def test_thresholds_that_are_field_values_since_ada_warn(gpu):
    if gpu.arch < typing.DeviceArch.ADA:
        assert gpu.temperature.get_threshold("slowdown") > 0
        return
    with pytest.warns(DeprecationWarning, match="get_field_values"):
        assert gpu.temperature.get_threshold("slowdown") > 0


def test_fields(gpu):
    field = typing.FieldId
    values = gpu.get_field_values([field.DEV_TOTAL_ENERGY_CONSUMPTION, (field.DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0, 0)])
    assert len(values) == 2 and values[0].field_id is field.DEV_TOTAL_ENERGY_CONSUMPTION
    assert values[0].value > 0 and values[0].timestamp > 10**15 and values[0].latency_usec >= 0
    assert len(gpu.get_field_values([])) == 0
    fine = gpu.get_field_values([field.DEV_MEMORY_TEMP, field.DEV_POWER_INSTANT])
    fine.validate()
    assert all(value > 0 for value in fine.get_all_values())
    wrong = gpu.get_field_values([0])
    with pytest.raises(system.NvmlError):
        wrong.validate()
    with pytest.raises(system.NvmlError):
        _ = wrong[0].value


def test_neighbours(gpu):
    assert 0 in gpu.get_cpu_affinity("socket") and 0 in gpu.get_memory_affinity()
    assert gpu.index not in [device.index for device in gpu.get_topology_nearest_gpus("system")]
    try:
        links = gpu.get_nvlink_count()
    except system.NotSupportedError:
        with pytest.raises(system.NotSupportedError):
            gpu.get_nvlinks()
    else:
        assert len(list(gpu.get_nvlinks())) == links
    with pytest.warns(DeprecationWarning, match="get_nvlink_count"):
        assert system.NvlinkInfo.max_links == 18


def test_two_devices(run_python):
    source = """
from cupola import system
first, second = system.Device.get_all_devices()
print(system.get_topology_common_ancestor(first, second), system.get_p2p_status(first, second, "read"))
print([d.index for d in first.get_topology_nearest_gpus("node")], first.uuid != second.uuid)
"""
    done = run_python(source, CUPOLA_DEVICE="cpu", CUPOLA_CPU_DEVICES="2")
    assert done.stdout.splitlines() == ["node ok", "[1] True"]


def test_a_monitor_may_fork_and_starts_no_driver(run_python):
    source = """
import os, sys
from cupola import system
device = system.Device(index=0)
name = device.name
if os.fork() == 0:
    status = 1
    try:
        status = 0 if name == system.Device(index=0).name == device.name else 2
    finally:
        os._exit(status)
print(os.waitstatus_to_exitcode(os.wait()[1]))
from cupola.bindings import driver
print(int(driver.cuCtxGetCurrent()[0]))
"""
    assert run_python(source).stdout.split() == ["0", "3"], "the driver says that it is not initialized"


def test_importing_loads_nothing(run_python):
    source = """
import sys
from cupola import system
system.typing.EventType, system.TimeoutError
print([name for name in ("cupola.cpu._driver", "numpy", "cupola.core.device._device") if name in sys.modules])
"""
    assert run_python(source).stdout.strip() == "[]"


def test_errors_are_those_of_the_bindings():
    assert system.TimeoutError is nvml.NvmlTimeoutError and system.MemoryError is nvml.NvmlMemoryError
    assert not issubclass(system.TimeoutError, TimeoutError)
    assert set(system._ERRORS) <= set(dir(system)) and all(
        issubclass(getattr(system, e), Exception) for e in system._ERRORS
    )
    with pytest.raises(AttributeError, match="no_such_name"):
        system.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    "names", [n for n in vars(_names).values() if isinstance(n, _names.Names)], ids=lambda n: n.kind.__name__
)
def test_every_member_has_a_number_and_comes_back(names):
    for member in names.kind:
        number = names.number(member)
        assert names.number(member.value) == number
        assert names.number(names.member(number)) == number
    with pytest.raises(ValueError, match="which is no"):
        names.member(12345)


@pytest.mark.cpu_only  # NVIDIA's library trusts such addresses
@pytest.mark.parametrize(
    "call",
    [
        lambda number: nvml.device_get_name(number),
        lambda number: nvml.device_get_memory_info_v2(number),
        lambda number: nvml.device_register_events(system.Device(index=0)._handle, 8, number),
        lambda number: nvml.event_set_wait_v2(number, 0),
        lambda number: nvml.event_set_free(number),
        lambda number: nvml.system_register_events(1, number),
        lambda number: nvml.system_event_set_wait(number, 0, 1),
        lambda number: nvml.system_event_set_free(number),
    ],
)
@pytest.mark.parametrize("number", [0, 1, 0x123456])
def test_addresses_that_are_none(gpu, call, number):
    assert gpu.index == 0, "NVML is initialized"
    with pytest.raises(nvml.InvalidArgumentError):
        call(number)


@pytest.mark.parametrize("subject", ["device", "memory_info", "mig", "pci_info", "temperature", "utilization"])
def test_nothing_of_a_process_is_pickled(gpu, subject):
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(gpu if subject == "device" else getattr(gpu, subject))


def test_the_public_name():
    assert cupola.system is system
