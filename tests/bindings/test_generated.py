"""The generated files: up to date, and laid out as the compiler lays out the real headers."""

from __future__ import annotations

import importlib
import inspect
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen import emit
from codegen.ir import Field, Module, Record
from codegen.libraries import BINDINGS, LIBRARIES
from codegen.plan import plans
from codegen.typesystem import Types

MODULES = {name: importlib.import_module(f"cupola.bindings.{name}") for name in LIBRARIES}


def test_committed_files_are_what_the_ir_gives():
    assert [path.name for path, text in emit.outputs() if path.read_text() != text] == []


def test_stale_files_are_noticed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(emit, "outputs", lambda: iter([(tmp_path / "driver.c", "new")]))
    assert emit.emit(check=True) == 1
    assert "run `python -m codegen emit`" in capsys.readouterr().err
    assert emit.emit() == 0 and emit.emit(check=True) == 0


@pytest.mark.parametrize("name", LIBRARIES)
def test_signatures_and_docs(name):
    library = LIBRARIES[name]
    for plan in plans(library, Types(Module.load(library.ir_path))):
        function = getattr(MODULES[name], plan.python_name)
        assert list(inspect.signature(function).parameters) == [a.python_name for a in plan.inputs]
        section = "Raises" if library.error and plan.function.returns != "const char *" else "Returns"
        assert f"{section}\n{'-' * len(section)}\n" in function.__doc__, plan.function.name


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_name_resolves(name):
    module = MODULES[name]
    assert len(set(dir(module))) == len(dir(module))
    for attribute in dir(module):
        assert getattr(module, attribute) is getattr(module, attribute)


def assertions(module: Module) -> Iterator[str]:
    """C11 assertions of all sizes, offsets and values in the IR."""
    types = Types(module)
    for cls in types.records.values():
        plain = cls.base or cls.name != cls.record.tag
        ctype = cls.name if plain else f"{cls.record.kind} {cls.name}"
        size, align = f"sizeof({ctype}) == {cls.record.size}", f"_Alignof({ctype}) == {cls.record.align}"
        yield f"_Static_assert({size} && {align}, {ctype!r});"
        yield from (
            f"_Static_assert(offsetof({ctype}, {path}) == {offset}, {path!r});"
            for path, offset in paths(cls.record, "", 0)
        )
    for handle in types.handles.values():
        yield f"_Static_assert(sizeof({handle.name}) == {handle.size}, {handle.name!r});"
    for enum in types.enums.values():
        yield from (f"_Static_assert((long long){m.name} == {m.value}, {m.name!r});" for m in enum.enum.members)


def paths(record: Record, prefix: str, start: int) -> Iterator[tuple[str, int]]:
    item: Field
    for item in record.fields:
        path = f"{prefix}.{item.name}".strip(".") if item.name else prefix
        if item.name:
            yield path, start + item.offset
        if item.record:
            path += "[0]" if item.size > item.record.size else ""
            yield from paths(item.record, path, start + item.offset)


def compile_only(source: str, folder: Path, *include: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "probe.c"
    path.write_text(source)
    flags = [f"-I{i}" for i in include]
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


OURS = BINDINGS.parents[2] / "codegen" / "headers"
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


@needs_gcc
@pytest.mark.parametrize("name", LIBRARIES)
def test_the_compiler_has_no_doubts(name):
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        pytest.skip("needs Python's headers")
    flags = ["-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{include}", f"-I{BINDINGS / 'include'}"]
    done = subprocess.run(["gcc", *flags, BINDINGS / f"{name}.c"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


@needs_gcc
@pytest.mark.parametrize("name", LIBRARIES)
def test_layout_of_our_header(name, tmp_path):
    body = "\n".join(assertions(Module.load(LIBRARIES[name].ir_path))).replace("'", '"')
    source = f'#include <stddef.h>\n#include "cupola/{name}.h"\n{body}\n'
    done = compile_only(source, tmp_path, BINDINGS / "include")
    assert done.returncode == 0, done.stderr[:2000]


@needs_gcc
@pytest.mark.parametrize("name", LIBRARIES)
def test_layout_of_the_real_headers(name, tmp_path):
    include = pytest.importorskip("codegen.parse", reason="needs libclang").find_include
    try:
        folder = include()
    except SystemExit:
        pytest.skip("needs nvidia-cuda-runtime")
    library = LIBRARIES[name]
    if missing := [header for header in library.headers if not any((f / header).exists() for f in (folder, OURS))]:
        pytest.skip(f"needs {', '.join(missing)}")
    module = Module.load(library.ir_path)
    version = int(next(c.value for c in Module.load(LIBRARIES["driver"].ir_path).constants if c.name == "CUDA_VERSION"))
    if f"#define CUDA_VERSION {version}" not in (folder / "cuda.h").read_text():
        pytest.skip("the installed headers have another version")
    headers = "".join(f"#include <{h}>\n" for h in library.headers)
    body = "\n".join(assertions(module)).replace("'", '"')
    source = f"#include <stddef.h>\n{headers}{body}\n"
    done = compile_only(source, tmp_path, folder, OURS)
    assert done.returncode == 0, done.stderr[:2000]


@needs_gcc
def test_headers_serve_c_and_cpp(tmp_path):
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        pytest.skip("needs Python's headers")
    source = "#include <Python.h>\n" + "".join(f'#include "cupola/{name}.h"\n' for name in LIBRARIES)
    source += "".join(f"const cupola_{n}_table *f{n}(void) {{ return cupola_import_{n}(); }}\n" for n in LIBRARIES)
    assert compile_only(source, tmp_path, BINDINGS / "include", include).stderr == ""
    command = [
        "gcc",
        "-x",
        "c++",
        "-fsyntax-only",
        f"-I{include}",
        f"-I{BINDINGS / 'include'}",
        str(tmp_path / "probe.c"),
    ]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


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
