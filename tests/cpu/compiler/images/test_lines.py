"""Lines of the source for the PTX in cubins that ptxas and its like have made."""

from __future__ import annotations

import pytest

from cupola import Program, ProgramOptions
from cupola.cpu.compiler.images import containers, elf, lines
from cupola.cpu.compiler.ptx import ast, parse

pytestmark = pytest.mark.cpu_only

SOURCE = """\
__device__ float square(float x) {
    float y = x * x;
    return y + 1;
}
__device__ float twice(float x) {
    if (x < 0)
        x = square(x);
    return square(x) + square(x + 2);
}
extern "C" __global__ void one(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int j = 0; j < n; j++)
        sum += twice(x[(i + j) % n]);
    x[i] = sum;
}
extern "C" __global__ void two(float* x) {
    __shared__ float t[64];
    t[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = square(t[63 - threadIdx.x]);
}
"""


@pytest.fixture(scope="module")
def compiled():
    """What NVRTC says, as PTX and as a cubin without the PTX that the CPU device adds."""
    options = ProgramOptions(name="lines.cu", arch="sm_90", lineinfo=True)
    ptx = Program(SOURCE, "c++", options).compile("ptx").code
    cubin = Program(SOURCE, "c++", options).compile("cubin").code
    return ptx.decode().rstrip("\\0"), cubin.partition(b"cupolaPT")[0]


def where(text: str) -> list[tuple[str, tuple[object, ...]]]:
    """For each instruction what it is, and the lines from the innermost function outwards."""
    found = []
    for function in parse(text).functions.values():
        for statement in function.body or ():
            if not isinstance(statement, ast.Instruction):
                continue
            places = []
            at = statement.location
            while at is not None:
                places.append((at.file, at.line, at.function))
                at = at.inlined_at
            found.append((statement.opcode, tuple(places)))
    return found


def test_lines_are_found_again(compiled):
    ptx, cubin = compiled
    expected, found = where(ptx), where(containers.debug_ptx(cubin).decode())
    assert [opcode for opcode, _ in found] == [opcode for opcode, _ in expected]
    same = [ours == theirs for (_, ours), (_, theirs) in zip(found, expected, strict=True)]
    assert sum(same) > 0.9 * len(same)  # some instructions leave no machine code, which belongs to the line before them
    assert max(len(places) for _, places in found) == 3


def test_lines_of_the_ptx_keep_their_numbers(compiled):
    _, cubin = compiled
    sections = elf.sections(cubin)
    text = sections[b".nv_debug_ptx_txt"].replace(b"\0", b"\n").decode()
    restored = lines.restore(text, sections)
    before, after = text.split("\n"), restored.split("\n")
    assert all(
        new == old or (not old.strip() and new.startswith(".loc")) for new, old in zip(after, before, strict=False)
    )
    assert lines.restore(restored, sections) == restored


def test_without_tables_the_text_stays(compiled):
    _, cubin = compiled
    sections = elf.sections(cubin)
    for missing in (b".debug_line", b".nv_debug_line_sass"):
        assert lines.restore("text", {**sections, missing: b""}) == "text"


def test_damaged_tables_cost_the_lines_only(compiled):
    _, cubin = compiled
    sections = elf.sections(cubin)
    text = sections[b".nv_debug_ptx_txt"].replace(b"\0", b"\n").decode()
    for name in (b".debug_line", b".nv_debug_line_sass", b".rela.debug_line"):
        data = sections[name]
        for at in range(0, len(data), 9):
            for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
                restored = lines.restore(text, {**sections, name: damaged})
                assert restored.startswith(text[:100])
                if at % 45 == 0:
                    parse(restored)
