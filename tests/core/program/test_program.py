"""Compiling CUDA C++ and PTX. NVRTC is needed; a device only where the driver links."""

from __future__ import annotations

import gc
import io
import os
import pickle
import threading

import pytest

from cupola import NVRTCError, ObjectCode, Program, ProgramOptions
from cupola.pathfinder import find_nvidia_header_directory

SOURCE = r"""
template <typename T> __global__ void scale(T* x, T a) { x[threadIdx.x] *= a; }
extern "C" __global__ void one(int* x) { *x = 1; }
"""
ARCH = {"arch": "sm_90"}


@pytest.fixture
def program():
    return Program(SOURCE, "c++", ARCH)


@pytest.mark.parametrize(("target", "start"), [("ptx", b"//"), ("CUBIN", b"\x7fELF"), ("ltoir", b"")])
def test_targets(program, target, start):
    code = program.compile(target)
    assert isinstance(code, ObjectCode) and code.code_type == target.lower()
    assert code.code.startswith(start) and len(code.code) > 100
    assert code.name == "default_program"


def test_ptx_ends_with_one_nul(program):
    text = program.compile("ptx").code
    assert text.endswith(b"\n\x00")
    assert text.count(b"\x00") == 1


def test_no_name_expressions(program):
    assert program.compile("ptx", None).symbol_mapping == program.compile("ptx", []).symbol_mapping == {}


def test_name_expressions(program):
    names = ["scale<float>", b"scale<double>"]
    symbols = program.compile("cubin", name_expressions=names).symbol_mapping
    assert set(symbols) == set(names)
    assert symbols["scale<float>"] == b"_Z5scaleIfEvPT_S0_"
    with pytest.raises(NVRTCError, match="NO_NAME_EXPRESSIONS_AFTER_COMPILATION"):
        program.compile("cubin", name_expressions=("scale<int>",))
    with pytest.raises(NVRTCError, match="no_such"):
        Program(SOURCE, "c++", ARCH).compile("cubin", name_expressions=("no_such<float>",))
    with pytest.raises(TypeError, match="name expression"):
        Program(SOURCE, "c++", ARCH).compile("cubin", name_expressions=(5,))


def test_errors_carry_the_log():
    with pytest.raises(NVRTCError) as caught:
        Program("__global__ void k() { no_such_name; }", "c++", ARCH).compile("ptx")
    assert str(caught.value).startswith("6: NVRTC_ERROR_COMPILATION, compilation log:\n\n")
    assert 'identifier "no_such_name" is undefined' in str(caught.value)
    assert (caught.value.status, caught.value.name) == (6, "NVRTC_ERROR_COMPILATION")
    with pytest.raises(NVRTCError, match="5: NVRTC_ERROR_INVALID_OPTION"):
        Program(SOURCE, "c++", {"arch": "sm_1"}).compile("ptx")


def test_a_missing_header_is_explained():
    with pytest.raises(NVRTCError, match=r"cuda_headers=False kept them out[^$]*include_path="):
        Program("#include <cuda_fp16.h>", "c++", {**ARCH, "cuda_headers": False}).compile("ptx")
    folder = find_nvidia_header_directory("cudart")
    program = Program(
        "#include <cuda_fp16.h>\n__global__ void k(__half* x) {}", "c++", {**ARCH, "include_path": folder}
    )
    assert b"__half" in program.compile("ptx").code


def test_logs_of_a_success():
    log = io.StringIO()
    Program(SOURCE, "c++", ARCH).compile("ptx", logs=log)
    assert log.getvalue() == ""
    Program("__global__ void k() { int unused; }", "c++", ARCH).compile("ptx", logs=log)
    assert "unused" in log.getvalue()


def test_compiles_again_with_changed_options(program):
    options = ProgramOptions(define_macro=("VALUE", "1"), **ARCH)
    program = Program('extern "C" __global__ void k(int* x) { *x = VALUE; }', "c++", options)
    first = program.compile("ptx").code
    options.define_macro = ("VALUE", "77")
    second = program.compile("ptx").code
    assert b"77;" not in first and b"77;" in second


