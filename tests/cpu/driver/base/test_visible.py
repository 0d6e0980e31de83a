"""CUDA_VISIBLE_DEVICES on the CPU device: which devices there are, and in which order."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.cpu_only

UUID = "GPU-6375706f-6c61-0000-6832-30300000000"  # of an H200 of the CPU device, without its number

# What the variable says -> the places of the devices that are seen, of four.
LISTS = {
    None: [0, 1, 2, 3],
    "2,0": [2, 0],
    "3": [3],
    " 1 , 2": [1, 2],
    "1,7,2": [1],
    "0,2,-1,1": [0, 2],
    "1,x": [1],
    "1a, +2,03;0": [1, 2, 3],  # what is behind a number does not count
    f" {UUID}1": [],
    f"{UUID}1 ,{UUID}25": [1, 2],
    "1,": [1],
    "": [],
    "-1": [],
    "4": [],
    "NoDevFiles": [],
    f"{UUID}3,{UUID}0": [3, 0],
    f"{UUID.replace('-', '').replace('GPU', 'GPU-')}2": [2],
    f"{UUID.upper()}3": [3],
    f"{UUID.lower()}3": [],
    f"{UUID}3,0": [3],  # numbers and UUIDs do not go together
    f"2,{UUID}1": [2],
    "GPU-6375": [],  # several have it
    "GPU-": [],
    f"1,{UUID}9": [1],
    f"1,MIG-{UUID}2/0/0": [1],
}

TWICE = ("2,2", f"{UUID}1,{UUID}1")

# Each in a process of its own, forked before the driver starts.
PROGRAM = """
import json, os, sys
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok
for text in json.loads(sys.stdin.read()):
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if text is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = text
    sys.stdout.flush()
    if os.fork():
        os.wait()
        continue
    result = driver.cuInit(0)
    if int(result[0]):
        print(json.dumps([result[0].name, explanation(result)]))
        os._exit(sys.stdout.flush() or 0)
    seen = [ok(driver.cuDeviceGetUuid(i)).bytes[-1] for i in range(ok(driver.cuDeviceGetCount()))]
    buses = [ok(driver.cuDeviceGetPCIBusId(16, i)) for i in range(len(seen))]
    assert [int(bus[5:7], 16) - 16 for bus in buses] == seen, buses
    assert [int(ok(driver.cuDeviceGetByPCIBusId(bus))) for bus in buses] == list(range(len(seen)))
    hidden = driver.cuDeviceGetByPCIBusId(b"0000:%02x:00.0" % (16 + min({0, 1, 2, 3, 4} - set(seen))))
    assert hidden[0].name == "CUDA_ERROR_INVALID_DEVICE"
    print(json.dumps(seen))
    os._exit(sys.stdout.flush() or 0)
"""


def test_lists(run_python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("json.loads(sys.stdin.read())", repr([*LISTS, *TWICE])))
    done = run_python(program, CUPOLA_DEVICE="cpu", CUPOLA_CPU_DEVICES="4", PYTHONPATH=".")
    assert done.returncode == 0, done.stderr
    found = dict(zip([*LISTS, *TWICE], map(json.loads, done.stdout.splitlines()), strict=True))
    for text, wanted in LISTS.items():
        if wanted:
            assert found[text] == wanted, text
        else:
            assert found[text][0] == "CUDA_ERROR_NO_DEVICE", text
            assert f"CUDA_VISIBLE_DEVICES is '{text}'" in found[text][1]
    for text in TWICE:
        assert found[text] == [
            "CUDA_ERROR_INVALID_DEVICE",
            f"CUDA_VISIBLE_DEVICES is '{text}', which names a device twice",
        ]


ABOVE = """
import json
import cupola
from cupola import Device, system
from cupola.bindings import nvml
devices = Device.get_all_devices()
dev = Device.for_rank()
dev.set_current()
x = dev.full(10, 3.0)
assert (x.to_numpy() == 3).all()
print(json.dumps([len(devices), [d.uuid[-1] for d in devices], dev.device_id, system.get_num_devices()
                  if hasattr(system, "get_num_devices") else len(list(system.Device.get_all_devices()))]))
"""


def test_ranks_and_nvml(run_python):
    """A rank takes of the visible devices; NVML sees all."""
    variables = {"CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_DEVICES": "4", "CUDA_VISIBLE_DEVICES": "3,1", "LOCAL_RANK": "3"}
    done = run_python(ABOVE, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [2, ["3", "1"], 1, 4]


def test_without_a_gpu_a_list_that_hides_all_is_about_gpus(run_python):
    """Programs hide GPUs to run on the CPU device."""
    source = "import cupola; print(len(cupola.Device.get_all_devices()))"
    for visible, expected in (("", "2"), ("7", "2"), ("1", "1")):
        done = run_python(source, CUPOLA_DEVICE="auto", CUPOLA_CPU_DEVICES="2", CUDA_VISIBLE_DEVICES=visible)
        assert done.stdout.split() == [expected], done.stderr
