"""The generated files: up to date, and laid out as the compiler lays out the real headers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bindgen import emit
from bindgen.ir import Field, Module, Record, Typedef
from bindgen.libraries import BINDINGS, LIBRARIES
from bindgen.plan import plans
from bindgen.typesystem import Types
from tests import processes

MODULES = {name: importlib.import_module(f"cupola.bindings.{name}") for name in LIBRARIES}


def test_committed_files_are_what_the_ir_gives():
    assert [path.name for path, text in emit.outputs() if path.read_text() != text] == []


def test_stale_files_are_noticed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(emit, "outputs", lambda: iter([(tmp_path / "driver.c", "new")]))
    assert emit.emit(check=True) == 1
    assert "run `python -m bindgen emit`" in capsys.readouterr().err
    assert emit.emit() == 0 and emit.emit(check=True) == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_signatures_and_docs(name):
    library = LIBRARIES[name]
    for plan in plans(library, Types(Module.load(library.ir_path))):
        function = getattr(MODULES[name], plan.python_name)
        assert list(inspect.signature(function).parameters) == [a.python_name for a in plan.inputs]
        section = "Raises" if library.error and plan.function.returns != "const char *" else "Returns"
        assert f"{section}\n{'-' * len(section)}\n" in function.__doc__, plan.function.name
        assert not re.search(r"[\\@](?:param|p|ref|note\w*|brief|cond)\b|&\w+;", function.__doc__), plan.function.name
        assert not re.search(r"\bCUlaunchConfig[a-z]\w*[A-Z]", function.__doc__), "a record and its field run together"


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_name_resolves(name):
    module = MODULES[name]
    assert len(set(dir(module))) == len(dir(module))
    for attribute in dir(module):
        assert getattr(module, attribute) is getattr(module, attribute)


def assertions(module: Module, major: int = 0) -> Iterator[str]:
    """C11 assertions of all sizes, offsets and values in the IR, or of those that a CUDA major has.

    Records of the older major may lack what the newest has at the end: only that they are not larger can be said, since
    whoever has room for the newest has room for them.
    """
    types = Types(module)
    older = major == int(module.older.partition(".")[0])

    def here(item: Any) -> bool:
        return not major or item.only in (0, major)

    typedefs = {t.name: t for t in module.types if isinstance(t, Typedef)}
    for cls in types.records.values():
        if not here(cls.record) or not here(typedefs.get(cls.name, cls.record)):
            continue
        plain = cls.base or cls.name != cls.record.tag
        ctype = cls.name if plain else f"{cls.record.kind} {cls.name}"
        record = cls.record.older if older and cls.record.older else cls.record
        smaller = "<=" if older and not cls.record.older else "=="
        yield f"_Static_assert(sizeof({ctype}) {smaller} {record.size}, {ctype!r});"
        yield f"_Static_assert(_Alignof({ctype}) {smaller} {record.align}, {ctype!r});"
        yield from (
            f"_Static_assert(offsetof({ctype}, {path}) == {offset}, {path!r});"
            for path, offset in paths(record, "", 0, here)
            if not older or not is_reserved(path)
        )
    for handle in types.handles.values():
        if here(typedefs[handle.name]):
            yield f"_Static_assert(sizeof({handle.name}) == {handle.size}, {handle.name!r});"
    for enum in types.enums.values():
        for m in enum.enum.members if here(enum.enum) else ():
            if here(m):
                value = m.older if older and m.older is not None else m.value
                yield f"_Static_assert((long long){m.name} == {value}, {m.name!r});"
    for constant in module.constants:
        if major and here(constant):
            value = constant.older if older and constant.older is not None else constant.value
            yield f"_Static_assert((long long)({constant.name}) == (long long){value & (1 << 64) - 1:#x}ULL"
            yield f'    || (unsigned int)(long long)({constant.name}) == {value & (1 << 64) - 1:#x}ULL, "");'


def is_reserved(path: str) -> bool:
    """Reserved space shrinks where a field is added."""
    return path.rpartition(".")[2].startswith(("reserved", "_"))


def paths(record: Record, prefix: str, start: int, here: Callable[[Any], bool]) -> Iterator[tuple[str, int]]:
    item: Field
    for item in filter(here, record.fields):
        path = f"{prefix}.{item.name}".strip(".") if item.name else prefix
        if item.name:
            yield path, start + item.offset
        if item.record:
            path += "[0]" if item.size > item.record.size else ""
            yield from paths(item.record, path, start + item.offset, here)


def compile_only(source: str, folder: Path, *include: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "probe.c"
    path.write_text(source)
    flags = [f"-I{i}" for i in include]
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags, str(path)]
    return processes.run(command)


OURS = BINDINGS.parents[2] / "bindgen" / "headers"
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@needs_gcc
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_compiler_has_no_doubts(name):
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        pytest.skip("needs Python's headers")
    folders = [f"-I{folder}" for folder in (include, BINDINGS / "include", BINDINGS / "support")]
    flags = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *folders]
    done = processes.run(["gcc", *flags, BINDINGS / f"{name}.c"])
    assert done.returncode == 0, done.stderr[:2000]


@needs_gcc
@pytest.mark.parametrize("name", LIBRARIES)
def test_layout_of_our_header(name, tmp_path):
    body = "\n".join(assertions(Module.load(LIBRARIES[name].ir_path))).replace("'", '"')
    source = f'#include <stddef.h>\n#include "cupola/{name}.h"\n{body}\n'
    done = compile_only(source, tmp_path, BINDINGS / "include")
    assert done.returncode == 0, done.stderr[:2000]


def include_folders(major: int) -> list[Path]:
    """Folders of NVIDIA's headers: CUDA 13 has one for all wheels, CUDA 12 one for each.

    The headers of CUDA 12's compiler, which its runtime includes, are those of CUDA 13 here: its wheel is large, and
    they only define what the compiler needs.
    """
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
    newest = [folder for root in roots for folder in root.glob("cu13/include")]
    if major == 13:
        return newest
    older = [f for root in roots for f in sorted([*root.glob("*/include"), *root.glob("*/nvvm/include")])]
    return [f for f in older if f not in newest] + newest


def probe(name: str, major: int) -> tuple[list[Path], list[str]]:
    """The folders for the compiler and the assertions, or a skip that says what to install."""
    folders, library = include_folders(major), LIBRARIES[name]
    own = [f for f in folders if major == 13 or f.parent.name != "cu13"]
    for header in library.headers:
        if not any((folder / header).exists() for folder in (*own, OURS)):
            pytest.skip(f"needs {header} of CUDA {major}, which is in the wheel {WHEELS[header][13 - major]}")
    module = Module.load(library.ir_path)
    found = next((f / "cuda.h" for f in own if (f / "cuda.h").exists()), None)
    version = re.search(r"#define CUDA_VERSION (\d+)", found.read_text()) if found else None
    wanted = module.version if major == 13 else module.older
    if version and f"{int(version[1]) // 1000}.{int(version[1]) % 1000 // 10}" != wanted:
        pytest.skip(f"the installed headers of CUDA {major} are not those of {wanted}")
    return folders, list(assertions(module, major))


WHEELS = {
    "nvrtc.h": ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    "nvJitLink.h": ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"),
    "nvvm.h": ("nvidia-nvvm", "nvidia-cuda-nvcc-cu12"),
    "nvFatbin.h": ("nvidia-nvfatbin", "nvidia-nvfatbin-cu12"),
    "nvml.h": ("nvidia-nvml-dev", "nvidia-nvml-dev-cu12"),
    "cufile.h": ("nvidia-cufile", "nvidia-cufile-cu12"),
    "curand.h": ("nvidia-curand", "nvidia-curand-cu12"),
    "cusolver_common.h": ("nvidia-cusolver", "nvidia-cusolver-cu12"),
    "cusolverDn.h": ("nvidia-cusolver", "nvidia-cusolver-cu12"),
    "cudss.h": ("nvidia-cudss-cu13", "nvidia-cudss-cu12"),
    "cudss_data_types.h": ("nvidia-cudss-cu13", "nvidia-cudss-cu12"),
    "nccl.h": ("nvidia-nccl-cu13", "nvidia-nccl-cu12"),
    "cusparse.h": ("nvidia-cusparse", "nvidia-cusparse-cu12"),
    "cublasLt.h": ("nvidia-cublas", "nvidia-cublas-cu12"),
    "cufft.h": ("nvidia-cufft", "nvidia-cufft-cu12"),
    "cufftXt.h": ("nvidia-cufft", "nvidia-cufft-cu12"),
    "cudalibxt.h": ("nvidia-cufft", "nvidia-cufft-cu12"),
    "cublas_v2.h": ("nvidia-cublas", "nvidia-cublas-cu12"),
    "cublas_api.h": ("nvidia-cublas", "nvidia-cublas-cu12"),
} | dict.fromkeys(
    (*LIBRARIES["driver"].headers, *LIBRARIES["runtime"].headers), ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12")
)


@needs_gcc
@pytest.mark.parametrize("major", [13, 12])
@pytest.mark.parametrize("name", LIBRARIES)
def test_layout_of_the_real_headers(name, major, tmp_path):
    folders, asserted = probe(name, major)
    headers = "".join(f"#include <{h}>\n" for h in LIBRARIES[name].headers)
    body = "\n".join(asserted).replace("'", '"')
    done = compile_only(f"#include <stddef.h>\n{headers}{body}\n", tmp_path, *folders, OURS)
    if "crt/host_config.h: No such file" in done.stderr:
        pytest.skip("needs crt/host_config.h, which is in the wheel nvidia-cuda-crt")
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("major", [13, 12])
@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if library.constants])
def test_no_number_of_the_real_headers_is_missing(name, major):
    """Read with a pattern instead of a compiler: what is plainly a number or another constant's second name."""
    folders, _ = probe(name, major)
    library = LIBRARIES[name]
    known = {constant.name for constant in Module.load(library.ir_path).constants}
    listed: dict[str, str] = {}
    for header in library.headers:
        path = next(path for folder in (*folders, OURS) if (path := folder / header).exists())
        text = path.read_text(errors="replace").replace("\\\n", " ")
        listed |= dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\(*(?:\(\w+\) *)?\w+)(?!\w*:)", text, re.M))
    numbers = {
        macro
        for macro, value in listed.items()
        if macro.startswith(library.constants) and (value in known or re.search(r"\b\d", value))
    }
    assert len(numbers) > 5 or name in ("nvrtc", "cublas", "curand", "cusolver_dn", "cusparse")
    assert numbers - known == set()


