"""The driver's linker, and fat binaries, of which the CPU device takes the PTX."""

from __future__ import annotations

import ctypes
import struct

import pytest

from cupola.bindings import driver, nvfatbin
from tests.cpu.driver.calls import compiled, explanation, launch, ok, status

KERNEL = 'extern "C" __global__ void k(int* x) { *x = 42; }'
INPUT = driver.CUjitInputType
OPTION = driver.CUjit_option
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
STORES = (
    HEAD
    + """.extern .func (.param .b32 r) f(.param .b32 p);
.visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<3>; .param .b32 a; .param .b32 b;
    ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd2, %rd1; st.param.b32 [a], 5; call (b), f, (a);
    ld.param.b32 %r1, [b]; st.global.u32 [%rd2], %r1; ret; }
"""
)
ANSWERS = (
    HEAD
    + """.visible .func (.param .b32 r) f(.param .b32 p) { .reg .b32 %r<3>;
    ld.param.b32 %r1, [p]; add.s32 %r2, %r1, 37; st.param.b32 [r], %r2; ret; }
"""
)


def check(image, stream, memory):
    loaded = ok(driver.cuModuleLoadData(image))
    function = ok(driver.cuModuleGetFunction(loaded, b"k"))
    memory[0] = 0
    ok(launch(function, stream, ctypes.c_uint64(ctypes.addressof(memory))))
    ok(driver.cuStreamSynchronize(stream))
    assert memory[0] == 42
    ok(driver.cuModuleUnload(loaded))
    library = ok(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0))
    ok(driver.cuLibraryGetKernel(library, b"k"))
    ok(driver.cuLibraryUnload(library))


def add(state, text: str, name: bytes, kind=INPUT.CU_JIT_INPUT_PTX):
    data = text.encode() + b"\0" if isinstance(text, str) else text
    return driver.cuLinkAddData(state, kind, data, len(data), name, 0, [], [])


@pytest.fixture
def make_link(context):
    made = []

    def make(options=(), values=()):
        made.append(ok(driver.cuLinkCreate(len(options), list(options), list(values))))
        return made[-1]

    yield make
    for state in made:
        ok(driver.cuLinkDestroy(state))


def test_two_modules(make_link, make_stream, memory, tmp_path):
    state = make_link()
    ok(add(state, STORES, b"stores.ptx"))
    path = tmp_path / "answers.ptx"
    path.write_text(ANSWERS)
    ok(driver.cuLinkAddFile(state, INPUT.CU_JIT_INPUT_PTX, str(path).encode(), 0, [], []))
    image, size = ok(driver.cuLinkComplete(state))
    data = ctypes.string_at(int(image), size)
    assert data.startswith(b"\x7fELF")
    check(data, make_stream(), memory)
    file = tmp_path / "linked.cubin"
    file.write_bytes(data)
    ok(driver.cuModuleUnload(ok(driver.cuModuleLoad(str(file).encode()))))


def test_what_is_linked_can_be_linked_again(make_link, make_stream, memory):
    if not compiled_by_the_cpu_device():
        pytest.skip("what a GPU's driver has linked is no longer relocatable")
    first, second = make_link(), make_link()
    ok(add(first, ANSWERS, b"answers"))
    image, size = ok(driver.cuLinkComplete(first))
    ok(add(second, ctypes.string_at(int(image), size), b"linked", INPUT.CU_JIT_INPUT_CUBIN))
    ok(add(second, STORES, b"stores"))
    image, size = ok(driver.cuLinkComplete(second))
    check(ctypes.string_at(int(image), size), make_stream(), memory)


# A GPU's driver writes to the array of option values until the link is destroyed; the bindings' array does not live on.
@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([(STORES, b"stores.ptx")], [b"ndefined reference to 'f'", b"stores.ptx"]),
        ([(ANSWERS, b"one.ptx"), (ANSWERS, b"two.ptx")], [b"ultiple definition", b"'f'", b"two.ptx"]),
    ],
)
def test_errors_are_in_the_log(make_link, inputs, said):
    log = bytearray(2000)
    state = make_link([OPTION.CU_JIT_ERROR_LOG_BUFFER, OPTION.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, len(log)])
    results = [add(state, *item) for item in inputs]
    if all(status(result) == "CUDA_SUCCESS" for result in results):
        results.append(driver.cuLinkComplete(state))
    assert status(results[-1]) != "CUDA_SUCCESS"
    for text in said:
        assert text in log, bytes(log)


