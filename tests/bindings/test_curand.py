"""cuRAND through its bindings: the same numbers on a GPU and on the CPU device, to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cupola import Device, Stream
from cupola.bindings import curand, driver


def rows(name: str) -> list[list[str]]:
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return [line.split() for line in lines if line[0] != "#"]


RECORDED, QUASI = rows("curand_numbers.txt"), rows("curand_quasi.txt")
FORMS: dict[str, tuple[Any, Any]] = {
    "Bits": (np.uint32, lambda *a: curand.generate(*a)),
    "LongLong": (np.uint64, lambda *a: curand.generate_long_long(*a)),
    "Uniform": (np.float32, lambda *a: curand.generate_uniform(*a)),
    "UniformDouble": (np.float64, lambda *a: curand.generate_uniform_double(*a)),
    "Normal": (np.float32, lambda *a: curand.generate_normal(*a, 0.5, 2.0)),
    "NormalDouble": (np.float64, lambda *a: curand.generate_normal_double(*a, 0.5, 2.0)),
    "LogNormal": (np.float32, lambda *a: curand.generate_log_normal(*a, 0.5, 0.25)),
    "Poisson4": (np.uint32, lambda *a: curand.generate_poisson(*a, 4.0)),
    "Poisson50": (np.uint32, lambda *a: curand.generate_poisson(*a, 50.0)),
    "Poisson1500": (np.uint32, lambda *a: curand.generate_poisson(*a, 1500.0)),
    "LogNormalDouble": (np.float64, lambda *a: curand.generate_log_normal_double(*a, 0.5, 0.25)),
}


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    device = Device()
    device.set_current()
    try:
        curand.get_version()
    except RuntimeError as error:
        pytest.skip(f"no cuRAND: {error}")
    stream = device.create_stream()
    yield stream
    stream.close()


@pytest.fixture
def generator(stream: Stream) -> Iterator[int]:
    generator = curand.create_generator(curand.RngType.PSEUDO_PHILOX4_32_10)
    curand.set_stream(generator, int(stream.handle))
    yield generator
    curand.destroy_generator(generator)


def on_cpu_device() -> bool:
    return "CPU device" in Device().name


def draw(stream: Stream, generator: int, form: str, count: int) -> Any:
    dtype, call = FORMS[form]
    result = np.empty(count, dtype)
    with Device().allocate(result.nbytes, stream=stream) as buffer:
        call(generator, int(buffer.handle), count)
        driver.cuMemcpyDtoHAsync(result.view(np.uint8), int(buffer.handle), result.nbytes, stream.handle)
        stream.sync()
    return result


# Normal numbers of a generator of the host have other last bits.
TWISTERS = (141, 142)  # which have no offset
# All 8192 lanes of MT19937 take seconds to make, so they are made once.
CASES = [
    (row, on_host)
    for on_host in (False, True)
    for row in RECORDED
    if not (on_host and ("Normal" in row[4] or row[5] == "140000"))
]


@pytest.mark.parametrize(
    ("row", "on_host"), CASES, ids=["-".join(row[:6]) + "-host" * on_host for row, on_host in CASES]
)
def test_numbers_are_those_of_the_library(stream: Stream, row: list[str], on_host: bool) -> None:
    kind, ordering, seed, offset, forms, counts, expected = row
    try:
        generator = (curand.create_generator_host if on_host else curand.create_generator)(int(kind))
    except curand.cuRANDError as error:
        if on_cpu_device() and any("pip install nvidia-curand" in note for note in error.__notes__):
            pytest.skip(f"the parameters are NVIDIA's: {error.__notes__[0]}")
        raise
    if not on_host:
        curand.set_stream(generator, int(stream.handle))
    if int(ordering):
        curand.set_generator_ordering(generator, int(ordering))
    curand.set_pseudo_random_generator_seed(generator, int(seed))
    if int(kind) not in TWISTERS:
        curand.set_generator_offset(generator, int(offset))
    parts = []
    calls = counts.split("+")
    names = forms.split("+") if "+" in forms else [forms] * len(calls)
    for form, count in zip(names, map(int, calls), strict=True):
        dtype, call = FORMS[form]
        if on_host:
            parts.append(np.empty(count, dtype))
            call(generator, parts[-1], count)
        else:
            parts.append(draw(stream, generator, form, count))
    curand.destroy_generator(generator)
    assert hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest().startswith(expected)


@pytest.mark.parametrize("row", QUASI, ids="-".join)
@pytest.mark.parametrize("on_host", [False, True])
def test_quasirandom_numbers_are_those_of_the_library(stream: Stream, row: list[str], on_host: bool) -> None:
    kind, dimensions, offset, form, counts, expected = row
    on_host = on_host and "Normal" not in form
    try:
        generator = (curand.create_generator_host if on_host else curand.create_generator)(int(kind))
    except curand.cuRANDError as error:
        if on_cpu_device() and any("pip install nvidia-curand" in note for note in error.__notes__):
            pytest.skip(f"the tables are NVIDIA's: {error.__notes__[0]}")
        raise
    if not on_host:
        curand.set_stream(generator, int(stream.handle))
    curand.set_quasi_random_generator_dimensions(generator, int(dimensions))
    curand.set_generator_offset(generator, int(offset))
    parts = []
    for count in map(int, counts.split("+")):
        dtype, call = FORMS[form]
        if on_host:
            parts.append(np.empty(count, dtype))
            call(generator, parts[-1], count)
        else:
            parts.append(draw(stream, generator, form, count))
    curand.destroy_generator(generator)
    assert hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest().startswith(expected)


def test_numbers_are_as_many_in_each_dimension(stream: Stream) -> None:
    generator = curand.create_generator(curand.RngType.QUASI_SOBOL32)
    for dimensions in (0, 20001):
        with pytest.raises(curand.cuRANDError, match="OUT_OF_RANGE"):
            curand.set_quasi_random_generator_dimensions(generator, dimensions)
    curand.set_quasi_random_generator_dimensions(generator, 3)
    for call, status in (
        (lambda: curand.generate(generator, 0, 7), "LENGTH_NOT_MULTIPLE"),
        (lambda: curand.generate_long_long(generator, 0, 6), "TYPE_ERROR"),
        (lambda: curand.set_pseudo_random_generator_seed(generator, 1), "TYPE_ERROR"),
        (lambda: curand.set_generator_ordering(generator, curand.Ordering.PSEUDO_BEST), "OUT_OF_RANGE"),
    ):
        with pytest.raises(curand.cuRANDError, match=status):
            call()
    curand.set_generator_ordering(generator, curand.Ordering.QUASI_DEFAULT)
    curand.destroy_generator(generator)


def test_a_seed_leaves_the_position_and_an_offset_sets_it(stream: Stream, generator: int) -> None:
    first = draw(stream, generator, "Bits", 8)
    curand.set_pseudo_random_generator_seed(generator, 0)
    if on_cpu_device():  # a GPU's library begins again with other work pending
        curand.set_generator_offset(generator, 4)
        np.testing.assert_array_equal(draw(stream, generator, "Bits", 4), first[4:])
    curand.set_generator_offset(generator, 0)
    np.testing.assert_array_equal(draw(stream, generator, "Bits", 8), first)


def test_nothing_is_a_count(stream: Stream, generator: int) -> None:
    curand.generate(generator, 0, 0)


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda g: curand.generate(0, 0, 4), "NOT_INITIALIZED"),
        (lambda g: curand.destroy_generator(0), "NOT_INITIALIZED"),
        (lambda g: curand.create_generator(99), "TYPE_ERROR"),
        (lambda g: curand.set_generator_ordering(g, 999), "OUT_OF_RANGE"),
        (lambda g: curand.set_generator_ordering(g, curand.Ordering.QUASI_DEFAULT), "OUT_OF_RANGE"),
        (lambda g: curand.set_quasi_random_generator_dimensions(g, 3), "TYPE_ERROR"),
        (lambda g: curand.set_generator_ordering(g, curand.Ordering.PSEUDO_SEEDED), "OUT_OF_RANGE"),
        (lambda g: curand.generate_poisson(g, 0, 4, 0.0), "OUT_OF_RANGE"),
        (lambda g: curand.generate_poisson(g, 0, 4, 400001.0), "OUT_OF_RANGE"),
        (lambda g: curand.set_generator_offset(curand.create_generator(142), 1), "TYPE_ERROR"),
    ],
)
def test_bad_calls(stream: Stream, generator: int, call: Any, status: str) -> None:
    with pytest.raises(curand.cuRANDError, match=status) as caught:
        call(generator)
    assert caught.value.status == curand.Status[status]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda g: curand.set_generator_ordering(g, curand.Ordering.PSEUDO_DYNAMIC), "DYNAMIC"),
        (lambda g: curand.generate_poisson(g, 0, 4, 2000.0), "means below 2000"),
    ],
)
def test_what_is_missing_is_named(stream: Stream, generator: int, call: Any, named: str) -> None:
    if not on_cpu_device():
        pytest.skip("a GPU's library has it")
    with pytest.raises(curand.cuRANDError) as caught:
        call(generator)
    assert named in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda g: (curand.set_generator_offset(g, 3), curand.generate_normal(g, 0, 4, 0.0, 1.0)), "offsets"),
    ],
)
def test_normal_numbers_that_are_missing_are_named(stream: Stream, generator: int, call: Any, named: str) -> None:
    if not on_cpu_device():
        pytest.skip("a GPU's library has them")
    with pytest.raises(curand.cuRANDError, match="TYPE_ERROR") as caught:
        call(generator)
    assert named in caught.value.__notes__[0]


def test_normal_numbers_come_in_pairs_but_for_philox(stream: Stream, generator: int) -> None:
    first = draw(stream, generator, "Normal", 8)
    curand.set_generator_offset(generator, 0)
    np.testing.assert_array_equal(draw(stream, generator, "Normal", 7), first[:7])
    other = curand.create_generator(curand.RngType.PSEUDO_XORWOW)
    with pytest.raises(curand.cuRANDError, match="LENGTH_NOT_MULTIPLE"):
        curand.generate_normal(other, 0, 7, 0.0, 1.0)
    curand.destroy_generator(other)


def captured(stream: Stream, kind: int, form: str) -> list[Any]:
    """A hundred numbers, a graph of 5000 and 300 that is launched three times, and a thousand numbers."""
    generator = curand.create_generator(kind)
    curand.set_stream(generator, int(stream.handle))
    curand.set_pseudo_random_generator_seed(generator, 77)
    dtype, call = FORMS[form]
    parts = [draw(stream, generator, form, 100)]
    size = np.dtype(dtype).itemsize
    with (
        Device().allocate(5000 * size, stream=stream) as first,
        Device().allocate(300 * size, stream=stream) as second,
    ):
        builder = stream.create_graph_builder()
        builder.begin_building()
        call(generator, int(first.handle), 5000)
        call(generator, int(second.handle), 300)
        graph = builder.end_building().complete()
        for _ in range(3):
            graph.launch(stream)
            for buffer, count in ((first, 5000), (second, 300)):
                part = np.empty(count, dtype)
                driver.cuMemcpyDtoHAsync(part.view(np.uint8), int(buffer.handle), part.nbytes, stream.handle)
                stream.sync()
                parts.append(part)
        graph.close()
    parts.append(draw(stream, generator, form, 1000))
    curand.destroy_generator(generator)
    return parts


@pytest.mark.parametrize(
    ("kind", "form", "places"),
    [
        (100, "Bits", (100, 5100, 8292, 13292, 16484, 21484, 13592)),
        (100, "NormalDouble", (100, 5100, 8292, 13292, 16484, 21484, 5400)),
        (121, "Uniform", (100, 5100, 82020, 87020, 163940, 168940, 5400)),
        (121, "NormalDouble", (100, 5100, 163940, 168940, 327780, 332780, 5400)),
        (161, "Bits", (100, 5100, 262244, 267244, 524388, 529388, 5400)),
        (161, "NormalDouble", (100, 5100, 262244, 267244, 524388, 529388, 5400)),
    ],
)
def test_a_graph_draws_new_numbers_from_the_same_lanes(
    stream: Stream, kind: int, form: str, places: tuple[int, ...]
) -> None:
    """The places in the plain sequence at which the parts begin were recorded on an H200."""
    generator = curand.create_generator(kind)
    curand.set_stream(generator, int(stream.handle))
    curand.set_pseudo_random_generator_seed(generator, 77)
    plain = draw(stream, generator, form, 600_000)
    curand.destroy_generator(generator)
    parts = captured(stream, kind, form)
    np.testing.assert_array_equal(parts[0], plain[:100])
    for part, place in zip(parts[1:], places, strict=True):
        np.testing.assert_array_equal(part[:20], plain[place : place + 20])


def test_captures_of_which_nothing_is_known_are_refused(stream: Stream, generator: int) -> None:
    if not on_cpu_device():
        pytest.skip("a GPU captures them")
    with Device().allocate(64, stream=stream) as buffer:
        builder = stream.create_graph_builder()
        builder.begin_building()
        with pytest.raises(curand.cuRANDError, match="LAUNCH_FAILURE"):
            curand.generate(generator, int(buffer.handle), 3)
        builder.end_building().close()
