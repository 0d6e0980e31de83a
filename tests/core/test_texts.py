"""What objects look like: a line for people beside the repr of CUDA Python, and tables for notebooks."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

import cupola
from cupola import LEGACY_DEFAULT_STREAM, PinnedMemoryResource, StreamOptions

SOURCE = 'extern "C" __global__ void saxpy(float a, const float* x, float* y) { y[threadIdx.x] += a * x[threadIdx.x]; }'


def pretty(obj: object) -> str:
    texts: list[str] = []
    obj._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def test_lines_for_people(device, stream):
    code = cupola.compile(SOURCE, options={"name": "a.cu"})
    buffer, event = device.allocate(2000, stream=stream), stream.record()
    stream.sync()
    pinned = PinnedMemoryResource().allocate(16, stream=stream)
    for obj, pattern in (
        (code.get_kernel("saxpy"), rf"<Kernel 'saxpy' sm_{device.arch} 3 parameters>"),
        (code, r"<ObjectCode ('a.cu' )?cubin [0-9,]+ bytes>"),
        (stream, r"<Stream 0x[0-9a-f]+, on device 0>"),
        (LEGACY_DEFAULT_STREAM, "<Stream the default one, on device 0>"),
        (event, "<Event 0x[0-9a-f]+, done>"),
        (buffer, "<Buffer 2,000 bytes on device 0>"),
        (pinned, "<Buffer 16 bytes of the host and devices>"),
        (stream.context, "<Context of device 0>"),
    ):
        assert re.fullmatch(pattern, str(obj)) and pretty(obj) == f"{obj}", str(obj)
    spare = device.create_stream(options=StreamOptions())
    for obj in (buffer, event, spare):
        obj.close()
        assert str(obj) == f"<{type(obj).__name__} closed>"


def test_reprs_that_name_what_it_is(device):
    kernel = cupola.compile(SOURCE).get_kernel("saxpy")
    assert repr(kernel.occupancy) == f"<KernelOccupancy of <Kernel 'saxpy' sm_{device.arch} 3 parameters>>"
    count = device.properties.multiprocessor_count
    assert repr(device.resources.sm) == f"<SMResource of {count} multiprocessors>"
    # Of drivers before CUDA 13.1 there are no workqueues.
    assert re.fullmatch(
        rf"<DeviceResources sm=<SMResource of {count} multiprocessors> "
        "(workqueue=<WorkqueueResource scope=.* limit=[0-9]+>|workqueue: RuntimeError)>",
        repr(device.resources),
    )


def test_tables_for_notebooks(device, stream):
    kernel = cupola.compile(SOURCE).get_kernel("saxpy")
    pages = {
        "device": device._repr_html_(),
        "kernel": kernel._repr_html_(),
        "pool": device.memory_resource._repr_html_(),
    }
    for page in pages.values():
        assert (
            page.startswith("<table>") and page.endswith("</table>") and page.count("<tr>") == page.count("</tr>") > 1
        )
    assert f"<td style='text-align:left'>{kernel.attributes.num_regs}</td>" in pages["kernel"]
    assert "occupancy with 256 threads" in pages["kernel"] and " blocks a multiprocessor" in pages["kernel"]
    assert "compute capability" in pages["device"] and device.uuid in pages["device"]
    assert "most in use so far" in pages["pool"] and "&lt;DeviceMemoryResource" in pages["pool"]


def test_a_resource_that_does_not_say(device):
    class Mine(cupola.MemoryResource):
        pass

    assert re.fullmatch("<code>&lt;.*Mine object.*&gt;</code>", Mine()._repr_html_())


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KB"), (5 << 40, "5 TB")])
def test_sizes(count, text):
    from cupola.core import _texts

    assert _texts.size(count) == text
