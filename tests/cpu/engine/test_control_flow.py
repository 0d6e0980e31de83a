"""Threads that part and meet: every kernel against the same C++ run thread by thread in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from .kernels import run

BLOCKS = [(1, 1, 1), (3, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (250, 1, 1), (48, 3, 1), (16, 16, 1), (7, 5, 2)]


@dataclass(frozen=True)
class Case:
    """A device function ``int f(int t, int n)`` and the same in Python."""

    body: str
    python: Callable[[int, int], int]


def nested_breaks(t: int, n: int) -> int:
    s = 0
    for i in range(t % 7, n):
        if i * t % 11 == 5:
            continue
        for j in range(i):
            if (i + j) % 9 == t % 9:
                break
            if (j ^ t) % 13 == 4:
                s += 1
                continue
            s += j
        if s > 400:
            break
    return s


def early_returns(t: int, n: int) -> int:
    if t % 5 == 0:
        return -1
    s = t
    for i in range(n):
        s = s * 3 + i & 0xFFFF
        if s % 17 == 3:
            return i
        if s % 29 == 7:
            return 1000 + s
    return s if t % 2 else -s


def switches(t: int, n: int) -> int:
    s = 0
    for i in range(n % 20):
        case = (t + i) % 8
        if case == 0:
            s += 1
        if case <= 1:
            s ^= 0x55
        elif case == 2:
            s *= 3
        elif case == 3:
            s -= t
        elif case == 4:
            break
        elif case == 5:
            if s & 1:
                continue
            s += 100
        elif case == 6:
            s |= i
        else:
            s += 7
        s &= 0xFFFFF
    return s


def collatz(t: int, n: int) -> int:
    x, steps = t + 1, 0
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps > n:
            break
    return steps


def short_circuits(t: int, n: int) -> int:
    s = 0
    for i in range(n % 30):
        if (i % 3 == t % 3 and i % 4 != t % 4) or (i > 20 and (t & i)):
            s += i
        s += 1 if i % 2 and t % 2 else (2 if i % 5 == 0 else 3)
    return s


def do_while(t: int, n: int) -> int:
    a, b = t + 5, n % 50 + 3
    while True:
        if a > b:
            a -= b
        else:
            b -= a
        if a == 0 or b == 0 or a == b:
            break
    return a * 1000 + b


def loops_in_branches(t: int, n: int) -> int:
    s = 0
    if t % 3 == 0:
        for i in range(t % 10):
            s += i * i
    elif t % 3 == 1:
        i = n % 40
        while i > t % 6:
            s ^= i
            i -= 2
    else:
        for i in range(3):
            for j in range(t % 4):
                s += i * 10 + j
    return s * 2 + 1


CASES = {
    "nested_breaks": Case(
        """int s = 0;
        for (int i = t % 7; i < n; i++) {
            if (i * t % 11 == 5) continue;
            for (int j = 0; j < i; j++) {
                if ((i + j) % 9 == t % 9) break;
                if ((j ^ t) % 13 == 4) { s++; continue; }
                s += j;
            }
            if (s > 400) break;
        }
        return s;""",
        nested_breaks,
    ),
    "early_returns": Case(
        """if (t % 5 == 0) return -1;
        int s = t;
        for (int i = 0; i < n; i++) {
            s = (s * 3 + i) & 0xFFFF;
            if (s % 17 == 3) return i;
            if (s % 29 == 7) return 1000 + s;
        }
        return t % 2 ? s : -s;""",
        early_returns,
    ),
    "switches": Case(
        """int s = 0;
        for (int i = 0; i < n % 20; i++) {
            bool stop = false;
            switch ((t + i) % 8) {
            case 0: s += 1; /* falls through */
            case 1: s ^= 0x55; break;
            case 2: s *= 3; break;
            case 3: s -= t; break;
            case 4: stop = true; break;
            case 5: if (s & 1) continue; s += 100; break;
            case 6: s |= i; break;
            default: s += 7;
            }
            if (stop) break;
            s &= 0xFFFFF;
        }
        return s;""",
        switches,
    ),
    "collatz": Case(
        """int x = t + 1, steps = 0;
        while (x != 1) { x = x % 2 == 0 ? x / 2 : 3 * x + 1; if (++steps > n) break; }
        return steps;""",
        collatz,
    ),
    "short_circuits": Case(
        """int s = 0;
        for (int i = 0; i < n % 30; i++) {
            if ((i % 3 == t % 3 && i % 4 != t % 4) || (i > 20 && (t & i))) s += i;
            s += i % 2 && t % 2 ? 1 : i % 5 == 0 ? 2 : 3;
        }
        return s;""",
        short_circuits,
    ),
    "do_while": Case(
        """int a = t + 5, b = n % 50 + 3;
        do { if (a > b) a -= b; else b -= a; } while (a != 0 && b != 0 && a != b);
        return a * 1000 + b;""",
        do_while,
    ),
    "loops_in_branches": Case(
        """int s = 0;
        if (t % 3 == 0) { for (int i = 0; i < t % 10; i++) s += i * i; }
        else if (t % 3 == 1) { for (int i = n % 40; i > t % 6; i -= 2) s ^= i; }
        else { for (int i = 0; i < 3; i++) for (int j = 0; j < t % 4; j++) s += i * 10 + j; }
        return s * 2 + 1;""",
        loops_in_branches,
    ),
}

SOURCE = "".join(
    f"""__device__ __forceinline__ int f_{name}(int t, int n) {{ {case.body} }}
    extern "C" __global__ void {name}(int *out, int n) {{
        int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[blockIdx.x * blockDim.x * blockDim.y * blockDim.z + t] = f_{name}(t + blockIdx.x * 3, n + blockIdx.x);
    }}
    """
    for name, case in CASES.items()
)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_divergent_code(name: str, block: tuple[int, int, int], engine: str) -> None:
    threads = block[0] * block[1] * block[2]
    out = np.full((2, threads), 12345, np.int32)
    run(SOURCE + engine, name, 2, block, out, np.int32(45))
    expected = [[CASES[name].python(t + b * 3, 45 + b) for t in range(threads)] for b in range(2)]
    assert out.tolist() == expected


# A loop of which two blocks are entered from outside: no structured program has it, and NVRTC makes none.
IRREDUCIBLE = r"""
extern "C" __global__ void tangled(int *out, int n) {
    int t = threadIdx.x, s = 0, i = 0;
    asm volatile("{\n"
        ".reg .pred %%p;\n"
        "setp.lt.s32 %%p, %3, 16;\n"
        "@%%p bra TWO;\n"
        "ONE:\n"
        "add.s32 %0, %0, 1;\n"
        "add.s32 %1, %1, 1;\n"
        "setp.ge.s32 %%p, %1, %2;\n"
        "@%%p bra OUT;\n"
        "TWO:\n"
        "mad.lo.s32 %0, %0, 2, %3;\n"
        "and.b32 %0, %0, 65535;\n"
        "add.s32 %1, %1, 2;\n"
        "setp.lt.s32 %%p, %1, %2;\n"
        "@%%p bra ONE;\n"
        "OUT:\n"
        "}" : "+r"(s), "+r"(i) : "r"(n + t % 5), "r"(t));
    out[t] = s * 100 + i;
}
"""


def tangled(t: int, n: int) -> int:
    s = i = 0
    end = n + t % 5
    second = t < 16
    while True:
        if not second:
            s, i = s + 1, i + 1
            if i >= end:
                break
        second = False
        s, i = s * 2 + t & 0xFFFF, i + 2
        if i >= end:
            break
    return s * 100 + i


@pytest.mark.parametrize("block", [1, 20, 64])
def test_irreducible_loop(block: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    run(IRREDUCIBLE + engine, "tangled", 1, block, out, np.int32(9))
    assert out.tolist() == [tangled(t, 9) for t in range(block)]