@pytest.mark.parametrize(
    ("options", "target", "text"),
    [
        ({"arch": "compute_90"}, "cubin", "virtual architecture"),
        ({"link_time_optimization": True, **ARCH}, "cubin", "LTO-IR"),
    ],
)
def test_an_empty_result_is_an_error(options, target, text):
    with pytest.raises(ValueError, match=text):
        Program(SOURCE, "c++", options).compile(target)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((b"x", "c++", ARCH), TypeError, "Expected type str"),
        ((SOURCE, "c++", 5), TypeError, "ProgramOptions"),
        ((SOURCE, "c++", {"no_such": 1, **ARCH}), TypeError, "no_such"),
        ((SOURCE, "c", ARCH), RuntimeError, '"c\\+\\+", "ptx" and "nvvm"'),
        ((SOURCE, "c", {"use_libdevice": True, **ARCH}), ValueError, "use_libdevice"),
        ((SOURCE, "c++", {"extra_sources": [], **ARCH}), ValueError, "extra_sources"),
    ],
)
def test_bad_programs(arguments, error, text):
    with pytest.raises(error, match=text):
        Program(*arguments)


@pytest.mark.parametrize("target", ["fatbin", None, 3])
def test_bad_targets(program, target):
    with pytest.raises(ValueError, match="ptx, cubin, ltoir"):
        program.compile(target)


def test_life(program):
    assert repr(program) == "<Program backend='NVRTC'>"
    assert int(program.handle) != 0 and not program.is_closed
    code = program.compile("ptx")
    program.close()
    program.close()
    assert program.is_closed and int(program.handle) == 0 and program.backend == "NVRTC"
    with pytest.raises(RuntimeError, match="Program has been closed"):
        program.compile("fatbin")
    assert code.code
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(program)


@pytest.mark.unchecked(reason="checked programs are compiled anew")
@pytest.mark.parametrize("option", ["debug", "lineinfo"])
def test_debug_source_file(option):
    program = Program(SOURCE, "c++", {option: True, **ARCH})
    path = program.compile("ptx").name
    stem = os.path.basename(path)
    assert stem.startswith("test_program_scale_") and stem.endswith(".cu")
    with open(path, encoding="utf-8") as file:
        assert file.read() == SOURCE
    program.close()
    assert not os.path.exists(path)


@pytest.mark.unchecked(reason="checked programs are compiled anew")
def test_debug_source_file_goes_with_the_program():
    program = Program("__global__ void k() {}", "c++", {"lineinfo": True, **ARCH})
    path = program.compile("ptx").name
    assert os.path.basename(path).startswith("test_program_k_")
    del program
    gc.collect()
    assert not os.path.exists(path)


@pytest.mark.parametrize("options", [{"lineinfo": True, "name": "mine.cu"}, {}])
def test_no_debug_source_file(options):
    name = options.get("name", "default_program")
    assert Program(SOURCE, "c++", {**options, **ARCH}).compile("ptx").name == name


def test_precompiled_headers(tmp_path):
    options = ProgramOptions(create_pch=str(tmp_path / "x.pch"), **ARCH)
    program = Program(SOURCE, "c++", options)
    assert program.pch_status is None
    program.compile("ptx")
    assert program.pch_status in ("created", "failed", "not_attempted")


def test_threads_compile_in_parallel():
    results: list[bytes] = []

    def work(value: int) -> None:
        source = f'extern "C" __global__ void k(int* x) {{ *x = {value}; }}'
        results.append(Program(source, "c++", ARCH).compile("ptx").code)

    threads = [threading.Thread(target=work, args=(1000 + i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for value in range(1000, 1004):
        assert any(f" {value};".encode() in code for code in results)


@pytest.mark.cpu_only
@pytest.mark.parametrize(("cuda_version", "warned"), [("12.0", "CUDA 12.0, which may be too old"), (None, "")])
def test_ptx_that_the_driver_may_be_too_old_for(run_python, cuda_version, warned):
    done = run_python(f"""
import cupola.cpu
cupola.cpu.use(cuda_version={cuda_version!r})
from cupola import Program
Program("__global__ void f() {{}}", "c++", {{"arch": "sm_90"}}).compile("ptx")
""")
    assert done.returncode == 0, done.stderr
    assert warned in done.stderr and ("RuntimeWarning" in done.stderr) == bool(warned), done.stderr


def test_threads_take_turns_with_a_program():
    """NVRTC keeps the result in the program, so that a compile beside another would give mixed results."""
    program = Program(SOURCE, "c++", ARCH)
    expected = {target: program.compile(target).code for target in ("ptx", "cubin")}
    wrong = []

    def work(target):
        for _ in range(4):
            if program.compile(target).code != expected[target]:
                wrong.append(target)

    threads = [threading.Thread(target=work, args=(target,)) for target in ("ptx", "cubin") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
