"""nvJitLink: LTO IR and PTX linked to cubins and PTX, and the convention of functions that raise."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from cupola.bindings import nvjitlink, nvrtc
from tests import processes

CALLER = b'__device__ int twice(int); extern "C" __global__ void k(int *p) { *p = twice(*p); }'
CALLEE = b"__device__ int twice(int x) { return 2 * x; }"


def compile_lto(source: bytes) -> bytes:
    program = nvrtc.nvrtcCreateProgram(source, b"part.cu", 0, [], [])[1]
    options = [b"-dlto", b"-rdc=true", b"-arch=sm_90"]
    assert nvrtc.nvrtcCompileProgram(program, len(options), options)[0] == 0
    ltoir = bytearray(nvrtc.nvrtcGetLTOIRSize(program)[1])
    assert nvrtc.nvrtcGetLTOIR(program, ltoir)[0] == 0
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(ltoir)


@pytest.fixture(scope="module")
def parts() -> list[bytes]:
    return [compile_lto(CALLER), compile_lto(CALLEE)]


@pytest.fixture
def linker() -> Iterator[int]:
    handle = nvjitlink.create(2, ["-arch=sm_90", b"-lto"])
    yield handle
    nvjitlink.destroy(handle)


def output(handle: int, kind: str) -> bytearray:
    buffer = bytearray(getattr(nvjitlink, f"get_linked_{kind}_size")(handle))
    assert getattr(nvjitlink, f"get_linked_{kind}")(handle, buffer) is None
    return buffer


def test_lto_to_a_cubin(linker, parts):
    for i, part in enumerate(parts):
        assert nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, part, len(part), f"part{i}") is None
    nvjitlink.complete(linker)
    cubin = output(linker, "cubin")
    assert cubin.startswith(b"\x7fELF") and b".text.k" in cubin


def test_lto_to_ptx(parts):
    handle = nvjitlink.create(num_options=3, options=("-arch=sm_90", "-lto", "-ptx"))
    for part in parts:
        nvjitlink.add_data(handle, int(nvjitlink.InputType.ANY), memoryview(part), len(part), None)
    nvjitlink.complete(handle)
    assert b".visible .entry k(" in output(handle, "ptx")
    nvjitlink.destroy(handle)


def test_a_file_and_a_buffer_by_address(tmp_path, parts):
    path = tmp_path / "part.ltoir"
    path.write_bytes(parts[0])
    memory = ctypes.create_string_buffer(parts[1], len(parts[1]))
    handle = nvjitlink.create(2, ["-arch=sm_90", "-lto"])
    nvjitlink.add_file(handle, nvjitlink.InputType.LTOIR, str(path))
    nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, ctypes.addressof(memory), len(parts[1]), "callee")
    nvjitlink.complete(handle)
    array = np.zeros(nvjitlink.get_linked_cubin_size(handle), np.uint8)
    nvjitlink.get_linked_cubin(handle, array.ctypes.data)
    assert array[:4].tobytes() == b"\x7fELF"
    nvjitlink.destroy(handle)


def test_an_unresolved_symbol_shows_the_log(linker, parts):
    nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, parts[0], len(parts[0]), "caller")
    with pytest.raises(nvjitlink.nvJitLinkError) as caught:
        nvjitlink.complete(linker)
    assert "twice" in "".join(caught.value.__notes__)
    log = bytearray(nvjitlink.get_error_log_size(linker))
    nvjitlink.get_error_log(linker, log)
    assert b"twice" in log and log.endswith(b"\0")


def test_errors():
    with pytest.raises(nvjitlink.nvJitLinkError) as caught:
        nvjitlink.create(1, ["-bogus"])
    error = caught.value
    assert (str(error), error.status) == ("ERROR_UNRECOGNIZED_OPTION (1)", 1)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is nvjitlink.nvJitLinkError and (str(again), again.status) == (str(error), 1)
    assert str(nvjitlink.nvJitLinkError(nvjitlink.Result.ERROR_INTERNAL)) == "ERROR_INTERNAL (6)"
    assert str(nvjitlink.nvJitLinkError(12345)) == "UNKNOWN_12345 (12345)"
    with pytest.raises(TypeError):
        nvjitlink.nvJitLinkError()


BAD_ARGUMENTS = [
    (TypeError, "argument 'name': expected str or None, got bytes", (b"data", 4, b"name")),
    (ValueError, "expected an address or a contiguous buffer, got str", ("text", 4, "")),
    (ValueError, "the buffer has 4 bytes, but the size is given as 5", (b"data", 5, "")),
    (ValueError, "the buffer has 4 bytes, but the size is given as 3", (b"data", 3, "")),
    (ValueError, "expected an address or a contiguous buffer", (np.zeros(8, np.uint8)[::2], 4, "")),
    (ValueError, "embedded null character", (b"data", 4, "a\0b")),
    (OverflowError, "argument 'data'", (-1, 4, "")),
]


@pytest.mark.parametrize(("error", "message", "arguments"), BAD_ARGUMENTS)
def test_bad_data(linker, error, message, arguments):
    data, size, name = arguments
    with pytest.raises(error, match=message):
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, data, size, name)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (b"0" * 4096, "writable buffer, got bytes"),
        (bytearray(1), r"the buffer has 1 bytes, but \d+ are needed"),
        (np.zeros(1 << 20, np.uint8)[::2], "writable buffer, got numpy.ndarray"),
        ("text", "writable buffer, got str"),
    ],
)
def test_bad_output(linker, parts, buffer, message):
    for part in parts:
        nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, part, len(part), "")
    nvjitlink.complete(linker)
    with pytest.raises(ValueError, match=message):
        nvjitlink.get_linked_cubin(linker, buffer)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (RuntimeError, "List is too small: 1 < 2", lambda: nvjitlink.create(2, ["-arch=sm_90"])),
        (TypeError, "expected a list or tuple, got str", lambda: nvjitlink.create(1, "-arch=sm_90")),
        (TypeError, "expected bytes, int found", lambda: nvjitlink.create(1, [1])),
        (TypeError, "expected str, got bytes", lambda: nvjitlink.add_file(1, 1, b"file")),
        (TypeError, "an integer is required", lambda: nvjitlink.destroy(None)),
        (TypeError, r"complete\(\) is missing argument 'handle'", lambda: nvjitlink.complete()),
    ],
)
def test_bad_arguments(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_names():
    assert [m.name for m in nvjitlink.InputType][:3] == ["NONE", "CUBIN", "PTX"]
    assert repr(nvjitlink.InputType.PTX) == "<InputType.PTX: 2>"
    assert {"create", "InputType", "Result", "nvJitLinkError"} <= set(dir(nvjitlink))
    assert not hasattr(nvjitlink, "sizeof") and not hasattr(nvjitlink, "nvJitLinkCreate")


def test_missing_library(run_python):
    source = """
