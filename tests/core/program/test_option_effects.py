"""Every option of a program really reaches NVRTC: what it changes in the result, or what the compiler says of it."""

from __future__ import annotations

import io
import json
import os
import warnings
from dataclasses import fields

import pytest

from cupola import CompilerWarning, NVRTCError, Program, ProgramOptions
from cupola.core.program import _nvrtc
from cupola.pathfinder import find_nvidia_header_directory
from tests.conftest import on_cpu_device

VERSION = _nvrtc.version()

MATHS = 'extern "C" __global__ void k(float* x) { x[0] = sqrtf(x[1] / x[2]) * x[3] + x[4]; }'
UNUSED = 'extern "C" __global__ void k(int* x) { int unused; *x = 1; }'
MACRO = """
#ifdef V
extern "C" __global__ void k(int* x) { *x = V; }
#endif
#ifdef __CUDACC_RDC__
extern "C" __global__ void with_rdc() {}
#endif
"""
LONG = 'extern "C" __global__ void k(int* x) { int v = x[0]; for (int i = 0; i < x[1]; i++) v = v * v + i; x[2] = v; }'
STANDARD = 'extern "C" __global__ void k(long* x) { *x = __cplusplus; }'
MOVE = 'extern "C" __global__ void k(int* x) { *x = std::move(x[1]); }'
LISTS = 'extern "C" __global__ void k(int* x) { std::initializer_list<int> v = {1, 2}; *x = v.size(); }'
HOST = 'int twice(int v) { return 2 * v; }\nextern "C" __global__ void k(int* x) { *x = twice(x[1]); }'
INT128 = 'extern "C" __global__ void k(__int128* x) { *x = *x + 1; }'
MANY = (
    'extern "C" __global__ void k(float* x) {'
    + "".join(f"float v{i} = x[{i}];" for i in range(60))
    + "__syncthreads();"
    + "".join(f"x[{i} + threadIdx.x] = v{i} * v{59 - i};" for i in range(60))
    + "}"
)
FLOAT128 = 'extern "C" __global__ void k(double* x) { __float128 v = x[0]; x[1] = (double)v; }'
STATIC = 'static __device__ int mine; extern "C" __global__ void k(int** x) { *x = &mine; }'

# option, value, source, what the PTX has with it, and not without it (or the other way round, for a leading "!")
IN_PTX = [
    ("arch", "sm_80", MATHS, ".target sm_80"),
    ("debug", True, MATHS, ".section\t.debug_"),
    ("lineinfo", True, MATHS, ".loc"),
    ("ftz", True, MATHS, ".ftz."),
    ("prec_sqrt", False, MATHS, "sqrt.approx"),
    ("prec_div", False, MATHS, "div.full"),
    ("fma", False, MATHS, "!fma.rn"),
    ("use_fast_math", True, MATHS, "approx.ftz"),
    ("relocatable_device_code", True, MACRO, "with_rdc"),
    ("define_macro", ("V", "7770777"), MACRO, "7770777"),
    ("define_macro", ["W", ("V", "7780778")], MACRO, "7780778"),
    ("std", "c++20", STANDARD, "202002"),
    ("device_as_default_execution_space", True, HOST, "shl"),
    ("device_int128", True, INT128, "add.cc"),
    ("builtin_move_forward", False, MOVE, None),
    ("builtin_initializer_list", False, LISTS, None),
]


def compile_(source, target="ptx", **options):
    log = io.StringIO()
    code = Program(source, "c++", {"arch": "sm_90", **options}).compile(target, logs=log)
    return code.code.decode(errors="replace"), log.getvalue()


@pytest.mark.parametrize(("option", "value", "source", "text"), IN_PTX)
def test_in_the_ptx(option, value, source, text):
    if option == "lineinfo" and on_cpu_device():
        pytest.skip("programs for the CPU device have lines without asking: see the next test")

    def has(**options):
        try:
            return (text or ".entry").lstrip("!") in compile_(source, **options)[0]
        except NVRTCError:
            return False

    with_it, without = has(**{option: value}), has()
    assert with_it != without
    assert with_it == (text is not None and not text.startswith("!"))


@pytest.mark.cpu_only
def test_lines_without_asking():
    assert ".loc" in compile_(MATHS)[0]


# option, value, source, target, what the log has with it and not without
IN_LOG = [
    ("ptxas_options", "-v", LONG, "cubin", "registers"),
    ("diag_warn", 177, UNUSED, "ptx", "177-D"),
]


@pytest.mark.parametrize(("option", "value", "source", "target", "text"), IN_LOG)
def test_in_the_log(option, value, source, target, text):
    silence = {} if option == "diag_warn" else {"disable_warnings": False}
    silence["no_cache"] = True  # NVRTC's own, which has no log of a compilation that another process did
    assert text in compile_(source, target, **{option: value}, **silence)[1]
    assert option == "diag_warn" or text not in compile_(source, target)[1]


