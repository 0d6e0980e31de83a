"""Multicast objects, and the instructions for what is behind them; each program has two devices."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

pytestmark = pytest.mark.cpu_only

Run = Callable[..., CompletedProcess[str]]

BEGIN = r"""
import ctypes
import numpy as np
from cupola import Device, LaunchConfig, ObjectCode, launch
from cupola.bindings import driver as d
from tests.cpu.driver.calls import explanation, ok, status

devices = [Device(i) for i in range(2)]
for device in devices[::-1]:
    device.set_current()
STEP = 2 << 20
object_of = d.CUmulticastObjectProp()
object_of.numDevices, object_of.size = 2, 2 * STEP

def memory(device, size=STEP):
    prop = d.CUmemAllocationProp()
    prop.type = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = device
    return ok(d.cuMemCreate(size, prop, 0))

def mapped(handle, size=STEP):
    address = int(ok(d.cuMemAddressReserve(size, 0, 0, 0)))
    ok(d.cuMemMap(address, size, 0, handle, 0))
    rights = []
    for device in (0, 1):
        entry = d.CUmemAccessDesc()
        entry.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        entry.location.id = device
        entry.flags = d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        rights.append(entry)
    ok(d.cuMemSetAccess(address, size, rights, 2))
    return address

def put(address, values):
    ok(d.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))

def get(address, like):
    values = np.zeros_like(like)
    ok(d.cuMemcpyDtoH(values.ctypes.data, address, values.nbytes))
    return values

def refused(call, text, expected="CUDA_ERROR_INVALID_VALUE"):
    assert status(call) == expected and text in explanation(call), (status(call), explanation(call))
"""

TEAM = (
    BEGIN
    + r"""
multicast = ok(d.cuMulticastCreate(object_of))
for device in (0, 1):
    ok(d.cuMulticastAddDevice(multicast, device))
handles = [memory(device) for device in (0, 1)]
places = [mapped(handle) for handle in handles]
for handle in handles:
    ok(d.cuMulticastBindMem(multicast, 0, handle, 0, STEP, 0))
everywhere = mapped(multicast)

def run(lines, threads=32, address=None):
    text = f'''.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {{
    .reg .b64 %p, %q, %t<4>; .reg .b32 %i, %r<8>; .reg .b16 %h<8>; .reg .f32 %f<8>; .reg .f64 %d<4>; .reg .b64 %l<4>;
    ld.param.u64 %p, [p]; ld.param.u64 %q, [q]; mov.u32 %i, %tid.x;
    {lines}
    ret; }}'''
    stream = devices[0].create_stream()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    out = devices[0].allocate(4096, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=threads), kernel, np.uint64(address or everywhere), out)
    stream.sync()
    return out

AT = "mul.wide.u32 %t0, %i, {size}; add.u64 %p, %p, %t0; add.u64 %q, %q, %t0;"
"""
)


def check(run_python: Run, program: str) -> None:
    done = run_python(program, CUPOLA_CPU_DEVICES="2")
    assert done.returncode == 0, done.stdout + done.stderr


# --- objects ----------------------------------------------------------------------------------------------------------


def test_binding(run_python: Run) -> None:
    """Each refusal says what is wrong and changes nothing."""
    check(
        run_python,
        BEGIN
        + r"""
A = d.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED
assert ok(d.cuDeviceGetAttribute(A, 0)) == 1
G = d.CUmulticastGranularity_flags
assert [int(ok(d.cuMulticastGetGranularity(object_of, g))) for g in G] == [STEP, STEP]
wrong = d.CUmulticastObjectProp()
wrong.numDevices, wrong.size = 3, STEP
refused(d.cuMulticastCreate(wrong), "there are 2 devices")
wrong.numDevices, wrong.size = 2, STEP + 1
refused(d.cuMulticastCreate(wrong), "a multiple of the granularity")
wrong.size, wrong.handleTypes = STEP, 1
refused(d.cuMulticastCreate(wrong), "handleTypes must be 0", "CUDA_ERROR_NOT_SUPPORTED")

