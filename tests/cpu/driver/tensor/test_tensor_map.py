"""Encoding tensor maps: the CPU device accepts what an H200's driver accepts, and says why not."""

from __future__ import annotations

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.tensor import encodings


@pytest.fixture(scope="module")
def base():
    """Device memory, in a context that is current."""
    from cupola import Device

    device = Device(0)
    device.set_current()
    with device.allocate(1 << 20, stream=device.default_stream) as buffer:
        yield int(buffer.handle)


def test_every_recorded_call_is_answered_alike(base):
    wrong = []
    for expected, line in encodings.recorded():
        if expected == encodings.CRASH:
            continue  # the next test
        found, _ = encodings.call(line, base)
        if str(found) != expected:
            wrong.append(f"{line}: {found}, the GPU says {expected}")
    assert wrong == []


@pytest.mark.cpu_only
def test_where_a_driver_crashes_there_is_an_error(base):
    lines = [line for expected, line in encodings.recorded() if expected == encodings.CRASH]
    assert lines
    assert {encodings.call(line, base)[0] for line in lines} == {1}


def test_the_table_is_the_recorded_one():
    assert [line for _, line in encodings.recorded()] == encodings.table()


def encode(base, **changed):
    """cuTensorMapEncodeTiled or, with channels, cuTensorMapEncodeIm2col, by the usual arguments but for some."""
    mode = "im2col" if "channels" in changed or "lower" in changed else "tiled"
    arguments = {**encodings.USUAL[mode], "address": base, **changed}
    rank = arguments["rank"]
    values = [arguments[name] for name in encodings.ORDER[mode].split()]
    function = getattr(driver, encodings.FUNCTIONS[mode])
    sizes = {"strides": rank - 1, "lower": rank - 2, "upper": rank - 2}
    names = encodings.ORDER[mode].split()
    return function(
        *(
            list(value[: sizes.get(name, rank)]) if isinstance(value, tuple) else value
            for name, value in zip(names, values, strict=True)
        )
    )


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"type": 13}, "tensorDataType is 13; packed elements of 4 and 6 bits need compute capability 10.0."),
        ({"rank": 0}, "tensorRank is 0; it must be from 1 to 5."),
        ({"interleave": 1}, "tensorRank is 2; it must be from 3 to 5 with an interleaved layout."),
        ({"dims": (64, 0, 1, 1, 1)}, "globalDim[1] is 0; it must be from 1 to 2^32."),
        ({"strides": (24, 0, 0, 0)}, "globalStrides[0] is 24 bytes; it must be a multiple of 16."),
        ({"box": (16, 257, 1, 1, 1)}, "boxDim[1] is 257; it must be from 1 to 256."),
        ({"box": (3, 8, 1, 1, 1)}, "boxDim[0] is 3 elements of 4 bytes, 12 bytes; it must be a multiple of 16 bytes."),
        (
            {"swizzle": 1},
            "boxDim[0] is 16 elements of 4 bytes, 64 bytes; with a swizzle of 32 bytes it must be 32 bytes at most.",
        ),
        ({"type": 3, "fill": 1}, "oobFill is NAN_REQUEST_ZERO_FMA; tensorDataType, 3, is no floating type."),
        ({"lower": (-129, 0, 0)}, "pixelBoxLowerCorner[0] is -129; with tensorRank 4 it must be from -128 to 127."),
        ({"channels": 257}, "channelsPerPixel is 257; it must be from 1 to 256."),
    ],
)
def test_a_refusal_names_the_rule(base, changed, text):
    refused = encode(base, **changed)
    assert status(refused) == "CUDA_ERROR_INVALID_VALUE"
    assert explanation(refused) == text


@pytest.mark.cpu_only
def test_devices_without_tensor_maps(run_python):
    program = """
from cupola import Device
from tests.cpu.driver.tensor import encodings
Device(0).set_current()
print(encodings.call("tiled", 1 << 20)[0])
"""
    done = run_python(program, CUPOLA_CPU_MODEL="a100")
    assert done.stdout == "801\n", done.stderr


def test_a_map_needs_a_context(run_python):
    program = """
from tests.cpu.driver.tensor import encodings
from cupola.bindings import driver
print(encodings._function("cuTensorMapEncodeTiled") and encodings.call("tiled", 1 << 20)[0])
driver.cuInit(0)
print(encodings.call("tiled", 1 << 20)[0])
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_the_address_is_replaced(base):
    made = ok(encode(base))
    other = ok(encode(base + 64))
    assert made.opaque != other.opaque
    ok(driver.cuTensorMapReplaceAddress(made, base + 64))
    assert made.opaque == other.opaque
