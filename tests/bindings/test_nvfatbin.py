"""nvFatbin: a cubin and PTX in one fat binary."""

from __future__ import annotations

import pytest

from cupola.bindings import nvfatbin, nvjitlink, nvrtc

FATBIN_MAGIC = b"\x50\xed\x55\xba"


@pytest.fixture(scope="module")
def ptx() -> bytes:
    program = nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k() {}', b"k.cu", 0, [], [])[1]
    assert nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=compute_90"])[0] == 0
    text = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(text)


@pytest.fixture(scope="module")
def cubin(ptx) -> bytes:
    handle = nvjitlink.create(1, ["-arch=sm_90"])
    nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx, len(ptx), "k.ptx")
    nvjitlink.complete(handle)
    image = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, image)
    nvjitlink.destroy(handle)
    return bytes(image)


def test_a_cubin_and_ptx(ptx, cubin):
    handle = nvfatbin.create(["-64", b"-compress=false"], 2)
    nvfatbin.add_cubin(handle, cubin, len(cubin), "90", "k")
    nvfatbin.add_ptx(handle, ptx, len(ptx), "90", "k", None)
    image = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, image)
    nvfatbin.destroy(handle)
    assert image.startswith(FATBIN_MAGIC) and cubin in image and b".entry k(" in image


def test_nvjitlink_takes_it(ptx):
    handle = nvfatbin.create(None, 0)
    nvfatbin.add_ptx(handle, ptx, len(ptx), "90", "k", "")
    image = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, image)
    nvfatbin.destroy(handle)
    linker = nvjitlink.create(1, ["-arch=sm_90"])
    nvjitlink.add_data(linker, nvjitlink.InputType.FATBIN, image, len(image), "k.fatbin")
    nvjitlink.complete(linker)
    assert nvjitlink.get_linked_cubin_size(linker) > 0
    nvjitlink.destroy(linker)


def test_version_and_texts():
    major, minor = nvfatbin.version()
    assert major >= 12 and minor >= 0
    assert nvfatbin.get_error_string(nvfatbin.Result.ERROR_INVALID_ARCH)
    assert nvfatbin.get_error_string(0) == ""


def test_errors():
    with pytest.raises(nvfatbin.nvFatbinError) as caught:
        nvfatbin.create(["-bogus"], 1)
    assert str(caught.value) == "ERROR_UNRECOGNIZED_OPTION (8)"
    handle = nvfatbin.create([], 0)
    with pytest.raises(nvfatbin.nvFatbinError, match="ERROR_MISSING_PTX_VERSION") as caught:
        nvfatbin.add_ptx(handle, b"junk", 4, "90", "k", "")
    assert caught.value.status == nvfatbin.Result.ERROR_MISSING_PTX_VERSION
    with pytest.raises(ValueError, match="the size is given as 7"):
        nvfatbin.add_cubin(handle, b"short", 7, "90", "k")
    with pytest.raises(TypeError, match="argument 'arch': expected str, got int"):
        nvfatbin.add_cubin(handle, b"short", 5, 90, "k")
    nvfatbin.destroy(handle)
