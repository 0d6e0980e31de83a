"""PTX programs: assembled by nvJitLink, or by the driver where that is missing."""

from __future__ import annotations

import pytest

from cupola import CUDAError, LaunchConfig, Linker, PinnedMemoryResource, Program, ProgramOptions, launch
from cupola.bindings.nvjitlink import nvJitLinkError
from cupola.core.program import _linker, _ptx_compiler

SOURCE = 'extern "C" __global__ void answer(int* x, float value) { *x = 42 + (int)value; }'


@pytest.fixture(scope="module")
def text():
    from cupola import Device

    program = Program(SOURCE, "c++", {"arch": f"sm_{Device(0).arch}"})
    return program.compile("ptx").code.rstrip(b"\0").decode()


@pytest.fixture(params=["nvJitLink", "driver"])
def backend(request, monkeypatch, device):
    """Each backend in turn; the driver as if nvJitLink could not be loaded."""
    from cupola.typing import CompilerBackendType

    monkeypatch.setattr(_linker, "_backend", CompilerBackendType(request.param))
    return request.param


def test_runs(backend, device, stream, text):
    import numpy as np

    options = ProgramOptions(max_register_count=32, lineinfo=True, name="mine", arch=f"sm_{device.arch}")
    program = Program(text, "PTX", options)
    assert program.backend == backend and int(program.handle) != 0 and program.pch_status is None
    for _ in range(2):
        code = program.compile("cubin")
        assert (code.name, code.code_type) == ("mine", "cubin")
        with PinnedMemoryResource().allocate(4, stream=stream) as buffer:
            launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("answer"), buffer, 3)
            stream.sync()
            assert np.from_dlpack(buffer).view(np.int32) == 45
    program.close()
    assert program.handle == 0 and program.backend == backend
    with pytest.raises(RuntimeError, match="Program has been closed"):
        program.compile("cubin")


def test_text_passes_through(backend, text):
    program = Program(text, "ptx", {"name": "mine"})
    code = program.compile("ptx")
    assert code.code.rstrip(b"\0").decode() == text and code.name == "mine"
    with pytest.raises(ValueError, match="cubin, ptx"):
        program.compile("ltoir")


def test_malformed(backend):
    with pytest.raises((nvJitLinkError, CUDAError), match="error log"):
        Program(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { bogus; }", "ptx").compile("cubin")


def test_numba_debug_is_ignored(text):
    with pytest.warns(UserWarning, match="numba_debug"):
        Program(text, "ptx", {"numba_debug": True})


def test_options_are_those_of_the_linker():
    given = dict.fromkeys(_ptx_compiler.PASSED_ON, True) | {"arch": "sm_90", "ptxas_options": ["-v"]}
    passed = _ptx_compiler.linker_options(ProgramOptions(name="mine", **given))
    assert {field: getattr(passed, field) for field in given} == given and passed.name == "mine"
    assert set(_ptx_compiler.PASSED_ON) < set(vars(passed))


@pytest.mark.skipif(Linker.which_backend() != "nvJitLink", reason="only nvJitLink takes options of the assembler")
def test_the_log_of_the_assembler(text):
    import io

    log = io.StringIO()
    Program(text, "ptx", {"ptxas_options": "-v", "time": True}).compile("cubin", logs=log)
    assert "registers" in log.getvalue()
