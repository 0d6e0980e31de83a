"""A timeline as trace events, the format of Chrome and Perfetto."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from cupola.profile._record import Record

HOST = 0  # number of the process that stands for the host; a device has 1 + its ordinal


def trace(records: Sequence[Record]) -> str:
    """The text of a file of trace events."""
    events: list[dict[str, Any]] = [_named("process_name", HOST, 0, f"host, process {os.getpid()}")]
    start = min((record.begin for record in records), default=0)
    calls = {record.call: record for record in records if record.kind == "call"}
    memory: dict[int, int] = {}
    for process, place in sorted({(1 + record.device, record.place) for record in records}):
        if process == HOST:
            events.append(_named("thread_name", HOST, place, f"thread {place}"))
    for device in sorted({record.device for record in records if record.device >= 0}):
        events.append(_named("process_name", 1 + device, 0, f"device {device}"))
    for number, (device, place) in enumerate(streams(records), 1):
        events.append(_named("thread_name", 1 + device, place, f"stream {number}"))
    for record in records:
        process = 1 + record.device
        event: dict[str, Any] = {
            "name": record.name,
            "cat": record.kind,
            "pid": process,
            "tid": record.place,
            "ts": (record.begin - start) / 1e3,
            "ph": "X",
            "dur": (record.end - record.begin) / 1e3,
            "args": details(record),
        }
        if record.kind == "mark":
            event |= {"ph": "i", "s": "t"}
            del event["dur"]
        events.append(event)
        asked = calls.get(record.call) if record.device >= 0 else None
        if asked is not None and record.kind != "graph":
            flow = {"name": "asked for", "cat": "flow", "id": record.call}
            events.append({**flow, "ph": "s", "pid": HOST, "tid": asked.place, "ts": (asked.begin - start) / 1e3})
            events.append({**flow, "ph": "f", "bp": "e", "pid": process, "tid": record.place, "ts": event["ts"]})
        if record.memory and memory.get(record.device) != record.memory:
            memory[record.device] = record.memory
            count = {"name": "memory in use", "ph": "C", "pid": process, "ts": (record.end - start) / 1e3}
            events.append({**count, "args": {"bytes": record.memory}})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":"))


def streams(records: Sequence[Record]) -> list[tuple[int, int]]:
    """The streams, as devices and numbers, in the order of their first operations."""
    return list(dict.fromkeys((record.device, record.place) for record in records if record.device >= 0))


def details(record: Record) -> dict[str, Any]:
    """What else there is to say, without what says nothing."""
    said: dict[str, Any] = {}
    if record.bytes:
        said["bytes"] = record.bytes
        if record.kind in ("copy", "fill") and record.end > record.begin:
            said["GB/s"] = round(record.bytes / (record.end - record.begin), 3)
    if record.kind == "kernel":
        said |= {"grid": list(record.grid), "block": list(record.block)}
        if record.shared:
            said["dynamic shared memory"] = record.shared
    if record.call:
        said["call"] = record.call
    if record.status:
        said["error"] = record.status
    return said


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