@pytest.mark.cpu_only
@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("room", [2000, 20])
def test_what_was_linked_is_in_the_log(make_link, verbose, room):
    log, errors = bytearray(room), bytearray(b"x" * 10)
    names = ["INFO_LOG_BUFFER", "INFO_LOG_BUFFER_SIZE_BYTES", "ERROR_LOG_BUFFER", "ERROR_LOG_BUFFER_SIZE_BYTES"]
    options = [OPTION[f"CU_JIT_{name}"] for name in (*names, "LOG_VERBOSE")]
    state = make_link(options, [log, len(log), errors, len(errors), verbose])
    ok(add(state, STORES, b"stores.ptx"))
    ok(add(state, ANSWERS + ".global .b8 room[24];\n.const .b8 table[8];\n", b"answers.ptx"))
    ok(driver.cuLinkComplete(state))
    lines = [
        "info    : Linked stores.ptx, answers.ptx for sm_90",
        "info    : 24 bytes of global variables, 8 bytes of constants",
        "info    : Kernel 'k': 8 bytes of parameters, 0 bytes of shared memory, "
        "0 bytes of local memory for each thread",
    ]
    said = "".join(f"{line}\n" for line in lines) if verbose else ""
    assert log.split(b"\0")[0].decode() == said[: room - 1] and errors[0] == 0


@pytest.mark.cpu_only
def test_what_was_loaded_is_in_the_log(context):
    image = compiled('extern "C" __global__ void k(int* x) { __shared__ int s[8]; s[threadIdx.x] = *x; *x = s[0]; }')
    options = [OPTION.CU_JIT_INFO_LOG_BUFFER, OPTION.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, OPTION.CU_JIT_LOG_VERBOSE]
    log = bytearray(1000)
    ok(driver.cuModuleUnload(ok(driver.cuModuleLoadDataEx(image, 3, options, [log, len(log), 1]))))
    assert b"Kernel 'k': 8 bytes of parameters, 32 bytes of shared memory" in log
    log = bytearray(1000)
    text = ANSWERS.encode() + b"\0"
    ok(driver.cuLibraryUnload(ok(driver.cuLibraryLoadData(text, options, [log, len(log), 1], 3, [], [], 0))))
    assert log.startswith(b"info    : 0 bytes of global variables")


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("kind", "data", "expected", "said"),
    [
        (INPUT.CU_JIT_INPUT_OBJECT, b"!<arch>\n", "CUDA_ERROR_NOT_SUPPORTED", "not objects or LTO-IR"),
        (INPUT.CU_JIT_INPUT_NVVM, b"BC", "CUDA_ERROR_NOT_SUPPORTED", "LTO-IR (input name)"),
        (INPUT.CU_JIT_INPUT_CUBIN, b"\x7fELF" + bytes(100), "CUDA_ERROR_NO_BINARY_FOR_GPU", "'name': the cubin holds"),
        (INPUT.CU_JIT_INPUT_PTX, b"bogus\0", "CUDA_ERROR_INVALID_PTX", "'name': unexpected 'bogus' at PTX line 1"),
    ],
)
def test_bad_inputs(make_link, kind, data, expected, said):
    result = add(make_link(), data, b"name", kind)
    assert status(result) == expected and said in explanation(result)


@pytest.mark.cpu_only
def test_options(make_link):
    state = make_link([OPTION.CU_JIT_TARGET], [driver.CUjit_target.CU_TARGET_COMPUTE_75])
    ok(add(state, ANSWERS, b"new"))
    result = driver.cuLinkComplete(state)
    assert status(result) == "CUDA_ERROR_INVALID_PTX"
    assert "'new' is for sm_80, the link for sm_75" in explanation(result)
    assert status(driver.cuLinkComplete(make_link())) == "CUDA_ERROR_INVALID_VALUE"


def compiled_by_the_cpu_device() -> bool:
    return b"cupolaPT" in compiled(KERNEL)


# ---- fat binaries ---------------------------------------------------------------------------------------------------


def fat_binary(*entries: tuple[str, str, bytes], options: tuple[str, ...] = ()) -> bytes:
    """A fat binary of nvFatbin with entries: ``"ptx"`` or ``"cubin"``, architecture, data."""
    try:
        handle = nvfatbin.create(["-cuda", "-64", *options], 2 + len(options))
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"nvFatbin is not installed: {error}")
    for kind, architecture, data in entries:
        if kind == "ptx":
            nvfatbin.add_ptx(handle, data, len(data), architecture, f"{architecture}.ptx", "")
        else:
            nvfatbin.add_cubin(handle, data, len(data), architecture, f"{architecture}.cubin")
    image = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, image)
    nvfatbin.destroy(handle)
    return bytes(image)


