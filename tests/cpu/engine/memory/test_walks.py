"""Threads that walk along an array and look up what they find: how often they do is known when they begin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cupola import (
    Buffer,
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    Program,
    ProgramOptions,
    Stream,
    launch,
)
from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.modules import load_image
from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import run_kernel

FORMS = {
    "up": ("s32", 1, "lt"),
    "unsigned": ("u32", 1, "lt"),
    "wide": ("s64", 1, "lt"),
    "three": ("s32", 3, "lt"),
    "five": ("u64", 5, "lt"),
    "down": ("s32", -1, "ne"),
    "fours": ("s32", 4, "ne"),
    "back": ("s64", -2, "ne"),
    "unknown": ("s32", -2, "gt"),
}
"""What ends a loop: the type of a counter, its step, and how it compares with a number if the loop goes on."""

KERNEL = """
.visible .entry {name}(.param .u64 rows, .param .u64 places, .param .u64 values, .param .u64 sums) {{
    .reg .pred %p; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    ld.param.u64 %rd1, [rows]; ld.param.u64 %rd2, [places]; ld.param.u64 %rd3, [values]; ld.param.u64 %rd4, [sums];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd5, %r4, 12;
    add.s64 %rd6, %rd1, %rd5;
    ld.global.u32 %r5, [%rd6]; ld.global.u32 %r6, [%rd6+4]; ld.global.u32 %r7, [%rd6+8];
    cvt.s64.s32 %rd10, %r6; cvt.s64.s32 %rd11, %r7;
    mul.wide.s32 %rd7, %r5, 4;
    add.s64 %rd8, %rd2, %rd7;
    mov.u32 %r8, 0;
LOOP:
    ld.global.u32 %r9, [%rd8];
    mul.wide.s32 %rd9, %r9, 4;
    add.s64 %rd12, %rd3, %rd9;
    ld.global.u32 %r10, [%rd12];
    add.s32 %r8, %r8, %r10;{more}
    add.s64 %rd8, %rd8, {distance};
    add.{type} {counter}, {counter}, {step};
    setp.{comparison}.{type} %p, {counter}, {end};
    @%p bra LOOP;
    mul.wide.s32 %rd13, %r4, 8;
    add.s64 %rd14, %rd4, %rd13;
    cvt.u32.u64 %r11, %rd8; cvt.u32.u64 %r12, %rd2;
    sub.s32 %r13, %r11, %r12;
    st.global.u32 [%rd14], %r8;
    st.global.u32 [%rd14+4], %r13;
    ret;
}}
"""
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


HALVES = """
    ld.global.u16 %r14, [%rd8];
    add.s32 %r8, %r8, %r14;"""
"""A load of another size from the same register."""


def written(name: str, distance: int = 4, more: str = "") -> str:
    type, step, comparison = FORMS[name]
    counter, end = ("%rd10", "%rd11") if type.endswith("64") else ("%r6", "%r7")
    return KERNEL.format(
        name=name, type=type, step=step, comparison=comparison, counter=counter, end=end, distance=distance, more=more
    )


def goes_on(comparison: str, counter: int, end: int) -> bool:
    return {"lt": counter < end, "ne": counter != end, "gt": counter > end}[comparison]


@pytest.fixture(scope="module")
def code() -> ObjectCode:
    halves = written("up", more=HALVES).replace(" up(", " halves(")
    return ObjectCode.from_ptx((HEADER + "".join(map(written, FORMS)) + halves).encode())


@pytest.mark.parametrize("blocks", [10, 64], ids=["in fours", "one by one"])
@pytest.mark.parametrize("name", FORMS)
def test_loops_that_end_in_some_way(name: str, blocks: int, code: ObjectCode) -> None:
    """The last rows end where the memory does; some counters are past their ends before they begin.

    Some rows are far longer than others.
    """
    type, step, comparison = FORMS[name]
    random = np.random.default_rng(3)
    begins, counters = random.integers(0, 400, 320), random.integers(0 if type[0] == "u" else -9, 99, 320)
    often = np.where(random.random(320) < 0.05, 99, random.integers(1, 12, 320))
    begins[-32:] = 512 - often[-32:]
    ends = counters + step * often
    if comparison != "ne":
        ends -= np.sign(step) * random.integers(0, abs(step), 320)
        past = random.random(320) < 0.2
        ends[past], often[past] = counters[past], 1
    places, values = random.integers(0, 200, 512).astype(np.int32), random.integers(-99, 99, 200).astype(np.int32)
    rows, sums = np.stack([begins, counters, ends], 1).astype(np.int32), np.zeros((320, 2), np.int32)
    run_kernel(code.get_kernel(name), blocks, 320 // blocks, rows, places, values, sums)
    for begin, counter, end, times, (total, way) in zip(begins, counters, ends, often, sums.tolist(), strict=True):
        assert not goes_on(comparison, counter + step * times, end)
        assert total == values[places[begin : begin + times]].sum()
        assert way == 4 * (begin + times)


@pytest.mark.parametrize("threads", [32, 5], ids=["in fours", "one by one"])
def test_two_sizes_at_one_place(threads: int, code: ObjectCode) -> None:
    """A register that counts elements of one size may also be an address of another size."""
    random = np.random.default_rng(4)
    often, begins = random.integers(1, 12, 320), random.integers(0, 500, 320)
    places, values = random.integers(0, 200, 512).astype(np.int32), random.integers(-99, 99, 200).astype(np.int32)
    rows, sums = np.stack([begins, 0 * often, often], 1).astype(np.int32), np.zeros((320, 2), np.int32)
    run_kernel(code.get_kernel("halves"), 320 // threads, threads, rows, places, values, sums)
    found = [places[begin : begin + times] for begin, times in zip(begins, often, strict=True)]
    assert sums[:, 0].tolist() == [int(values[each].sum() + each.sum()) for each in found]


@pytest.mark.cpu_only
def test_what_is_written_twice() -> None:
    def is_quick(name: str, distance: int = 4) -> bool:
        module = load_image((HEADER + written(name, distance)).encode())
        one, four = (bodies.emit_body(module.facts(0, (x, 1, 1))).ir for x in (31, 32))
        assert ("\nquick" in one) == ("\ntogether" in four) == ("\nalone" in four)
        return "\nquick" in one

    assert [name for name in FORMS if not is_quick(name)] == ["unknown"]
    assert is_quick("up", 400)
    assert not is_quick("up", -4) and not is_quick("up", 6)


LATE = r"""
// The first blocks find everything in its place, so that the last one is checked by what they have left behind.
#define WALK(name, type, first, last, step) extern "C" __global__ void name(int *data, int *other, int n) { \
    int i = threadIdx.x, total = 0; \
    bool wrong = blockIdx.x == gridDim.x - 1 && i == 5; \
    int j = data[i] + 2 * i % 62; \
    type end = wrong ? last : data[i] + 2; \
    _Pragma("unroll 1") for (type c = wrong ? first : data[i]; c < end; c += step) total += data[other[j++]]; \
    if (total) other[0] = 0; }
