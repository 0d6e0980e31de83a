"""Calls and stack operations that CUDA C++ does not make: PTX ISA 7.1, "call", "brx.idx", "alloca"."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

FUNCTIONS = """
.func (.param .b32 r) add3(.param .b32 x) {
    .reg .b32 %a; ld.param.u32 %a, [x]; add.u32 %a, %a, 3; st.param.b32 [r], %a; ret;
}
.func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %a; ld.param.u32 %a, [x]; shl.b32 %a, %a, 1; st.param.b32 [r], %a; ret;
}
.global .align 8 .u64 functions[2] = {add3, twice};
"""

BODIES = {  # name: (declarations before the kernel, body from %r1 = %tid.x to %r2, what thread i stores)
    "calltargets": (
        FUNCTIONS,
        """
        and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0;
        mov.u64 %rd4, add3; mov.u64 %rd5, twice; selp.b64 %rd6, %rd4, %rd5, %p1;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
        targets: .calltargets add3, twice;
        call (b), %rd6, (a), targets; ld.param.b32 %r2, [b]; }
        """,
        lambda i: 2 * i if i % 2 else i + 3,
    ),
    "call table": (
        FUNCTIONS,
        """
        and.b32 %r3, %r1, 1; mul.wide.u32 %rd4, %r3, 8; mov.u64 %rd5, functions; add.u64 %rd5, %rd5, %rd4;
        ld.global.u64 %rd6, [%rd5];
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
        call (b), %rd6, (a), functions; ld.param.b32 %r2, [b]; }
        """,
        lambda i: 2 * i if i % 2 else i + 3,
    ),
    "guarded call": (
        FUNCTIONS,
        """
        mov.u32 %r2, 7; setp.gt.u32 %p1, %r1, 20; mov.u64 %rd4, twice;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
        prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
        @%p1 call (b), %rd4, (a), prototype; ld.param.b32 %r3, [b]; }  // which can have no guard
        selp.b32 %r2, %r3, %r2, %p1;
        """,
        lambda i: 2 * i if i > 20 else 7,
    ),
    "brx": (
        "",
        """
        ways: .branchtargets ZERO, ONE, TWO;
        rem.u32 %r3, %r1, 3; brx.idx %r3, ways;
        ZERO: mov.u32 %r2, 5; bra END;
        ONE: mul.lo.u32 %r2, %r1, 10; bra END;
        TWO: sub.u32 %r2, %r1, 1;
        END: add.u32 %r2, %r2, 1;
        """,
        lambda i: [6, 10 * i + 1, i][i % 3],
    ),
    "alloca": (
        "",
        """
        add.u32 %r3, %r1, 1; mul.wide.u32 %rd4, %r3, 4;
        stacksave.u64 %rd5;
        alloca.u64 %rd6, %rd4, 32;
        and.b64 %rd7, %rd6, 31; cvt.u32.u64 %r4, %rd7;  // how far from aligned: 0
        mov.u32 %r5, 0; mov.u64 %rd7, %rd6;
        FILL: st.local.u32 [%rd7], %r5; add.u64 %rd7, %rd7, 4; add.u32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, %r3; @%p1 bra FILL;
        mov.u32 %r2, %r4; mov.u32 %r5, 0; cvta.local.u64 %rd7, %rd6;
        SUM: ld.u32 %r6, [%rd7]; add.u32 %r2, %r2, %r6; add.u64 %rd7, %rd7, 4; add.u32 %r5, %r5, 1;
        setp.lt.u32 %p1, %r5, %r3; @%p1 bra SUM;
        stackrestore.u64 %rd5;
        stacksave.u64 %rd6; setp.ne.u64 %p1, %rd5, %rd6; @%p1 add.u32 %r2, %r2, 1000000;
        """,
        lambda i: i * (i + 1) // 2,
    ),
    "registers": (
        """
        .func (.reg .b32 r) recursive(.reg .b32 n, .reg .b32 k) {
            .reg .pred p; .reg .b32 m, v;
            setp.eq.u32 p, n, 0; @p bra LAST;
            sub.u32 m, n, 1; call (v), recursive, (m, k);
            mad.lo.u32 r, v, 2, k; bra DONE;
            LAST: mov.u32 r, k;
            DONE: ret;
        }
        """,
        "and.b32 %r3, %r1, 3; call (%r2), recursive, (%r3, 1);",
        lambda i: 2 ** (i % 4 + 1) - 1,
    ),
    "a parameter of any size": (
        """
        .func (.param .b32 r) total(.param .b32 count, .param .align 4 .b8 values[]) {
            .reg .pred p; .reg .b32 n, i, v, s; .reg .b64 a;
            ld.param.u32 n, [count]; ld.param.u32 s, [values];
            setp.lt.u32 p, n, 2; @p bra DONE;
            ld.param.u32 v, [values+4]; add.u32 s, s, v;
            DONE: st.param.b32 [r], s; ret;
        }
        """,
        """
        { .param .b32 n; .param .align 4 .b8 v[8]; .param .b32 r; st.param.b32 [n], 2;
        st.param.b32 [v], %r1; st.param.b32 [v+4], 100; call (r), total, (n, v); ld.param.b32 %r2, [r]; }
        { .param .b32 n; .param .align 4 .b8 v[4]; .param .b32 r; st.param.b32 [n], 1;
        st.param.b32 [v], 1000; call (r), total, (n, v); ld.param.b32 %r3, [r]; }
        add.u32 %r2, %r2, %r3;
        """,
        lambda i: i + 1100,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_ptx(name: str, engine: str) -> None:
    before, body, expected = BODIES[name]
    text = f"""{HEADER}{before}
.visible .entry k(.param .u64 out) {{
    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;
    mov.u32 %r1, %tid.x; {body}
    ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;
}}
{engine}
\0"""
    Device(0).set_current()
    count = 40
    found = np.zeros(count, np.uint32)
    module = value(driver.cuModuleLoadData(text.encode()))
    try:
        kernel = value(driver.cuModuleGetFunction(module, b"k"))
        out = value(driver.cuMemAlloc(found.nbytes))
        ok(driver.cuLaunchKernel(kernel, 1, 1, 1, count, 1, 1, 0, 0, ((out,), (None,)), 0))
        ok(driver.cuMemcpyDtoH(found.ctypes.data, out, found.nbytes))
        ok(driver.cuMemFree(out))
    finally:
        ok(driver.cuModuleUnload(module))
    assert found.tolist() == [expected(i) for i in range(count)]


def value(result):
    ok(result)
    return result[1]
