"""Checksums of the approximate functions over all inputs, in blocks of 2**20: `recorded/unit_sums.txt` has an H200's.

A function of one f32 has 4,096 blocks: the number of an input is its pattern. Those of f64 get it as the upper word, a
scrambled lower word beside it, and quotients two operands made of it; 256 blocks of these are tried. A block's sum adds
up the results, each scrambled together with its place, and 16 bits of it are kept.

    CUPOLA_DEVICE=gpu python -m tests.ptx.unit_sums

records the sums of a GPU, within seconds.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cupola import Device, LaunchConfig, ObjectCode, PinnedMemoryResource, launch

FILE = Path(__file__).with_name("recorded") / "unit_sums.txt"
BLOCK = 1 << 20
PART = 1 << 16
"""Inputs of a block of threads."""

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 out, .param .u64 blocks)
{{
    .reg .b64 sum, wide, p; .reg .b32 n, i, r, h, t, c, x, y, z; .reg .b16 h0, h1; .reg .pred q;
    .reg .f32 fx, fy, fr; .reg .f64 dx, dr;
    mov.u32 c, %ctaid.x; shr.u32 t, c, 4; mul.wide.u32 wide, t, 4;
    ld.param.u64 p, [blocks]; add.u64 p, p, wide; ld.global.u32 n, [p]; shl.b32 n, n, 20;
    and.b32 c, c, 15; shl.b32 c, c, 16; add.u32 n, n, c; mov.u32 c, %tid.x; add.u32 n, n, c;
    ld.param.u64 p, [out]; add.u64 p, p, wide; add.u64 p, p, wide; mov.u32 c, 0; mov.u64 sum, 0;
NEXT:
    and.b32 i, n, 0xFFFFF;
    {body}
    mad.lo.u32 h, i, 0x9E3779B1, r;
    {scrambled}
    cvt.u64.u32 wide, h; add.u64 sum, sum, wide;
    add.u32 n, n, 256; add.u32 c, c, 1; setp.lt.u32 q, c, 256; @q bra NEXT;
    red.global.add.u64 [p], sum; ret;
}}
"""


def scrambled(word: str) -> str:
    """A word whose bits all depend on all of what it was."""
    steps = [f"shr.u32 t, {word}, {by}; xor.b32 {word}, {word}, t;" for by in (16, 13, 16)]
    factors = [f"mul.lo.u32 {word}, {word}, {factor};" for factor in ("0x85EBCA6B", "0xC2B2AE35")]
    return " ".join((steps[0], factors[0], steps[1], factors[1], steps[2]))


ONE = "mov.b32 fx, n; {op} fr, fx; mov.b32 r, fr;"
HALF = "cvt.u16.u32 h0, n; {op} h1, h0; cvt.u32.u16 r, h1;"
PACKED = f"mov.b32 x, n; {scrambled('x')} {{op}} r, x;"
WIDE = (
    f"mov.b32 y, n; {scrambled('y')} mov.b64 dx, {{{{y, n}}}}; {{op}} dr, dx;"
    " mov.b64 {{x, y}}, dr; mad.lo.u32 r, y, 0x2545F491, x;"
)
NEAR = "".join(  # of odd numbers, operands with exponents from -15 to 16
    f" and.b32 z, {word}, 0x8FFFFFFF; add.u32 z, z, 0x38000000; and.b32 t, n, 1; setp.eq.u32 q, t, 1;"
    f" selp.b32 {word}, z, {word}, q;"
    for word in "xy"
)
QUOTIENT = (
    f"mov.b32 x, n; {scrambled('x')} add.u32 y, n, 0x5BD1E995; {scrambled('y')} {NEAR}"
    " mov.b32 fx, x; mov.b32 fy, y; {op} fr, fx, fy; mov.b32 r, fr;"
)

FUNCTIONS: dict[str, tuple[str, int]] = {
    **{
        f"{name}.approx{ftz}.f32": (ONE, 4096)
        for name in ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos")
        for ftz in ("", ".ftz")
    },
    "tanh.approx.f32": (ONE, 4096),
    "rcp.approx.ftz.f64": (WIDE, 4096),
    "rsqrt.approx.ftz.f64": (WIDE, 4096),
    **{f"div.{kind}{ftz}.f32": (QUOTIENT, 256) for kind in ("approx", "full") for ftz in ("", ".ftz")},
    **{
        f"{name}{packed}": (PACKED, 4) if packed else (HALF, 1)
        for name in ("ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16")
        for packed in ("", "x2")
    },
}
"""How each instruction gets its operands, and of how many blocks the sums are recorded."""

Sums = npt.NDArray[np.uint16]


def sums(function: str, blocks: Sequence[int]) -> Sums:
    """What the device that there is gives for some blocks."""
    body, _ = FUNCTIONS[function]
    text = KERNEL.format(body=body.format(op=function), scrambled=scrambled("h"))
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    count = len(blocks)
    with (
        PinnedMemoryResource().allocate(12 * count, stream=stream) as host,
        device.allocate(12 * count, stream=stream) as buffer,
    ):
        kernel = ObjectCode.from_ptx(text.encode()).get_kernel("sums")
        stream.sync()
        image = np.from_dlpack(host).view(np.uint8)
        image[: 8 * count] = 0
        image[8 * count :].view(np.uint32)[:] = blocks
        buffer.copy_from(host, stream=stream)
        parts = 1 if body == HALF else BLOCK // PART
        first = int(buffer.handle)
        launch(
            stream, LaunchConfig(grid=count * parts, block=256), kernel, np.uint64(first), np.uint64(first + 8 * count)
        )
        buffer.copy_to(host, stream=stream)
        stream.sync()
        found = image[: 8 * count].view(np.uint64)
        return (found ^ found >> np.uint64(16) ^ found >> np.uint64(32)).astype(np.uint16)


def recorded() -> dict[str, Sums]:
    """The sums of an H200, by function."""
    lines = (line.split() for line in FILE.read_text().splitlines())
    return {name: np.frombuffer(zlib.decompress(base64.b85decode(packed)), "<u2") for name, packed in lines}


def record() -> None:
    """Write the file."""
    lines = []
    for function, (_, count) in FUNCTIONS.items():
        packed = zlib.compress(sums(function, range(count)).astype("<u2").tobytes(), 9)
        lines.append(f"{function} {base64.b85encode(packed).decode()}\n")
    FILE.write_text("".join(lines))


if __name__ == "__main__":
    record()
