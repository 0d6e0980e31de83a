"""What accesses cost, by the rules for sectors and banks; and which class instructions are of."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler import modules
from cupola.cpu.compiler.emit.instruments.instrument import instructions_of
from cupola.cpu.observed import counters
from tools import ncu_counts

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="its kernels read memory that nobody has written: only accesses are counted"),
]


@pytest.mark.parametrize(
    ("text", "kind", "operations"),
    [
        ("add.s32 %r1, %r1, %r2;", "integer", (0, 0)),
        ("fma.rn.f32 %f1, %f1, %f2, %f3;", "fp32", (2, 0)),
        ("mul.f64 %fd1, %fd1, %fd2;", "fp64", (1, 0)),
        ("fma.rn.f16x2 %r1, %r1, %r2, %r2;", "fp16", (4, 0)),
        ("ex2.approx.f32 %f1, %f1;", "special", (1, 0)),
        ("sqrt.rn.f64 %fd1, %fd1;", "fp64", (1, 0)),
        ("cvt.f64.f32 %fd1, %f1;", "convert", (0, 0)),
        ("setp.lt.f32 %p1, %f1, %f2;", "compare", (0, 0)),
        ("ld.global.f32 %f1, [%rd1];", "load", (0, 0)),
        ("ld.param.u32 %r1, [p];", "move", (0, 0)),
        ("red.global.add.f32 [%rd1], %f1;", "atomic", (0, 0)),
        ("cp.async.ca.shared.global [%r1], [%rd1], 8;", "copy", (0, 0)),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1,%r1,%r1}, {%r2,%r2}, "
            "{%f1,%f2,%f3,%f4};",
            "tensor",
            (0, 4096),
        ),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", "warp", (0, 0)),
        ("bar.sync 0;", "barrier", (0, 0)),
        ("mov.u32 %r1, %tid.x;", "move", (0, 0)),
    ],
)
def test_classes_and_operations(text: str, kind: str, operations: tuple[int, int]) -> None:
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 p) {\n"
        ".reg .f32 %f<5>; .reg .f64 %fd<4>; .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p<2>;\n"
        f"{text}\nret;\n}}\n"
    )
    facts = modules.load_image(ptx.encode()).facts(0, (32, 1, 1))
    instruction = instructions_of(facts)[0]
    assert counters.class_of(instruction) == kind
    assert counters.operations_of(instruction) == operations
    assert kind in counters.CLASSES


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, int]]:
    """What the CPU device counts of the kernels of tools/ncu_counts.py."""
    return ncu_counts.counted()


@pytest.mark.parametrize(
    ("kernel", "metric", "count"),
    [
        (("int", "t", "true"), "sectors of global loads", 8),
        (("int", "t + 1", "true"), "sectors of global loads", 10),
        (("int", "32 * t", "true"), "sectors of global stores", 64),
        (("int", "0", "true"), "sectors of global loads", 2),
        (("int", "t", "t < 5"), "requests of global loads", 1),
        (("int4", "t", "true"), "sectors of global loads", 32),
        (("unsigned char", "3 * t", "true"), "sectors of global loads", 6),
    ],
)
def test_sectors(counted, kernel, metric, count) -> None:
    name = f"{'store' if 'stores' in metric else 'load'}_{ncu_counts.GLOBAL.index(kernel)}"
    assert counted[name][metric] == count


@pytest.mark.parametrize(
    ("kernel", "conflicts"),
    [
        (("int", "t", "true"), 0),
        (("int", "2 * t", "true"), 2),
        (("int", "32 * t", "true"), 62),
        (("int", "33 * t", "true"), 0),
        (("int", "0", "true"), 0),
        (("unsigned char", "t", "true"), 0),
        (("double", "t", "true"), 0),
        (("int4", "t", "true"), 0),
    ],
)
def test_bank_conflicts(counted, kernel, conflicts) -> None:
    """Two warps each."""
    number = ncu_counts.SHARED.index(kernel)
    assert counted[f"shared_load_{number}"]["bank conflicts of shared loads"] == conflicts
    assert counted[f"shared_store_{number}"]["bank conflicts of shared stores"] == conflicts
