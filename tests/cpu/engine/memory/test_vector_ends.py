"""Vector loads whose last elements nobody reads: compilers make them where a program reads a part of a vector."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ObjectCode, launch
from tests.cpu.engine.kernels import copy_to_device, copy_to_host
from tests.cpu.engine.kernels import run as run_source

# Each thread sums the three words at 16 * (its number, or what `%j` makes of it) + 16.
PTX = """
.version 8.1
.target sm_50
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry k(.param .u64 in, .param .u64 out)
{{
    .reg .b64 %in, %out, %i, %a;
    .reg .b32 %t, %j, %x, %y, %z, %w, %s;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %j, %t;
    {where}
    mul.wide.u32 %i, %j, 16;
    add.u64 %a, %in, %i;
    {copy}
    {load}
    add.u32 %x, %x, %y;
    add.u32 %x, %x, %z;
    {more}
    mul.wide.u32 %i, %t, 4;
    add.u64 %a, %out, %i;
    st.global.u32 [%a], %x;
    ret;
}}
"""

WHERE = {
    "row": "",
    "one place": "mov.u32 %j, %ntid.x; sub.u32 %j, %j, 1;",
    "backwards": "mov.u32 %s, %ntid.x; sub.u32 %s, %s, 1; sub.u32 %j, %s, %t;",
    "scattered": "mov.u32 %s, %ntid.x; sub.u32 %s, %s, 1; xor.b32 %j, %t, 5; min.u32 %j, %j, %s;",
}

# Thread t brings words 4 t + 4 ... of the input, of which the last thread has three, to shared memory.
COPY = """
    add.u64 %out, %out, 0;
    mul.wide.u32 %i, %t, 16;
    add.u64 %a, %in, %i;
    ld.global.u32 %x, [%a+16];
    ld.global.u32 %y, [%a+20];
    ld.global.u32 %z, [%a+24];
    mov.u64 %a, memory;
    add.u64 %a, %a, %i;
    st.shared.u32 [%a+16], %x;
    st.shared.u32 [%a+20], %y;
    st.shared.u32 [%a+24], %z;
    bar.sync 0;
    mul.wide.u32 %i, %j, 16;
    mov.u64 %a, memory;
    add.u64 %a, %a, %i;
"""
LOADS = {
    "global": "ld.global.v4.u32 {%x, %y, %z, %w}, [%a+16];",
    "generic": "ld.v4.u32 {%x, %y, %z, %w}, [%a+16];",
    "sink": "ld.global.v4.u32 {%x, %y, %z, _}, [%a+16];",
    "pair": "ld.global.v2.u32 {%x, %y}, [%a+16]; ld.global.v2.u32 {%z, %w}, [%a+24];",
    "shared": "ld.shared.v4.u32 {%x, %y, %z, %w}, [%a+16];",
}


def place(where: str, threads: int) -> np.ndarray:
    t = np.arange(threads)
    return {
        "row": t,
        "one place": np.full(threads, threads - 1),
        "backwards": threads - 1 - t,
        "scattered": np.minimum(t ^ 5, threads - 1),
    }[where]


def run(load: str, where: str, threads: int, *, more: str = "") -> np.ndarray:
    text = PTX.format(where=WHERE[where], copy=COPY if load == "shared" else "", load=LOADS[load], more=more)
    device = Device(0)
    device.set_current()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    stream = device.create_stream()
    values = np.arange(4 * threads + 3, dtype=np.uint32)  # the last vector lacks its last word
    result = np.zeros(threads, np.uint32)
    source, target = (device.allocate(array.nbytes, stream=stream) for array in (values, result))
    copy_to_device(source, values, stream)
    launch(stream, LaunchConfig(grid=1, block=threads, shmem_size=values.nbytes), kernel, source, target)
    stream.sync()
    copy_to_host(result, target, stream)
    stream.sync()
    return result


@pytest.mark.parametrize("threads", [1, 3, 32, 70])
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("load", LOADS)
def test_what_nobody_reads_may_be_outside(load, where, threads):
    first = 4 * place(where, threads) + 4
    assert run(load, where, threads).tolist() == (3 * first + 3).tolist()


def test_as_compilers_make_them():
    source = """
    extern "C" __global__ void sum_of_three(const int *aligned, int *out) {
        const int *in = (const int *)__builtin_assume_aligned(aligned, 16);
        extern __shared__ __align__(16) int kept[];
        kept[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = in[4] + 2 * in[5] + 4 * in[6] + 8 * (kept[4] + 2 * kept[5] + 4 * kept[6]);
    }
    """
    values, result = np.arange(7, dtype=np.int32), np.zeros(7, np.int32)
    run_source(source, "sum_of_three", 1, 7, values, result, shared=28)
    assert result.tolist() == [9 * (4 + 10 + 24)] * 7


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "load, where, more, said",
    [
        ("global", "row", "add.u32 %x, %x, %w;", "out-of-bounds read of 16 bytes"),
        ("global", "scattered", "max.u32 %x, %x, %w;", "out-of-bounds read of 16 bytes"),
        ("shared", "one place", "mov.b64 %i, {%w, %x};", "out-of-bounds read of 16 bytes in shared memory"),
        ("generic", "backwards", "st.global.v4.u32 [%a], {%x, %y, %z, %w};", "out-of-bounds read of 16 bytes"),
        ("global", "row", "ld.global.v4.u32 {%x, %y, %z, %w}, [%a+32];", "out-of-bounds read of 12 bytes"),
        ("pair", "one place", "add.u32 %x, %x, %w;", "out-of-bounds read of 8 bytes"),
        ("global", "row", "st.global.v4.u32 [%a+16], {%x, %y, %z, %z};", "out-of-bounds write of 16 bytes"),
    ],
)
def test_what_somebody_reads_or_writes_may_not(load, where, more, said, run_python):
    done = run_python(f"""
import sys
from tests.cpu.engine.memory import test_vector_ends as t
try:
    t.run({load!r}, {where!r}, 32, more={more!r})
except Exception as error:
    print(error)
""")
    assert said in done.stdout, done.stdout + done.stderr