@pytest.mark.parametrize(
    ("option", "value", "source", "text"),
    [
        ("restrict", True, "int* x, const int* y) { x[0] = y[0]; x[1] = y[1]; }", "ld.global.nc"),
        ("optimization_info", "inline", "float* x) { *x = twice(*x); }", "inlined into"),
    ],
)
def test_what_nvrtc_does_not_forget(run_python, option, value, source, text):
    """These stay on for all later programs of the process, in NVRTC 13.5: so they are tried in one of their own."""
    done = run_python(f"""
import io
from cupola import Program
source = "__device__ float twice(float v) {{ return 2 * v; }}" + 'extern "C" __global__ void k({source}'
for options in ({{}}, {{{option!r}: {value!r}}}):
    log = io.StringIO()
    code = Program(source, "c++", {{"arch": "sm_90", **options}}).compile("ptx", logs=log)
    print({text!r} in code.code.decode() + log.getvalue())
""")
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_registers():
    assert "Used 24 registers" in compile_(MANY, "cubin", max_register_count=24, ptxas_options=["-v"])[1]
    assert "Used 24 registers" not in compile_(MANY, "cubin", ptxas_options=["-v"])[1]


def test_undefined_macros():
    assert "7770777" not in compile_(MACRO, define_macro=("V", "7770777"), undefine_macro="V")[0]
    assert "7770777" not in compile_(MACRO, define_macro=("V", "7770777"), undefine_macro=["W", "V"])[0]


@pytest.mark.skipif(VERSION < (13, 0), reason="NVRTC has __float128 since 13.0")
def test_float128():
    assert ".entry k" in compile_(FLOAT128, arch="sm_100", device_float128=True)[0]
    with pytest.raises(NVRTCError, match="device-float128"):
        compile_(FLOAT128, arch="sm_100")


@pytest.mark.parametrize(
    ("options", "text"),
    [({"disable_warnings": True}, ""), ({"diag_suppress": 177}, ""), ({"diag_suppress": (176, 177)}, "")],
)
def test_silences(options, text):
    assert "unused" in compile_(UNUSED)[1]
    assert "unused" not in compile_(UNUSED, **options)[1]


def test_diagnostics():
    with pytest.raises(NVRTCError, match="unused"):
        compile_(UNUSED, diag_error=177)
    assert "^" in compile_(UNUSED)[1] and "^" not in compile_(UNUSED, brief_diagnostics=True)[1]
    assert "#177-D" in compile_(UNUSED)[1] and "#177-D" not in compile_(UNUSED, no_display_error_number=True)[1]


def test_headers(tmp_path):
    (tmp_path / "mine.h").write_text("#define V 91\n")
    source = '#include "mine.h"\n' + MACRO
    for path in (tmp_path, str(tmp_path), [tmp_path]):
        assert "91" in compile_(source, include_path=path)[0]
    assert "91" in compile_(MACRO, pre_include=tmp_path / "mine.h")[0]
    assert "91" in compile_(MACRO, pre_include=["mine.h"], include_path=str(tmp_path))[0]
    assert "91" in compile_(source, name=str(tmp_path / "program.cu"))[0]
    with pytest.raises(NVRTCError, match="mine.h"):
        compile_(source, name=str(tmp_path / "program.cu"), no_source_include=True)


@pytest.mark.skipif(VERSION < (13, 3), reason="NVRTC carries headers since 13.3")
def test_bundled_headers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void k(__half* x) { *x = __float2half(1.0f); }'
    assert "st.global" in compile_(source, use_bundled_headers=True)[0]
    assert os.listdir(tmp_path / "cupola" / "nvrtc-bundled-headers")


@pytest.mark.skipif(VERSION >= (13, 3), reason="this NVRTC carries headers")
def test_without_bundled_headers():
    with pytest.raises(RuntimeError, match="use_bundled_headers needs NVRTC 13.3"):
        Program(MATHS, "c++", {"arch": "sm_90", "use_bundled_headers": True})


def test_syntax_only():
    assert ".entry" not in compile_(MATHS, fdevice_syntax_only=True)[0]
    with pytest.raises(NVRTCError):
        compile_("oops", fdevice_syntax_only=True)


def test_link_time_optimisation():
    assert compile_(MATHS, "ltoir", link_time_optimization=True)[0]
    assert compile_(MATHS, "ltoir", gen_opt_lto=True, link_time_optimization=True)[0]


def test_name_is_seen_in_diagnostics():
    with pytest.raises(NVRTCError, match=r"mine\.cu\(1\)"):
        compile_("oops", name="mine.cu")


# What NVRTC accepts without a trace in the result, or only in its speed.
ACCEPTED = [
    ("extensible_whole_program", True),
    ("device_code_optimize", True),
    ("extra_device_vectorization", True),
    ("split_compile", 2),
    ("minimal", True),
    ("no_cache", True),
    ("frandom_seed", "seed"),
    ("ofast_compile", "mid"),
    ("pch_verbose", False),
    ("pch_messages", False),
    ("instantiate_templates_in_pch", False),
    ("numba_debug", True),
]