import cupola.pathfinder as p
def load(name):
    raise p.DynamicLibNotFoundError(f'{name}: pip install "cupola[cu13]"')
p.load_nvidia_dynamic_lib = load
from cupola.bindings import nvfatbin, nvjitlink, nvvm
for call in ("nvjitlink.version()", "nvvm.version()", "nvfatbin.version()", "nvjitlink.complete(1)",
             "nvvm.get_error_string(1)"):
    try:
        eval(call)
    except p.DynamicLibNotFoundError as error:
        print(error)
"""
    names = ["nvJitLink", "nvvm", "nvfatbin", "nvJitLink", "nvvm"]
    assert run_python(source).stdout.splitlines() == [f'{name}: pip install "cupola[cu13]"' for name in names]


def test_a_function_that_the_library_lacks(run_python, tmp_path):
    """An older library: the error names it and the CUDA version that has the function."""
    import shutil

    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    path = tmp_path / "libold.so"
    processes.run(["gcc", "-shared", "-x", "c", "-o", path, "-"], input="int nvFatbinGet;", check=True)
    source = f"""
import ctypes
import cupola.pathfinder as p
p.load_nvidia_dynamic_lib = lambda name: p.LoadedDL({str(path)!r}, False, ctypes.CDLL({str(path)!r})._handle, "test")
from cupola.bindings import nvfatbin
try:
    nvfatbin.add_tile_ir(1, b"", 0, "", "")
except RuntimeError as error:
    print(type(error).__name__, error)
"""
    expected = (
        f"FunctionNotFoundError function nvFatbinAddTileIR is not found in {path}; the library of CUDA 13.5 has it, "
        "that of CUDA 12 does not"
    )
    assert run_python(source).stdout.strip() == expected
