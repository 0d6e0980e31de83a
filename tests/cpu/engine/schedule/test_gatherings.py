"""Threads of a warp that come to an operation at different instructions. The table is what an H200 did."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import on_cpu_device
from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import run

HEAD = r"""
#define FULL 0xffffffffu
#define ASM(text, ...) ([&] { int r_; asm volatile(text : "=r"(r_) : __VA_ARGS__ : "memory"); return r_; }())
#define IDX(v, l, m) ASM("shfl.sync.idx.b32 %0, %1, %2, 0x1f, %3;", "r"(v), "r"(l), "r"(m))
#define IDX16(v, l, m) ASM("shfl.sync.idx.b32 %0, %1, %2, 0x101f, %3;", "r"(v), "r"(l), "r"(m))
#define BFLY(v, l, m) ASM("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, %3;", "r"(v), "r"(l), "r"(m))
#define UP(v, l, m) ASM("shfl.sync.up.b32 %0, %1, %2, 0, %3;", "r"(v), "r"(l), "r"(m))
#define PRED "{.reg .pred p, o; setp.ne.s32 p, %1, 0; "
#define BALLOT(p, m) ASM(PRED "vote.sync.ballot.b32 %0, p, %2;}", "r"(int(p)), "r"(m))
#define ANY(q, m) ASM(PRED "vote.sync.any.pred o, p, %2; selp.s32 %0, 1, 0, o;}", "r"(int(q)), "r"(m))
#define ALL(q, m) ASM(PRED "vote.sync.all.pred o, p, %2; selp.s32 %0, 1, 0, o;}", "r"(int(q)), "r"(m))
#define MATCH(v, m) ASM("match.any.sync.b32 %0, %1, %2;", "r"(v), "r"(m))
#define MATCHALL(v, m) ASM("match.all.sync.b32 %0, %1, %2;", "r"(v), "r"(m))
#define ADD(v, m) ASM("redux.sync.add.s32 %0, %1, %2;", "r"(v), "r"(m))
#define MAX(v, m) ASM("redux.sync.max.s32 %0, %1, %2;", "r"(v), "r"(m))
#define ELECT(m) ASM("{.reg .pred o; elect.sync %0|o, %1;}", "r"(m))
#define SYNC(m) asm volatile("bar.warp.sync %0;" :: "r"(m) : "memory")
#define BAR() asm volatile("barrier.sync 0;" ::: "memory")
extern "C" __global__ void table(int *out, int n) {
    volatile int *sink = out + 32;
    int t = threadIdx.x, r = -7;
"""
ARMS = (
    HEAD.replace("{", "{{").replace("}", "}}")
    + "if (t < 16) {{ sink[t] = 1; {0}; sink[t] = 3; }} else {{ sink[t] = 2; {1}; sink[t] = 5; }} out[t] = r; }}"
)
LOOP = HEAD.replace("{", "{{").replace("}", "}}") + (
    "int trips = t {0} 16 ? n : n + 2; r = 0;"
    "for (int i = 0; i < trips; i++) {{ int v = t * 10 + i; (void)v; r = r * 7 + ({1}); sink[t] = r; }}"
    "{2}; out[t] = r; }}"
)

EXITED = -1  # nothing was written
LOW, HIGH = list(range(16)), list(range(16, 32))


def halves(low: int, high: int) -> list[int]:
    return [low] * 16 + [high] * 16


# What each half does, and what each thread had; None: they wait forever.
IN_ARMS: dict[str, tuple[str, str, list[int] | None]] = {
    "shfl": ("r = IDX(t, t ^ 16, FULL)", "r = IDX(t, t ^ 16, FULL)", HIGH + LOW),
    "another shfl": ("r = IDX(t, t ^ 16, FULL)", "r = BFLY(t, 16, FULL)", None),
    "shfl, other clamp": ("r = IDX(t, t ^ 16, FULL)", "r = IDX16(t, t ^ 16, FULL)", HIGH + HIGH),
    "shfl up": ("r = UP(t, 1, FULL)", "r = UP(t, 1, FULL)", [0, *range(31)]),
    "shfl up, other distance": ("r = UP(t, 1, FULL)", "r = UP(t, 2, FULL)", [0, *range(15), *range(14, 30)]),
    "shfl and vote": ("r = IDX(t, t ^ 16, FULL)", "r = BALLOT(t & 1, FULL)", None),
    "shfl and bar.warp.sync": ("r = IDX(t, t ^ 16, FULL)", "SYNC(FULL)", None),
    "shfl and redux": ("r = IDX(t, t ^ 16, FULL)", "r = ADD(t, FULL)", None),
    "bar.warp.sync": ("r = 4; SYNC(FULL)", "r = 5; SYNC(FULL)", halves(4, 5)),
    "ballot": ("r = BALLOT(t & 1, FULL)", "r = BALLOT(t & 2, FULL)", halves(-859002198, -859002198)),
    "ballot and any": ("r = BALLOT(t & 1, FULL)", "r = ANY(t == 40, FULL)", None),
    "any": ("r = ANY(t == 40, FULL)", "r = ANY(t == 20, FULL)", halves(1, 1)),
    "any and all": ("r = ANY(t == 20, FULL)", "r = ALL(t != 3, FULL)", None),
    "all": ("r = ALL(t == 40, FULL)", "r = ALL(t != 33, FULL)", halves(0, 0)),
    "match": (
        "r = MATCH(t & 3, FULL)",
        "r = MATCH(t & 3, FULL)",
        [286331153, 572662306, 1145324612, -2004318072] * 8,
    ),
    "match all": ("r = MATCHALL(8, FULL)", "r = MATCHALL(8, FULL)", halves(-1, -1)),
    "match any and all": ("r = MATCH(8, FULL)", "r = MATCHALL(8, FULL)", None),
    "redux": ("r = ADD(1, FULL)", "r = ADD(100, FULL)", halves(1616, 1616)),
    "another redux": ("r = ADD(1, FULL)", "r = MAX(t, FULL)", None),
    "elect": ("r = ELECT(FULL)", "r = ELECT(FULL)", halves(0, 0)),
    "elect and ballot": ("r = ELECT(FULL)", "r = BALLOT(t & 1, FULL)", None),
    "twice and once": (
        "r = IDX(t, t ^ 16, FULL); r = 1000 * r + IDX(t + 100, t ^ 16, FULL)",
        "r = IDX(t, t ^ 16, FULL)",
        [1000 * i for i in HIGH] + LOW,
    ),
    "exited": ("r = IDX(t, t ^ 1, FULL)", "return", [i ^ 1 for i in LOW] + [EXITED] * 16),
    "exited, vote": ("r = BALLOT(1, FULL)", "return", halves(65535, EXITED)),
    "exited, redux": ("r = ADD(1, FULL)", "return", halves(16, EXITED)),
    "fewer members": ("r = IDX(t, t ^ 1, FULL)", "r = IDX(t, t ^ 1, 0xffff0000u)", [i ^ 1 for i in range(32)]),
    "fewer members, then all": (
        "r = IDX(t, t ^ 16, FULL)",
        "r = 1000 * IDX(t, t ^ 1, 0xffff0000u); r += IDX(t, t ^ 16, FULL)",
        HIGH + [1000 * (i ^ 1) + i - 16 for i in HIGH],
    ),
    "masks that overlap": ("r = IDX(t, t ^ 1, 0x00ffffffu)", "r = IDX(t, t ^ 1, FULL)", None),
    "masks that both overlap": ("r = BALLOT(1, 0x00ffffffu)", "r = BALLOT(1, 0xffffff00u)", None),
    "fewer members, vote": ("r = BALLOT(1, FULL)", "r = BALLOT(1, 0xffff0000u)", halves(65535, -65536)),
    "fewer members, redux": ("r = ADD(1, FULL)", "r = ADD(1, 0xffff0000u)", halves(16, 16)),
    "barrier and shfl": ("r = 1; BAR()", "r = IDX(t, t ^ 1, FULL); BAR()", None),
    "barrier and vote": ("r = 1; BAR()", "r = BALLOT(1, FULL); BAR()", None),
}

# Which half makes two trips more, what is done in each trip, and what behind the loop.
IN_LOOPS: dict[str, tuple[str, str, str, list[int] | None]] = {
    "first half leaves": ("<", "IDX16(v, 3, FULL)", "", halves(1719, 532656)),
    "second half leaves": (">=", "IDX16(v, 3, FULL)", "", halves(84496, 10839)),
    "to bar.warp.sync": ("<", "IDX16(v, 3, FULL)", "SYNC(FULL)", None),
    "to a barrier": ("<", "IDX16(v, 3, FULL)", "BAR()", None),
    "to the same operation": (
        "<",
        "IDX16(v, 3, FULL)",
        "r += IDX(t, t ^ 16, FULL)",
        [1882 + 10 * i for i in LOW] + [532656] * 16,
    ),
    "to another operation": ("<", "IDX16(v, 3, FULL)", "r += BALLOT(1, FULL)", None),
    "vote": ("<", "BALLOT(1, FULL)", "", halves(-57, -527081)),
    "redux": ("<", "ADD(1, FULL)", "", halves(1824, 89504)),
    "redux, to a barrier": ("<", "ADD(1, FULL)", "BAR()", None),
}

WAYS = {
    "three": (
        "if (t % 3 == 0) { sink[t] = 1; r = IDX(t, (t + 1) % 32, FULL); sink[t] = 2; }"
        "else if (t % 3 == 1) { sink[t] = 3; r = IDX(t, (t + 1) % 32, FULL); sink[t] = 5; }"
        "else { sink[t] = 6; r = IDX(t, (t + 1) % 32, FULL); sink[t] = 8; } out[t] = r; }",
        [(i + 1) % 32 for i in range(32)],
    ),
    "one waits for memory": (
        "if (t == 0) { while (!sink[40]) ; r = IDX(t, 5, FULL); }"
        "else { if (t == 31) { sink[40] = 1; } r = IDX(t, t ^ 1, FULL); } out[t] = r; }",
        [5, *(i ^ 1 for i in range(1, 32))],
    ),
}


def check(source: str, expected: list[int] | None) -> None:
    if expected is None:
        if not on_cpu_device():
            pytest.skip("threads wait forever, which a GPU does not notice")
        text = explanations(source, {"table": {}}, buffers=(512,), numbers=(3,))["table"]
        assert "the block cannot go on" in text and "members that never arrive" in text
        return
    out = np.full(128, EXITED, np.int32)
    out[32:] = 0
    run(source, "table", 1, 32, out, np.int32(3))
    assert out[:32].tolist() == expected


@pytest.mark.unchecked(reason="masks name threads that are elsewhere or have exited")
@pytest.mark.parametrize("name", IN_ARMS)
def test_in_two_arms(name: str) -> None:
    low, high, expected = IN_ARMS[name]
    check(ARMS.format(low, high), expected)


@pytest.mark.unchecked(reason="masks name threads that are elsewhere or have exited")
@pytest.mark.parametrize("name", IN_LOOPS)
def test_in_loops_of_different_lengths(name: str) -> None:
    longer, operation, behind, expected = IN_LOOPS[name]
    check(LOOP.format(longer, operation, behind), expected)


@pytest.mark.parametrize("name", WAYS)
def test_on_several_ways(name: str) -> None:
    source, expected = WAYS[name]
    check(HEAD + source, expected)