COMPRESSIONS = [("-compress=false",), (), ("-compress-mode=size",), ("-compress-mode=balance",)]
COMPRESSIONS += [pytest.param(("-concat",), marks=pytest.mark.cpu_only)]  # drivers of CUDA 13.0 do not read it


@pytest.mark.parametrize("options", COMPRESSIONS, ids=lambda options: "".join(options) or "default")
def test_fat_binaries_with_ptx(context, make_stream, memory, options):
    image = fat_binary(("ptx", "80", compiled(KERNEL, "ptx", "compute_80")), options=options)
    check(image, make_stream(), memory)
    loaded = ok(driver.cuModuleLoadFatBinary(image))
    ok(driver.cuModuleUnload(loaded))


def test_the_best_entry_is_taken(context, make_stream, memory):
    other = KERNEL.replace("42", "7")
    image = fat_binary(
        ("ptx", "75", compiled(other, "ptx", "compute_75")),
        ("ptx", "80", compiled(KERNEL, "ptx", "compute_80")),
        ("ptx", "120", compiled(other, "ptx", "compute_120")),
    )
    check(image, make_stream(), memory)


@pytest.mark.cpu_only  # drivers of CUDA 13.0 do not read it
@pytest.mark.parametrize("options", [("-concat",), ("-concat", "-compress-mode=size")], ids=" ".join)
def test_images_that_are_compressed_together(context, make_stream, memory, options):
    other = KERNEL.replace("42", "7")
    images = [(name, compiled(text, "cubin", f"sm_{name}")) for name, text in (("80", other), ("90a", KERNEL))]
    bare = [("cubin", name, image[: image.index(b"cupolaPT")]) for name, image in images]
    ptx = [("ptx", name, compiled(other, "ptx", f"compute_{name}")) for name in ("75", "80")]
    image = fat_binary(*bare, *ptx, options=options)
    assert b"\x7fELF" not in image and b".target" not in image
    check(image, make_stream(), memory)
    ok(driver.cuModuleUnload(ok(driver.cuModuleLoadFatBinary(image))))


