"""Real modules: what NVRTC makes of varied CUDA C++ is parsed, whole and fast, and its kernels are analyzed."""

from __future__ import annotations

import collections
import re

import pytest

from cupola.cpu.compiler.passes import analyze, prepare
from cupola.cpu.compiler.ptx import PtxUnsupportedError, ast, parse

from . import nvrtc, sources

pytestmark = pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed")

POINTER_CALLS = {"calls"}  # one of these kernels calls through pointers, which is refused
LARGE = {"atomics", "cooperative", "pipeline", "algorithms", "cluster"}  # CCCL takes NVRTC more than a second
MODULES = [(name, ()) for name in sources.SOURCES]
MODULES += [(name, ("-lineinfo",)) for name in sources.SOURCES if name not in LARGE or name == "algorithms"]
MODULES += [(name, ("-G",)) for name in sources.SOURCES if name not in LARGE | {"warp"}]  # -G refuses "warp"


def ptx(name: str, *options: str) -> str:
    code, needed = sources.SOURCES[name]
    return nvrtc.compile_ptx(code, *needed, *options)


@pytest.mark.parametrize(("name", "options"), MODULES)
def test_source(name: str, options: tuple[str, ...]) -> None:
    module = parse(ptx(name, *options))
    kernels = [f for f in module.functions.values() if f.is_entry]
    assert kernels and module.target == "sm_90"
    for kernel in kernels:
        try:
            function = prepare(module, kernel)
        except PtxUnsupportedError as error:
            assert "calls through pointers" in str(error) or "recursive" in str(error)
            assert name in POINTER_CALLS
            continue
        for contiguous in (True, False):
            analysis = analyze(function, width=32, x_is_contiguous=contiguous)
            named = {register for block in analysis.blocks for effect in block.effects for register in effect.writes}
            assert named <= analysis.registers.keys()
            assert named == analysis.shapes.keys()


def test_line_information() -> None:
    module = parse(ptx("inline_asm", "-lineinfo"))
    body = [s for s in module.functions["scopes"].body or () if isinstance(s, ast.Instruction)]
    lane = next(i for i in body if "%laneid" in i.text)
    assert lane.location.file is not None and lane.location.file.endswith("test.cu")
    assert lane.location.line == 2 and lane.location.function is not None and "lane" in lane.location.function
    assert lane.location.inlined_at is not None and lane.location.inlined_at.line == 4
    assert lane.location.inlined_at.function == "scopes"


def test_variables() -> None:
    module = parse(ptx("calls"))
    variables = module.variables
    assert [r[2] for r in variables["table"].relocations] == ["_Z3onei", "_Z3twoi", "_Z5twicei"]
    assert variables["pointer"].relocations == ((0, 8, "numbers", 12, True),)
    assert variables["managed"].managed and variables["dynamic"].size == 0
    assert variables["weights"].space == "const"
    assert variables["words"].relocations[1][2] == "$str$1"
    assert variables["$str$1"].initializer == b"two;\n{"


def test_all_of_a_large_module_is_there() -> None:
    """Nothing is dropped on the way: as many instructions of each opcode as the text has."""
    text = ptx("algorithms")
    module = parse(text)
    found = collections.Counter(
        s.opcode for f in module.functions.values() for s in f.body or () if isinstance(s, ast.Instruction)
    )
    code = re.sub(r"//.*", "", text)
    for opcode in ("shfl", "bar", "ld", "st", "setp", "selp", "add"):
        assert found[opcode] == len(re.findall(rf"(?<![\w.%$]){opcode}\.", code)) > 0


def test_a_missing_header_skips_a_test_but_not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "#include <no/such/header.h>\n"
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no/such/header.h is not installed"):
        nvrtc.compile_ptx(source)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match="cannot open source file"):
        nvrtc.compile_ptx(source)
