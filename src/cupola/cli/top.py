"""``cupola top``: the devices, how busy they are, and the processes that use them, again and again."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeVar

from cupola import system

Value = TypeVar("Value")

_CLEAR = "\x1b[H\x1b[J"  # cursor to the top, and nothing below it


@dataclass(frozen=True)
class Process:
    """A process that computes on a device."""

    pid: int
    name: str
    memory: int  # bytes


@dataclass(frozen=True)
class State:
    """A device at one moment; None for values that it does not report."""

    index: int
    name: str
    uuid: str
    utilization: int | None  # percent
    memory_used: int  # bytes
    memory_total: int  # bytes
    temperature: int | None  # degrees Celsius
    power: int | None  # watts
    sm_clock: int | None  # MHz
    processes: list[Process]


def _asked(question: Callable[[], Value]) -> Value | None:
    try:
        return question()
    except (system.NotSupportedError, system.NoPermissionError, system.UnknownError):
        return None


def _power(device: system.Device) -> int:
    return round(device.get_field_values([system.typing.FieldId.DEV_POWER_INSTANT])[0].value / 1000)


def _name(pid: int) -> str:
    try:
        return system.get_process_name(pid)
    except system.NvmlError:
        return "?"  # it has ended, or belongs to another user


def look(device: system.Device) -> State:
    """The state of a device now."""
    memory = device.memory_info
    running = _asked(lambda: device.compute_running_processes) or []
    return State(
        index=device.index,
        name=device.name,
        uuid=device.uuid,
        utilization=_asked(lambda: device.utilization.gpu),
        memory_used=memory.used,
        memory_total=memory.total - memory.reserved,
        temperature=_asked(device.temperature.get_sensor),
        power=_asked(lambda: _power(device)),
        sm_clock=_asked(device.get_clock("sm").get_current_mhz),
        processes=[Process(p.pid, _name(p.pid), p.used_gpu_memory) for p in running],
    )


def table(states: list[State]) -> str:
    """The states as people read them."""
    version = ".".join(str(part) for part in system.get_kernel_mode_driver_version())
    lines = [f"cupola top   {time.strftime('%H:%M:%S')}   driver {version}", ""]
    lines.append(f"{'device':<42} {'use':>5} {'memory':>20} {'temp':>6} {'power':>7} {'SM clock':>9}")
    for state in states:
        memory = f"{_mib(state.memory_used)} / {_mib(state.memory_total)} MiB"
        lines.append(
            f"{state.index:>2} {state.name[:39]:<39} {_unit(state.utilization, ' %'):>5} {memory:>20}"
            f" {_unit(state.temperature, ' C'):>6} {_unit(state.power, ' W'):>7}"
            f" {_unit(state.sm_clock, ' MHz'):>9}"
        )
    lines += ["", f"{'device':>6} {'pid':>9} {'memory':>12}  process"]
    found = [(state.index, process) for state in states for process in state.processes]
    for index, process in found:
        lines.append(f"{index:>6} {process.pid:>9} {_mib(process.memory) + ' MiB':>12}  {process.name}")
    if not found:
        lines.append("       no processes")
    return "\n".join(lines) + "\n"


def _unit(value: int | None, unit: str) -> str:
    return "-" if value is None else f"{value}{unit}"


def _mib(size: int) -> str:
    return str(size >> 20)


def run(interval: float, count: int | None, as_json: bool) -> int:
    """Show the devices every `interval` seconds, `count` times (None: until Ctrl-C). Returns the exit status."""
    screen = sys.stdout.isatty() and not as_json and count != 1
    shown = 0
    try:
        while True:
            states = [look(device) for device in system.Device.get_all_devices()]
            text = json.dumps([asdict(state) for state in states]) + "\n" if as_json else table(states)
            sys.stdout.write((_CLEAR if screen else "\n" if shown and not as_json else "") + text)
            sys.stdout.flush()
            shown += 1
            if shown == count:
                return 0
            time.sleep(interval)
    except KeyboardInterrupt:
        return 0