@pytest.mark.cpu_only
@pytest.mark.parametrize("eager", [False, True], ids=["lazy", "eager"])
@pytest.mark.parametrize("kind", ["cubin", "fat binary", "concatenated"])
def test_code_for_other_gpus_only(run_python, kind, eager):
    """Answers of an H200 with driver 580.159: a library loads, and has nothing."""
    done = run_python(
        f"""
from cupola.bindings import driver as d
from tests.cpu.driver.calls import compiled, explanation, ok, status
from tests.cpu.driver.module.test_link import INPUT, KERNEL, fat_binary
ok(d.cuInit(0))
ok(d.cuCtxSetCurrent(ok(d.cuDevicePrimaryCtxRetain(0))))
images = [(name, compiled(KERNEL, "cubin", "sm_" + name)) for name in ("80", "120")]
cubins = [("cubin", name, image[: image.index(b"cupolaPT")]) for name, image in images]
image = {{
    "cubin": cubins[1][2],
    "fat binary": fat_binary(*cubins, ("ptx", "120", compiled(KERNEL, "ptx", "compute_120"))),
    "concatenated": fat_binary(*cubins, options=("-concat",)),
}}[{kind!r}]
link = ok(d.cuLinkCreate(0, [], []))
link_kind = INPUT.CU_JIT_INPUT_CUBIN if {kind == "cubin"} else INPUT.CU_JIT_INPUT_FATBINARY
results = [
    d.cuModuleLoadData(image),
    d.cuModuleLoadFatBinary(image),
    d.cuLinkAddData(link, link_kind, image, len(image), b"name", 0, [], []),
]
loaded = d.cuLibraryLoadData(image, [], [], 0, [], [], 0)
if {eager}:
    results += [loaded]
else:
    library = ok(loaded)
    assert ok(d.cuLibraryGetKernelCount(library)) == 0
    for _ in range(2):
        results += [d.cuLibraryGetKernel(library, b"k"), d.cuLibraryGetModule(library)]
for result in results:
    assert status(result) == "CUDA_ERROR_NO_BINARY_FOR_GPU", result
    assert "for sm_120" in explanation(result), explanation(result)
if not {eager}:
    ok(d.cuLibraryUnload(library))
""",
        CUDA_MODULE_LOADING="EAGER" if eager else "LAZY",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_fat_binaries_are_linked(make_link, make_stream, memory):
    state = make_link()
    image = fat_binary(("ptx", "80", ANSWERS.encode() + b"\0"))
    ok(add(state, STORES, b"stores"))
    ok(add(state, image, b"fat", INPUT.CU_JIT_INPUT_FATBINARY))
    linked, size = ok(driver.cuLinkComplete(state))
    check(ctypes.string_at(int(linked), size), make_stream(), memory)


DEBUG_PTX = b".nv_debug_ptx_txt"


@pytest.mark.cpu_only
def test_cubins_in_fat_binaries(context, make_stream, memory):
    check(fat_binary(("cubin", "90", compiled(KERNEL))), make_stream(), memory)
    # NVIDIA's assembler keeps the PTX in a section of the cubin where line information is asked for.
    bare = compiled(KERNEL).partition(b"cupolaPT")[0]
    assert DEBUG_PTX in bare
    check(bare, make_stream(), memory)
    check(fat_binary(("cubin", "90", bare)), make_stream(), memory)
    result = driver.cuModuleLoadData(fat_binary(("cubin", "90", bare.replace(DEBUG_PTX, b".another_section_"))))
    assert status(result) == "CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert "has a cubin for sm_90 without its PTX" in explanation(result)
    result = driver.cuModuleLoadData(fat_binary(("ptx", "120", compiled(KERNEL, "ptx", "compute_120"))))
    assert "has PTX for sm_120; the CPU device, here modeling sm_90, runs" in explanation(result)


@pytest.mark.cpu_only
def test_damaged_cubins_with_the_ptx_of_the_debugger(context):
    whole = compiled(KERNEL).partition(b"cupolaPT")[0]
    table = struct.unpack_from("<Q", whole, 40)[0]
    for at in [40, 41, 58, 60, 62, *range(table, len(whole), 3)]:
        image = bytearray(whole)
        image[at] ^= 0xFF
        result = driver.cuModuleLoadData(bytes(image))
        assert status(result) in {"CUDA_SUCCESS", *REFUSALS}, (at, explanation(result))


REFUSALS = ("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_PTX")


@pytest.mark.cpu_only
@pytest.mark.parametrize("options", COMPRESSIONS[1:3], ids="".join)
def test_damaged_fat_binaries(context, tmp_path, options):
    image = bytearray(fat_binary(("ptx", "80", compiled(KERNEL, "ptx", "compute_80")), options=options))
    path = tmp_path / "cut.fatbin"
    path.write_bytes(image[:-20])
    assert status(driver.cuModuleLoad(str(path).encode())) == "CUDA_ERROR_INVALID_IMAGE"
    for at in range(16 + 88, len(image) - 8, 5):
        image[at] ^= 0xFF
    result = driver.cuModuleLoadData(bytes(image))
    assert status(result) == "CUDA_ERROR_INVALID_IMAGE" and "is damaged: " in explanation(result)


# ---- what nvcc has linked -------------------------------------------------------------------------------------------


class Wrapper(ctypes.Structure):
    """What nvcc's host code registers: __fatBinC_Wrapper_t of fatbinary_section.h."""

    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("linked", ctypes.c_void_p),
    )


def address(thing) -> int:
    return ctypes.cast(thing, ctypes.c_void_p).value or 0


@pytest.mark.cpu_only
def test_several_files_that_nvcc_has_linked(context, make_stream, memory):
    files = [fat_binary(("ptx", "80", text.encode() + b"\0")) for text in (STORES, ANSWERS)]
    own = fat_binary(("ptx", "80", HEAD.encode() + b"\0"))  # of the machine code, which is not looked at
    linked = (ctypes.c_void_p * 3)(*(address(file) for file in files), None)
    wrapper = Wrapper(0x466243B1, 2, address(own), address(linked))
    check(ctypes.addressof(wrapper), make_stream(), memory)

    # Damaged lists are refused, and their memory is not touched.
    page_end = 1 << 46
    nothing = ctypes.create_string_buffer(b"nothing")
    for place, entry in (("list", 0), ("list", page_end), ("file", page_end), ("file", address(nothing))):
        entries = (ctypes.c_void_p * 2)(entry, None)
        wrapper.linked = entry if place == "list" else address(entries)
        result = driver.cuModuleLoadData(ctypes.addressof(wrapper))
        assert status(result) in ("CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_PTX"), explanation(result)