multicast = ok(d.cuMulticastCreate(object_of))
first, second = memory(0), memory(1)
ok(d.cuMulticastAddDevice(multicast, 1))
refused(d.cuMulticastAddDevice(multicast, 1), "was added already")
refused(d.cuMulticastBindMem(multicast, 0, second, 0, STEP, 0), "has 1 of its 2 devices", "CUDA_ERROR_ILLEGAL_STATE")
address = int(ok(d.cuMemAddressReserve(STEP, 0, 0, 0)))
refused(d.cuMemMap(address, STEP, 0, multicast, 0), "has 1 of its 2 devices", "CUDA_ERROR_ILLEGAL_STATE")
ok(d.cuMulticastAddDevice(multicast, 0))
refused(d.cuMulticastBindMem(first, 0, second, 0, STEP, 0), "no multicast object")
refused(d.cuMulticastBindMem(multicast, 0, multicast, 0, STEP, 0), "no memory")
refused(d.cuMulticastBindMem(multicast, STEP, first, 0, 2 * STEP, 0), "than the multicast object has")
refused(d.cuMulticastBindMem(multicast, 0, first, 0, 2 * STEP, 0), "than the memory has")
refused(d.cuMulticastBindMem(multicast, 100, first, 0, STEP, 0), "a multiple of the granularity")
ok(d.cuMulticastBindMem(multicast, STEP, first, 0, STEP, 0))
refused(d.cuMulticastBindMem(multicast, STEP, first, 0, STEP, 0), "memory bound there already")
refused(d.cuMulticastBindAddr(multicast, 0, 4096, STEP, 0), "not an address where cuMemMap put memory")
place = mapped(second)
ok(d.cuMulticastBindAddr(multicast, STEP, place, STEP, 0))
refused(d.cuMulticastUnbind(multicast, 0, 0, STEP), "has no memory bound")
ok(d.cuMulticastUnbind(multicast, 0, STEP, STEP))
ok(d.cuMulticastBindMem(multicast, STEP, first, 0, STEP, 0))
refused(d.cuMemGetAllocationPropertiesFromHandle(multicast), "no properties of memory")
ok(d.cuMemRelease(multicast))
refused(d.cuMulticastAddDevice(multicast, 0), "was released")
ok(d.cuMemRelease(first))
ok(d.cuMemUnmap(place, STEP))
ok(d.cuMemRelease(second))
""",
    )


def test_models_without_switches(run_python: Run) -> None:
    done = run_python(
        BEGIN + 'refused(d.cuMulticastCreate(object_of), "has no multicast objects", "CUDA_ERROR_NOT_SUPPORTED")',
        CUPOLA_CPU_DEVICES="2",
        CUPOLA_CPU_MODEL="a100",
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- instructions -------------------------------------------------------------------------------------------------


def test_integers(run_python: Run) -> None:
    check(
        run_python,
        TEAM
        + r"""