@needs_gcc
def test_headers_serve_c_and_cpp(tmp_path):
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        pytest.skip("needs Python's headers")
    source = "#include <Python.h>\n" + "".join(f'#include "cupola/{name}.h"\n' for name in LIBRARIES)
    source += "".join(f"const cupola_{n}_table *f{n}(void) {{ return cupola_import_{n}(); }}\n" for n in LIBRARIES)
    assert compile_only(source, tmp_path, BINDINGS / "include", include).stderr == ""
    if not shutil.which("g++"):
        assert not os.environ.get("CI"), "CI must have g++"
        pytest.skip("needs a C++ compiler for the other half")
    command = [
        "gcc",
        "-x",
        "c++",
        "-fsyntax-only",
        f"-I{include}",
        f"-I{BINDINGS / 'include'}",
        str(tmp_path / "probe.c"),
    ]
    assert processes.run(command).stderr == ""


@pytest.mark.parametrize(
    ("name", "symbol", "since", "aliases"),
    [
        ("cuMemAlloc", "cuMemAlloc_v2", 3020, []),
        ("cuCtxCreate", "cuCtxCreate_v4", 12050, []),
        ("cuEventElapsedTime", "cuEventElapsedTime_v2", 12080, ["cuEventElapsedTime"]),
        ("cuGraphAddNode", "cuGraphAddNode_v2", 12030, []),
        ("cuGraphAddNode_v3", "cuGraphAddNode_v3", 13040, []),
        ("cuGraphNodeSetParams", "cuGraphNodeSetParams", 12020, []),
        ("cuGraphInstantiate", "cuGraphInstantiateWithFlags", 11040, []),
        ("cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030, []),
        ("cuProfilerStart", "cuProfilerStart", 4000, []),
    ],
)
def test_versions(name, symbol, since, aliases):
    functions = {f.name: f for f in Module.load(LIBRARIES["driver"].ir_path).functions}
    function = functions[name]
    assert (function.symbol, function.since, function.aliases) == (symbol, since, aliases)