@pytest.mark.parametrize(("option", "value"), ACCEPTED)
def test_accepted(option, value):
    """A misspelled flag would be an error: NVRTC refuses what it does not know."""
    options = {"debug": True} if option in ("device_code_optimize", "numba_debug") else {}
    try:
        text = compile_(MATHS, **{option: value}, **options)[0]
    except NVRTCError as error:
        if error.name != "NVRTC_ERROR_INVALID_OPTION" or VERSION >= (13, 5):
            raise
        pytest.skip(f"this NVRTC does not have it: {error}")
    assert ".entry k" in text


def test_time_traces(tmp_path):
    times, trace = tmp_path / "times.csv", tmp_path / "trace.json"
    compile_(MATHS, time=str(times))
    assert "," in times.read_text()
    try:
        compile_(MATHS, "cubin", fdevice_time_trace=str(trace))
    except NVRTCError as error:
        assert error.name == "NVRTC_ERROR_INVALID_OPTION"
        pytest.skip("this NVRTC has no time traces")
    assert json.loads((tmp_path / "trace.json.json").read_text())  # NVRTC adds the suffix


@pytest.mark.skipif(VERSION < (12, 8), reason="NVRTC has precompiled headers since 12.8")
class TestPrecompiledHeaders:
    @pytest.fixture
    def header(self, tmp_path):
        (tmp_path / "big.h").write_text("#define V 93\n" + "\n".join(f"struct S{i} {{ int x; }};" for i in range(500)))
        return '#include "big.h"\n#pragma nv_hdrstop\n' + MACRO

    def test_create_and_use(self, header, tmp_path):
        pch = str(tmp_path / "big.pch")
        options = {"arch": "sm_90", "include_path": str(tmp_path)}
        program = Program(header, "c++", {**options, "create_pch": pch})
        assert program.pch_status is None
        assert b"93" in program.compile("ptx", logs=io.StringIO()).code
        assert program.pch_status == "created" and os.path.getsize(pch) > 0
        user = Program(header, "c++", {**options, "use_pch": pch, "pch_verbose": True})
        assert b"93" in user.compile("ptx", logs=io.StringIO()).code
        assert user.pch_status is None

    def test_automatic(self, header, tmp_path):
        folder = tmp_path / "pch"
        folder.mkdir()
        log = io.StringIO()
        options = {"arch": "sm_90", "include_path": str(tmp_path), "pch": True, "pch_dir": str(folder)}
        statuses = []
        for _ in range(2):
            program = Program(header, "c++", ProgramOptions(**options, pch_messages=True))
            program.compile("ptx", logs=log)
            statuses.append(program.pch_status)
        assert statuses == ["created", "not_attempted"] and os.listdir(folder)
        assert "precompiled header" in log.getvalue()


HALF = "#include <cuda_fp16.h>\n__global__ void k(__half* x) { x[0] = 1; }"


def test_cuda_headers(tmp_path):
    if find_nvidia_header_directory("cudart") is None:
        pytest.skip("the headers of CUDA are not installed")
    assert "st.global" in compile_(HALF)[0]
    with pytest.raises(NVRTCError, match="cuda_headers=False kept them out"):
        compile_(HALF, cuda_headers=False)
    (tmp_path / "cuda_fp16.h").write_text("typedef int __half;")  # the program's own folders come first
    assert "st.global.u32" in compile_(HALF, include_path=tmp_path)[0].replace(".b32", ".u32")


def test_every_option_is_tested():
    here = {row[0] for row in (*IN_PTX, *IN_LOG, *ACCEPTED)}
    here |= {"disable_warnings", "diag_suppress", "diag_error", "brief_diagnostics", "no_display_error_number"}
    here |= {"include_path", "pre_include", "no_source_include", "use_bundled_headers", "fdevice_syntax_only"}
    here |= {"link_time_optimization", "gen_opt_lto", "name", "time", "fdevice_time_trace"}
    here |= {"max_register_count", "undefine_macro", "device_float128", "restrict", "optimization_info"}
    here |= {"pch", "create_pch", "use_pch", "pch_dir", "cuda_headers"}
    for_nvvm = {"extra_sources", "use_libdevice"}
    assert {field.name for field in fields(ProgramOptions)} == here | for_nvvm


def test_warnings_become_warnings():
    program = Program(UNUSED, "c++", {"arch": "sm_90"})
    with pytest.warns(CompilerWarning, match=r"NVRTC warns of default_program:\n.*unused") as caught:
        program.compile("ptx")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.compile("ptx", logs=io.StringIO())
        Program(LONG, "c++", {"arch": "sm_90", "ptxas_options": "-v"}).compile("cubin")  # that is no warning