rng = np.random.default_rng(5)
for kind in ("u32", "s32", "u64", "s64"):
    type = np.dtype({"u": "u", "s": "i"}[kind[0]] + str(int(kind[1:]) // 8))
    a, b = (rng.integers(np.iinfo(type).min, np.iinfo(type).max, 32, type) for _ in range(2))
    size, register = type.itemsize, "%r0" if type.itemsize == 4 else "%l0"
    bits = f"b{8 * size}"
    for name, expected in {
        f"add.{kind}": a + b, f"min.{kind}": np.minimum(a, b), f"max.{kind}": np.maximum(a, b),
        f"and.{bits}": a & b, f"or.{bits}": a | b, f"xor.{bits}": a ^ b,
    }.items():
        put(places[0], a), put(places[1], b)
        out = run(AT.format(size=size) + f"multimem.ld_reduce.relaxed.gpu.global.{name} {register}, [%p];"
                  f"st.global.{bits} [%q], {register};")
        assert (get(int(out.handle), a) == expected).all(), name
        # The operand is b: a becomes `expected`, and b what the operation makes of b and itself.
        other = {"add": b + b, "xor": b ^ b}.get(name.split(".")[0], b)
        run(AT.format(size=size) + f"add.u64 %t1, %t0, {places[1]}; ld.global.{bits} {register}, [%t1];"
            f"bar.warp.sync -1; multimem.red.relaxed.gpu.global.{name} [%p], {register};")
        assert (get(places[0], a) == expected).all(), name
        assert (get(places[1], a) == other).all(), name
""",
    )


def test_floating_point(run_python: Run) -> None:
    check(
        run_python,
        TEAM
        + r"""
rng = np.random.default_rng(6)
a, b = (rng.standard_normal(128).astype(np.float32) for _ in range(2))
put(places[0], a), put(places[1], b)
out = run(AT.format(size=16) + "multimem.ld_reduce.weak.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%p];"
          "st.global.v4.f32 [%q], {%f0, %f1, %f2, %f3};")
assert (get(int(out.handle), a) == a + b).all()

c, e = a.astype(np.float64), b.astype(np.float64)
put(places[0], c[:32].copy()), put(places[1], e[:32].copy())
out = run(AT.format(size=8) + "multimem.ld_reduce.acquire.sys.add.f64 %d0, [%p]; st.global.f64 [%q], %d0;")
assert (get(int(out.handle), c[:32]) == (c + e)[:32]).all()

x, y = (v.astype(np.float16) for v in (a, b))
for name, expected in {
    "add": x + y, "add.acc::f32": (x.astype(np.float32) + y).astype(np.float16), "min": np.minimum(x, y),
    "max": np.maximum(x, y),
}.items():
    put(places[0], x), put(places[1], y)
    out = run(AT.format(size=8) + f"multimem.ld_reduce.weak.global.{name}.v2.f16x2 {{%r0, %r1}}, [%p];"
              "st.global.v2.b32 [%q], {%r0, %r1};")
    assert (get(int(out.handle), x) == expected).all(), name
put(places[0], x), put(places[1], y)
run(AT.format(size=8) + "mov.b16 %h0, 0x3C00; mov.b16 %h1, %h0; mov.b16 %h2, %h0; mov.b16 %h3, %h0;"
    "multimem.red.release.gpu.global.add.v4.f16 [%p], {%h0, %h1, %h2, %h3};")
assert (get(places[0], x) == x + np.float16(1)).all() and (get(places[1], x) == y + np.float16(1)).all()
""",
    )


def test_stores_and_half_the_threads(run_python: Run) -> None:
    """A store reaches every device; threads that do not take part leave memory as it is."""
    check(
        run_python,
        TEAM
        + r"""
zeros = np.zeros(64, np.uint32)
put(places[0], zeros), put(places[1], zeros + 7)
run(AT.format(size=8) + '''{ .reg .pred %c; and.b32 %r1, %i, 1; setp.ne.u32 %c, %r1, 0; @%c bra end; }
    mov.b32 %r0, %i; mul.wide.u32 %l0, %r0, 3; multimem.st.weak.global.u64 [%p], %l0; end: ''')
expected = np.where(np.arange(32) % 2 == 0, np.arange(32) * 3, 0).astype(np.uint64)
assert (get(places[0], expected) == expected).all()
seven = np.full(32, 7 | 7 << 32, np.uint64)
assert (get(places[1], expected) == np.where(np.arange(32) % 2 == 0, expected, seven)).all()
put(places[1], zeros)
run(AT.format(size=16) + '''cvt.rn.f32.u32 %f0, %i; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    multimem.st.relaxed.sys.global.v4.f32 [%p], {%f0, %f1, %f2, %f3};''')
for place in places:
    assert (get(place, np.zeros(128, np.float32)) == np.repeat(np.arange(32, dtype=np.float32), 4)).all()
""",
    )


FAULTS = {
    "device 1 has no memory bound at byte 0 of the multicast object": (
        "ok(d.cuMulticastUnbind(multicast, 1, 0, STEP))", "everywhere", "out-of-bounds",
    ),
    "take addresses where a multicast object is mapped": ("", "places[0]", "out-of-bounds"),
    "misaligned": ("", "everywhere + 2", "misaligned"),
    "read of 4 bytes": ("", "everywhere + STEP", "out-of-bounds"),
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_faults(run_python: Run, text: str) -> None:
    before, address, word = FAULTS[text]
    check(
        run_python,
        TEAM
        + f"""
{before}
try:
    run("multimem.ld_reduce.weak.global.add.u32 %r0, [%p];", address={address})
except Exception as error:
    assert {text!r} in str(error) and {word!r} in str(error), error
    assert "PTX line 7: multimem.ld_reduce.weak.global.add.u32" in str(error), error
else:
    raise AssertionError("no fault")
""",
    )


def test_an_ordinary_access_is_a_fault(run_python: Run) -> None:
    check(
        run_python,
        TEAM
        + """
try:
    run("ld.global.u32 %r0, [%p]; st.global.u32 [%q], %r0;")
except Exception as error:
    assert "ILLEGAL_ADDRESS" in str(error), error
else:
    raise AssertionError("no fault")
""",
    )


REFUSED = {
    "multimem.ld_reduce.weak.global.add.b32 %r0, [%l0]": "'.add' is not for the type '.b32'",
    "multimem.ld_reduce.weak.global.and.u32 %r0, [%l0]": "'.and' is not for the type '.u32'",
    "multimem.ld_reduce.weak.global.min.f32 %f0, [%l0]": "'.min' is not for the type '.f32'",
    "multimem.ld_reduce.weak.global.add.v2.u32 {%r0, %r1}, [%l0]": "no vectors of 2 elements",
    "multimem.ld_reduce.weak.global.add.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%l0]": "no vectors of 8",
    "multimem.ld_reduce.weak.global.add.acc::f32.f32 %f0, [%l0]": "'.acc::f32' is for sums of halves",
    "multimem.ld_reduce.weak.global.add.e4m3x4 %r0, [%l0]": "needs PTX 8.6 and sm_100f or",
    "multimem.red.relaxed.gpu.global.xor.s32 [%l0], %r0": "'.xor' is not for the type '.s32'",
}


@pytest.mark.parametrize("instruction", REFUSED)
def test_refused_by_name(instruction: str) -> None:
    from cupola.cpu.compiler.errors import ImageError
    from cupola.cpu.compiler.modules import load_image

    text = (
        ".version 8.7 .target sm_90 .address_size 64 .visible .entry k() { .reg .b32 %r<8>; .reg .f32 %f<8>; "
        f".reg .b64 %l<4>; {instruction}; ret; }}"
    )
    with pytest.raises(ImageError) as caught:
        load_image(text.encode())
    assert REFUSED[instruction] in str(caught.value)
