"""Versions that do not go together are named, with what to install, where they make something fail."""

from __future__ import annotations

import pytest

from cupola import NVRTCError, Program
from cupola.core.program import _compatibility as compatibility
from cupola.core.program import _nvrtc

SOURCE = 'extern "C" __global__ void one(int* x) { *x = 1; }'
ELF = b"\x7fELF\x02\x01\x01\x41"

# Rule, its arguments, whether something will fail (None: they go together), part of the text.
RULES = [
    (compatibility.compiler_and_driver, ((13, 0), (13, 0)), None, ""),
    (compatibility.compiler_and_driver, ((12, 9), (13, 0)), None, ""),
    (compatibility.compiler_and_driver, ((13, 1), (13, 0)), False, "Compile to 'cubin'"),
    (compatibility.compiler_and_driver, ((13, 0), (12, 9)), True, 'release 580.65.06 or newer, or .*"cupola[cu12]"'),
    (compatibility.headers_and_compiler, ((12, 0), (12, 9)), None, ""),
    (compatibility.headers_and_compiler, ((12, 9), (13, 0)), False, 'pip install "cupola[cu13]"'),
    (compatibility.headers_and_compiler, ((13, 0), (12, 9)), False, "cu12"),
    (compatibility.target_and_compiler, (90, [75, 90], (13, 0)), None, ""),
    (compatibility.target_and_compiler, (90, [], (13, 0)), None, ""),
    (compatibility.target_and_compiler, (70, [75, 90], (13, 0)), True, "sm_75, sm_90. CUDA 12 .*cu12"),
    (compatibility.target_and_compiler, (120, [50, 90], (12, 4)), True, 'newer NVRTC: pip install "cupola[cu13]" --up'),
    (compatibility.ptx_and_driver, ((8, 5), (12, 5)), None, ""),
    (compatibility.ptx_and_driver, ((8, 6), (12, 6)), True, "CUDA 12.7.* Update the driver, or .* or compile to"),
    (compatibility.ptx_and_driver, ((9, 0), (12, 9)), True, "release 580.65.06.*cu12"),
    (compatibility.cubin_and_driver, (12, (12, 0)), None, ""),
    (compatibility.cubin_and_driver, (13, (12, 9)), True, "made by CUDA 13.* release 580.65.06"),
]


@pytest.mark.parametrize(("rule", "arguments", "fatal", "text"), RULES)
def test_rules(rule, arguments, fatal, text):
    found = rule(*arguments)
    assert (found and found.fatal) is fatal
    for part in text.split(".*") if found else ():
        assert part in str(found)


@pytest.mark.parametrize(("library", "fits"), [((13, 0), True), ((13, 2), True), ((12, 9), False), ((14, 0), False)])
def test_a_linker_is_not_older_than_the_compiler(library, fits):
    assert (compatibility.libraries_and_compiler("nvJitLink", library, (13, 0)) is None) is fits


def test_ptx_that_is_newer_than_what_is_known():
    found = compatibility.ptx_and_driver((9, 99), (13, 0))
    assert found is not None and "CUDA 13.99" in found.problem


@pytest.mark.parametrize(
    ("status", "code", "driver", "text"),
    [
        (222, b"// made by hand\n\n.version 9.0\n.target sm_90\n", (12, 8), "The PTX has version 9.0"),
        (222, b".version 9.0\n", (13, 0), ""),
        (222, b"no PTX", (12, 8), ""),
        (218, b".version 9.0\n", (12, 8), ""),  # another reason
        (200, ELF + b"\x08" + bytes(8), (12, 8), "The cubin was made by CUDA 13"),
        (200, ELF + b"\x08" + bytes(8), (13, 0), ""),
        (200, ELF + b"\x63" + bytes(8), (12, 8), ""),
        (200, ELF[:4], (12, 8), ""),
        (200, "/no/such/file", (12, 8), ""),
        (200, None, (12, 8), ""),
    ],
)
def test_why_code_does_not_load(status, code, driver, text):
    found = compatibility.explain_load(status, code, driver)
    assert found.startswith(text) and bool(found) == bool(text)


def test_code_of_nvrtc_on_an_older_driver(tmp_path):
    program = Program(SOURCE, "c++", {"arch": "sm_90"})
    major = _nvrtc.version()[0]
    path = tmp_path / "one.cubin"
    path.write_bytes(program.compile("cubin").code)
    assert compatibility.explain_load(200, str(path), (major, 0)) == ""
    assert f"made by CUDA {major}" in compatibility.explain_load(200, str(path), (major - 1, 0))


@pytest.fixture
def other_headers(tmp_path):
    """A folder with CUDA headers of another major version than NVRTC's."""
    (tmp_path / "cuda_runtime.h").write_text("#error too old")
    (tmp_path / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION {1000 * (_nvrtc.version()[0] - 1)}\n")
    return tmp_path


def test_headers_of_another_cuda(other_headers):
    options = {"arch": "sm_90", "include_path": [other_headers]}
    with pytest.warns(RuntimeWarning, match="CUDA's headers are of CUDA") as warned:
        Program(SOURCE, "c++", options).compile("cubin")
    assert warned[0].filename == __file__
    with pytest.raises(NVRTCError, match=r"(?s)too old.*CUDA's headers are of CUDA.*pip install") as caught:
        Program("#include <cuda_runtime.h>", "c++", options).compile("cubin")
    assert caught.value.name == "NVRTC_ERROR_COMPILATION" and caught.value.status == 6


def test_an_architecture_that_nvrtc_does_not_know():
    with pytest.raises(NVRTCError, match=r"(?s)INVALID_OPTION.*does not compile for sm_10; it knows sm_"):
        Program(SOURCE, "c++", {"arch": "sm_10"}).compile("cubin")


def test_other_mistakes_have_no_such_advice():
    with pytest.raises(NVRTCError) as caught:
        Program("nonsense", "c++", {"arch": "sm_90"}).compile("cubin")
    assert "pip install" not in str(caught.value)
