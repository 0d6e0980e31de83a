"""The launch attributes that few launches need: from users' values to the bytes of ``CUlaunchAttributeValue``.

A table with one row for each attribute (CUDA Driver API, ``CUlaunchAttributeID``): its number, and a function that
checks a value against what the attribute and the current device permit and gives the value to remember and its bytes.

Imported when one of them is first named.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

from cupola.core.device._device import Device
from cupola.core.device._event import Event

Converted = tuple[object, bytes]


def convert(name: str, value: Any) -> Converted:
    """Check a value that is not None: what to remember of it, and its bytes."""
    return ATTRIBUTES[name][1](name, value)


def recognise(found: Mapping[int, bytes]) -> dict[str, Any]:
    """The arguments of ``LaunchConfig`` for the attributes of a kernel node: numbers, and the bytes of the values."""
    made = {}
    for number, data in found.items():
        name, read = _READERS[number]
        value = read(data)
        if value is not None:
            made[name] = value
    if "cluster" not in made:
        made.pop("preferred_cluster", None)
    return made


def _number(name: str, value: Any, least: int, most: int, limit: str) -> int:
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} must be within [{least}, {most}]{limit}, got {number}")
    return number


def _priority(name: str, value: Any) -> Converted:
    from cupola.bindings.driver import cuCtxGetStreamPriorityRange

    status, least, greatest = cuCtxGetStreamPriorityRange()
    if status:  # no context is current: the launch will tell
        least, greatest = 2**31 - 1, -(2**31)
    priority = _number(name, value, greatest, least, f", the range of {Device().name}")
    return priority, struct.pack("i", priority)


def _choice(*choices: str) -> Callable[[str, Any], Converted]:
    def one_of(name: str, value: Any) -> Converted:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
        return str(value), struct.pack("i", choices.index(value))

    return one_of


def _flag(name: str, value: Any) -> Converted:
    return bool(value), struct.pack("i", bool(value))


def _percent(name: str, value: Any) -> Converted:
    percent = _number(name, value, 0, 100, " percent")
    return percent, struct.pack("I", percent)


def _domains(name: str, value: Any) -> Converted:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{name} must be a pair (default, remote) of ints, got {value!r}")
    count = int(Device().properties.mem_sync_domain_count)
    limit = f": {Device().name} has {count} domain{'s' if count > 1 else ''}"
    default, remote = (_number(name, item, 0, count - 1, limit) for item in value)
    return (default, remote), struct.pack("BB", default, remote)


def _cluster(name: str, value: Any) -> Converted:
    extents = tuple(value) if isinstance(value, tuple) else (value,)
    if len(extents) > 3:
        raise ValueError(f"{name} must be an int or a tuple of at most 3 ints, got {value!r}")
    x, y, z = (*(_number(name, extent, 1, 2**32 - 1, "") for extent in extents), 1, 1, 1)[:3]
    return (x, y, z), struct.pack("III", x, y, z)


def _event(name: str, event: Any) -> int:
    if not isinstance(event, Event):
        raise TypeError(f"{name} must be an Event, not {type(event).__name__}")
    if event.is_timing_enabled or event.is_ipc_enabled:
        raise ValueError(
            f"{name} takes an event without timing and not for other processes, such as create_event() makes"
        )
    return int(event.handle)


def _completion_event(name: str, value: Any) -> Converted:
    return value, struct.pack("Pi", _event(name, value), 0)


def _programmatic_event(name: str, value: Any) -> Converted:
    event, at_start = value if isinstance(value, tuple) and len(value) == 2 else (value, False)
    pointer = _event(name, event)
    return (event, bool(at_start)), struct.pack("Pii", pointer, 0, bool(at_start))


_POLICIES = ("default", "spread", "load_balancing")
_SYNC_DOMAINS = ("default", "remote")
_CLUSTER_MODES = ("default", "require_portable", "allow_non_portable")
_MEMORY_MODES = ("default", "require_portable", "allow_non_portable", "allow_oversized", "prefer_oversized")
_PROPERTIES = ("normal", "streaming", "persisting")


def _window(name: str, value: Any) -> Converted:
    if not isinstance(value, Mapping) or not {"memory"} <= set(value) <= {"memory", "size", "hit_ratio", "hit", "miss"}:
        raise TypeError(
            f"{name} must be a dict with memory, and optionally size, hit_ratio, hit and miss; got {value!r}"
        )
    memory = value["memory"]
    size = value.get("size", getattr(memory, "size", None))
    if size is None:
        raise TypeError(f"{name} needs the size of the memory at {memory!r}")
    most = int(Device().properties.max_access_policy_window_size)
    size = _number(f"{name}['size']", size, 0, most, f" bytes on {Device().name}")
    ratio = float(value.get("hit_ratio", 1.0))
    if not 0.0 <= ratio <= 1.0:
        raise ValueError(f"{name}['hit_ratio'] must be within [0, 1], got {ratio}")
    hit, miss = value.get("hit", "persisting"), value.get("miss", "normal")
    if hit not in _PROPERTIES or miss not in _PROPERTIES[:2]:
        raise ValueError(
            f"{name}: hit is one of {', '.join(_PROPERTIES)} and miss normal or streaming; got {hit!r} and {miss!r}"
        )
    pointer = int(memory.handle) if hasattr(memory, "handle") else index(memory)
    packed = struct.pack("PNfii", pointer, size, ratio, _PROPERTIES.index(hit), _PROPERTIES.index(miss))
    return (("memory", memory), ("size", size), ("hit_ratio", ratio), ("hit", hit), ("miss", miss)), packed


# In the order of their numbers.
ATTRIBUTES: dict[str, tuple[int, Callable[[str, Any], Converted]]] = {
    "access_policy_window": (1, _window),
    "cluster_scheduling_policy": (5, _choice(*_POLICIES)),
    "programmatic_event": (7, _programmatic_event),
    "priority": (8, _priority),
    "mem_sync_domain_map": (9, _domains),
    "mem_sync_domain": (10, _choice(*_SYNC_DOMAINS)),
    "preferred_cluster": (11, _cluster),
    "launch_completion_event": (12, _completion_event),
    "device_updatable_kernel_node": (13, lambda name, value: (bool(value), struct.pack("iP", bool(value), 0))),
    "preferred_shared_memory_carveout": (14, _percent),
    "nvlink_util_centric_scheduling": (16, _flag),
    "portable_cluster_size_mode": (17, _choice(*_CLUSTER_MODES)),
    "shared_memory_mode": (18, _choice(*_MEMORY_MODES)),
}


# ---- back from the driver --------------------------------------------------------------------------------------------


def _read_choice(*choices: str) -> Callable[[bytes], str | None]:
    return lambda data: dict(enumerate(choices)).get(int.from_bytes(data, "little"))


def _read_flag(data: bytes) -> bool | None:
    return any(data) or None


def _read_extents(data: bytes) -> tuple[int, ...] | None:
    extents = struct.unpack("III", data)
    return extents if max(extents) > 1 else None


def _read_percent(data: bytes) -> int | None:
    percent = int.from_bytes(data, "little")
    return percent if percent <= 100 else None  # -1: whatever the driver likes


def _read_domains(data: bytes) -> tuple[int, int] | None:
    default, remote = data
    return None if default == 0 and remote <= 1 else (default, remote)  # which is what nodes begin with


def _read_window(data: bytes) -> dict[str, Any] | None:
    pointer, size, ratio, hit, miss = struct.unpack("PNfii", data[:28])
    if size == 0:
        return None
    return {"memory": pointer, "size": size, "hit_ratio": ratio, "hit": _PROPERTIES[hit], "miss": _PROPERTIES[miss]}


# The attributes that graph nodes can have, by number: the argument of LaunchConfig, and a function that returns its
# value, or None if the value is the default.
_READERS: dict[int, tuple[str, Callable[[bytes], Any]]] = {
    1: ("access_policy_window", _read_window),
    2: ("is_cooperative", _read_flag),
    4: ("cluster", _read_extents),
    5: ("cluster_scheduling_policy", _read_choice(*_POLICIES)),
    8: ("priority", lambda data: struct.unpack("i", data)[0]),
    9: ("mem_sync_domain_map", _read_domains),
    10: ("mem_sync_domain", _read_choice(*_SYNC_DOMAINS)),
    11: ("preferred_cluster", _read_extents),
    13: ("device_updatable_kernel_node", _read_flag),
    14: ("preferred_shared_memory_carveout", _read_percent),
    16: ("nvlink_util_centric_scheduling", _read_flag),
    17: ("portable_cluster_size_mode", _read_choice(*_CLUSTER_MODES)),
    18: ("shared_memory_mode", _read_choice(*_MEMORY_MODES)),
}