WALK(past, int, 0, 55, 1) WALK(far_away, int, 0, 0x7fffffff, 1) WALK(wide, long long, 0, 1ll << 62, 1)
WALK(wrapping, unsigned, 0xfffffe00, 0xffffffff, 4096)
"""


LOOK_UP = r"""
extern "C" __global__ void up(int *data, int *other, int n) {
    int i = threadIdx.x, total = 0;
    int far = blockIdx.x == gridDim.x - 1 && i == 6 ? 1 << 20 : 0, last = i % 4 + 3;
    int j = data[i];
    _Pragma("unroll 1") for (int c = data[i]; c < last; ++c, ++j) total += data[other[j] + (c == 4 ? far : 0)];
    if (total) other[0] = 0; }
"""


@pytest.mark.cpu_only
def test_a_look_up_that_is_wrong_late_is_named() -> None:
    texts = explanations(LOOK_UP, {"up": {"grid": 40}})
    assert "read of 4 bytes" in texts["up"] and "in thread (6, 0, 0) of block (39, 0, 0)" in texts["up"], texts


@pytest.mark.cpu_only
def test_a_walk_that_goes_too_far_late_is_named() -> None:
    texts = explanations(LATE, dict.fromkeys(["past", "far_away", "wide", "wrapping"], {"grid": 40}))
    assert all("in thread (5, 0, 0) of block (39, 0, 0)" in text for text in texts.values()), texts
    assert all("read of 4 bytes" in text and "just past the end of a 256-byte" in text for text in texts.values())


ELSEWHERE = r"""
extern "C" __global__ void rows(const int *begins, const long long *places, const float *values, float *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float total = 0;
    for (int j = begins[i]; j < begins[i + 1]; ++j) total += values[places[j]];
    sums[i] = total; }
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("block", [64, 33], ids=["in fours", "one by one"])
def test_look_ups_in_more_than_one_allocation(block: int) -> None:
    """At any point of a walk a look-up may be in another allocation than those before; some threads walk nowhere."""
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    random = np.random.default_rng(8)
    n = 500
    lengths = np.where(random.random(n) < 0.3, 0, random.integers(1, 9, n))
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    here, there = (random.integers(-99, 99, 300).astype(np.float32) for _ in range(2))
    first, second = (stored(dev, stream, array) for array in (here, there))
    count = int(lengths.sum())
    chosen, is_there = random.integers(0, 300, count), random.random(count) < 0.02
    distance = (int(second.handle) - int(first.handle)) // 4
    places = (chosen + np.where(is_there, distance, 0)).astype(np.int64)
    sums = stored(dev, stream, np.full(n, 7, np.float32))
    kernel = Program(ELSEWHERE, "c++", ProgramOptions(arch=f"sm_{dev.arch}")).compile("cubin").get_kernel("rows")
    arguments = stored(dev, stream, begins), stored(dev, stream, places), first, sums, n
    launch(stream, LaunchConfig(grid=-(-n // block), block=block), kernel, *arguments)
    host = LegacyPinnedMemoryResource().allocate(4 * n)
    sums.copy_to(host, stream=stream)
    stream.sync()
    looked_up = np.where(is_there, there[chosen], here[chosen])
    expected = [looked_up[begin:end].sum() for begin, end in pairwise(begins)]
    assert np.from_dlpack(host).view(np.float32).tolist() == expected


def stored(dev: Device, stream: Stream, array: np.ndarray) -> Buffer:
    host = LegacyPinnedMemoryResource().allocate(array.nbytes)
    np.from_dlpack(host).view(array.dtype)[:] = array
    buffer = dev.allocate(array.nbytes, stream=stream)
    buffer.copy_from(host, stream=stream)
    stream.sync()
    return buffer
