"""What objects look like to people: a line for ``print()`` and prompts, a table for notebooks.

`repr` keeps what CUDA Python has. Imported when an object is shown.
"""

from __future__ import annotations

from html import escape

from cupola.core.base._errors import CUDAError
from cupola.core.device._context import Context
from cupola.core.device._device import Device
from cupola.core.device._event import Event
from cupola.core.device._memory_resource import MemoryResource
from cupola.core.device._stream import Stream
from cupola.core.memory._buffer import Buffer
from cupola.core.program._kernel import Kernel
from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Row = tuple[str, object]


def text_of(obj: Any) -> str:
    """An object in a line, with what it is for people."""
    name = type(obj).__name__
    if getattr(obj, "is_closed", False):
        return f"<{name} closed>"
    try:
        described = _LINES[next(cls for cls in _LINES if isinstance(obj, cls))](obj)
    except (CUDAError, RuntimeError) as error:  # of a context that is gone, or no driver
        described = f"not usable now, {type(error).__name__}"
    return f"<{name} {described}>"


def _kernel_line(kernel: Kernel) -> str:
    count = kernel.num_arguments
    version = kernel.attributes.binary_version
    return f"{kernel._name()!r} sm_{version} {count} parameter{'' if count == 1 else 's'}"


def _code_line(code: ObjectCode) -> str:
    size = len(code.code) if isinstance(code.code, (bytes, bytearray)) else None
    return " ".join(
        filter(None, (repr(code.name) if code.name else "", code.code_type, f"{size:,} bytes" if size else ""))
    )


def _stream_line(stream: Stream) -> str:
    handle = int(stream.handle)
    kind = {1: "the default one", 2: "the default one of each thread"}.get(handle, f"{handle:#x}")
    return f"{kind}, on device {stream.device.device_id}"


def _event_line(event: Event) -> str:
    return f"{int(event.handle):#x}, {'done' if event.is_done else 'not done'}"


def _buffer_line(buffer: Buffer) -> str:
    if not int(buffer.handle):
        return "closed"
    if buffer.is_device_accessible and not buffer.is_host_accessible:
        where = f"on device {buffer.device_id}"
    else:
        where = "of the host and devices" if buffer.is_device_accessible else "of the host"
    return f"{buffer.size:,} bytes {where}"


def _context_line(context: Context) -> str:
    return f"of device {context.device.device_id}" if context.handle is not None else "closed"


_LINES: dict[type, Callable[[Any], str]] = {
    Kernel: _kernel_line,
    ObjectCode: _code_line,
    Stream: _stream_line,
    Event: _event_line,
    Buffer: _buffer_line,
    Context: _context_line,
}


# ---- notebooks -------------------------------------------------------------------------------------------------------


def html_of(obj: Any) -> str:
    """An object as a table; where that cannot be made now, as its line."""
    try:
        rows = _TABLES[next(cls for cls in _TABLES if isinstance(obj, cls))](obj)
    except (CUDAError, RuntimeError, TypeError):  # the last of a resource that users wrote, and that does not say
        return f"<code>{escape(str(obj))}</code>"
    return table(str(obj) if isinstance(obj, Kernel) else repr(obj), rows)


def table(title: str, rows: list[Row]) -> str:
    """A title and rows of a name and a value."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption style='text-align:left'><code>{escape(title)}</code></caption>{cells}</table>"


def size(count: int) -> str:
    """A number of bytes for people."""
    amount, units = float(count), ["bytes", "KB", "MB", "GB", "TB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.4g} {units[0]}"


def _device_rows(device: Device) -> list[Row]:
    properties = device.properties
    major, minor = device.compute_capability
    return [
        ("compute capability", f"{major}.{minor}"),
        ("multiprocessors", properties.multiprocessor_count),
        ("memory", size(device.total_memory)),
        ("L2 cache", size(properties.l2_cache_size)),
        ("threads a block", f"{properties.max_threads_per_block:,}"),
        ("threads a multiprocessor", f"{properties.max_threads_per_multiprocessor:,}"),
        ("shared memory a block", f"{size(properties.max_shared_memory_per_block)}, "
                                  f"{size(properties.max_shared_memory_per_block_optin)} if asked for"),
        ("registers a block", f"{properties.max_registers_per_block:,}"),
        ("UUID", device.uuid),
    ]  # fmt: skip


def _kernel_rows(kernel: Kernel) -> list[Row]:
    attributes, properties = kernel.attributes, Device().properties
    rows: list[Row] = [
        ("registers a thread", attributes.num_regs),
        ("shared memory", size(attributes.shared_size_bytes)),
        ("local memory a thread", size(attributes.local_size_bytes)),
        ("constant memory", size(attributes.const_size_bytes)),
        ("most threads a block", f"{attributes.max_threads_per_block:,}"),
    ]
    room = properties.max_threads_per_multiprocessor
    for threads in (64, 128, 256, 512, 1024):
        if threads <= attributes.max_threads_per_block:
            blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, 0)
            share = f"{100 * blocks * threads / room:.0f} %, {blocks} blocks a multiprocessor"
            rows.append((f"occupancy with {threads} threads", share))
    return rows


def _resource_rows(resource: Any) -> list[Row]:
    reach = [side for side in ("host", "device") if getattr(resource, f"is_{side}_accessible")]
    rows: list[Row] = [("can be used by", " and ".join(reach))]
    attributes = getattr(resource, "attributes", None)
    if attributes is not None:
        for name, text in (
            ("used_mem_current", "in use"),
            ("used_mem_high", "most in use so far"),
            ("reserved_mem_current", "reserved"),
        ):
            if (value := getattr(attributes, name, None)) is not None:
                rows.append((text, size(value)))
    return rows


_TABLES: dict[type, Callable[[Any], list[Row]]] = {
    Device: _device_rows,
    Kernel: _kernel_rows,
    MemoryResource: _resource_rows,
}
