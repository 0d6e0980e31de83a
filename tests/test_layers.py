"""The rooms of the package: imports go downward only, go round in no circle, and no room is too large.

What only type checkers read (stubs, ``if TYPE_CHECKING``) may name any room: nothing is imported for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import cupola

ROOT = Path(__file__).resolve().parents[1] / "src" / "cupola"  # sources of compiled modules are not installed

# From the bottom to the top; a room imports from those before it. What is below a room is of that room, too.
ROOMS = (
    "_above", "_signposts", "_completion", "_counted", "_device_options", "_notebook", "_private_folder", "_soon",
    "_packed", "typing",
    "pathfinder",
    "cpu", "bindings",
    "core.base", "core.device", "core.memory", "core.exchange", "core.array", "core.program", "core.launch",
    "core.texture", "core.graphics", "core", "graph",
    "checkpoint", "utils", "texture", "", "system", "numpy", "mpi", "profile",
    "_after_import", "_same_host", "dask", "ray", "_triton", "_cutile", "_jax", "_numba", "_tried", "standins",
    "_aliases", "_spawned", "_alias_packages", "cli", "testing", "__main__",
)  # fmt: skip
# Rooms that may know that there is a CPU device: to all others it is a driver behind the table of bindings.
MAY_NAME_THE_CPU_DEVICE = {"cpu", "bindings", "", "_triton", "cli", "profile"}

# Where imports in functions are looked at.
LAZY = {"core", "graph", "utils", "typing.py"}
# Rooms that are imported where they are used: behind them is a library, or a class that is made when it is first named;
# cupola.typing needs enum, which is slow to import.
LIBRARIES = {"bindings", "pathfinder", "typing"}

# The modules of bindgen, from the bottom to the top. It makes files of cupola, and imports nothing of it.
BINDGEN = Path(__file__).resolve().parents[1] / "bindgen"
BINDGEN_MODULES = (
    "__init__", "doc", "ir", "libraries", "history", "names", "merge", "parse", "typesystem", "plan", "descriptions",
    "emit_call", "emit_raising", "emit_module", "emit_header", "emit_pxd", "emit_sample", "emit_stub", "emit",
    "__main__",
)  # fmt: skip

LIMIT = 25  # modules of a folder

IMPORT = re.compile(
    r"^(?P<indent>[ \t]*)(?:from\s+(?P<base>\.*[\w.]*)\s+c?import\s+(?P<names>\([^)]*\)|[^#\n]+)"
    r"|c?import\s+(?P<modules>[\w., ]+))",
    re.MULTILINE,
)


# A name in a text is an import as well.
BY_NAME = re.compile(r"""(?:import_module|__import__|modules\.get|modules\[|find_spec)\(?f?["']cupola\.([\w.]+)""")


class Import(NamedTuple):
    module: str  # without "cupola.", "" for the package itself
    name: str  # "" for the module
    inside: bool  # a function


def sources(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.suffix in {".py", ".pyx", ".pxi", ".pxd"})


def module_of(path: Path, root: Path) -> str:
    if path.suffix == ".pxi":  # lazy/nodes.pxi is a part of _lazy.pyx
        path = path.parent.with_name(f"_{path.parent.name}.pyx")
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


def room_of(module: str) -> str:
    """The room that a module, or a name in it, belongs to."""
    parts = module.split(".")
    for length in (2, 1):
        if (room := ".".join(parts[:length])) in ROOMS:
            return room
    raise AssertionError(f"{module} belongs to no room")


def _python_imports(text: str, package: list[str]) -> Iterator[Import]:
    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", inside)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            for alias in node.names:
                yield Import(".".join([*base, *([node.module] if node.module else [])]), alias.name, inside)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))

    return visit(ast.parse(text), False)


def _cython_imports(text: str, package: list[str]) -> Iterator[Import]:
    text = re.sub(r'("""|\'\'\').*?\1', "", text, flags=re.DOTALL)
    for match in IMPORT.finditer(text):
        inside = bool(match["indent"])
        if match["modules"]:
            for name in match["modules"].split(","):
                yield Import(name.split()[0], "", inside)
        else:
            dots = len(match["base"]) - len(match["base"].lstrip("."))
            base = [*(package[: len(package) - dots + 1] if dots else []), match["base"].lstrip(".")]
            for name in match["names"].strip("()\n ").split(","):
                if name.strip():
                    yield Import(".".join(filter(None, base)), name.split()[0], inside)


def imports(path: Path, root: Path = ROOT) -> Iterator[Import]:
    """What a file imports of cupola at run time, inside of functions too."""
    package = ["cupola", *path.relative_to(root).parts[:-1]]
    text = path.read_text()
    found = (_python_imports if path.suffix == ".py" else _cython_imports)(text, package)
    by_name = (Import(f"cupola.{name.strip('.')}", "", True) for name in BY_NAME.findall(text))
    for module, name, inside in [*found, *by_name]:
        if module.split(".")[0] != "cupola":
            continue
        module = module.removeprefix("cupola").removeprefix(".")
        inner = root / Path(*module.split("."), name) if name else None
        if inner is not None and (inner.is_dir() or list(inner.parent.glob(f"{name}.py*"))):
            module, name = f"{module}.{name}".removeprefix("."), ""
        yield Import(module, name, inside)


def upward(path: Path, root: Path = ROOT) -> list[str]:
    """What a file imports from above its room."""
    room = room_of(module_of(path, root))
    found = []
    for module, name, _ in imports(path, root):
        other = room_of(module)
        if other == "cpu" and room not in MAY_NAME_THE_CPU_DEVICE:
            found.append("cpu")
        elif ROOMS.index(other) > ROOMS.index(room):
            found.append(f"{module}.{name}" if name else module)
    return found


def upward_in_bindgen(path: Path) -> list[str]:
    """What a module of bindgen imports from above itself, or of cupola."""
    text = path.read_text()
    below = BINDGEN_MODULES[: BINDGEN_MODULES.index(path.stem)]
    names = [f"{module}.{name}" if name else module for module, name, _ in _python_imports(text, ["bindgen"])]
    names += [f"cupola.{name}" for name in BY_NAME.findall(text)]
    ours = [name for name in names if name.split(".")[0] in {"bindgen", "cupola"}]
    return [name for name in ours if name.removeprefix("bindgen.").split(".")[0] not in below]


def circles(root: Path = ROOT) -> list[str]:
    """The modules of a circle of imports, if there is one."""
    edges: dict[str, set[str]] = {}
    for path in sources(root):
        module = module_of(path, root)
        edges.setdefault(module, set()).update(other for other, _, _ in imports(path, root) if other != module)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("path", list(sources(ROOT)), ids=lambda path: module_of(path, ROOT) + path.suffix)
def test_imports_go_downward(path):
    assert not upward(path)


@pytest.mark.parametrize("path", list(sources(BINDGEN)), ids=lambda path: path.stem)
def test_imports_in_bindgen_go_downward(path):
    assert not upward_in_bindgen(path)


def test_imports_go_in_no_circle():
    assert not circles()


@pytest.mark.parametrize("path", [path for path in sources(ROOT) if path.relative_to(ROOT).parts[0] in LAZY], ids=str)
def test_what_is_imported_late_says_when(path):
    """An import inside a function has a reason: its target costs something and is seldom needed, and says so."""
    assert not late_and_silent(path)


def late_and_silent(path: Path, root: Path = ROOT) -> set[str]:
    """What a file imports inside functions of modules that do not say when they are imported."""
    late = {module for module, _, inside in imports(path, root) if inside and module != module_of(path, root)}
    return {module for module in late if not says_when(module, root)}


def says_when(module: str, root: Path) -> bool:
    if room_of(module) in LIBRARIES:
        return True
    files = [*root.glob(module.replace(".", "/") + ".py*"), *root.glob(module.replace(".", "/") + "/__init__.py")]
    return any("Imported when" in path.read_text() for path in files)


def asked_for(path: Path) -> set[str]:
    """The names that a file asks `_above` for."""
    return set(re.findall(r'\babove\("(\w+)"\)', path.read_text()))


def not_above(path: Path, root: Path = ROOT) -> dict[str, str]:
    """Of what a file asks `_above` for, what it could import, and from where."""
    homes = {name: cupola._HOMES.get(name) or cupola._ABOVE[name] for name in asked_for(path)}
    return {name: home for name, home in homes.items() if not reaches(home, module_of(path, root))}


ASKERS = [path for path in sources(ROOT) if module_of(path, ROOT) != "_above" and asked_for(path)]


@pytest.mark.parametrize("path", ASKERS, ids=lambda path: module_of(path, ROOT))
def test_what_is_asked_for_is_above(path):
    """Each name that a module asks `_above` for is in the table of the top, and really above the asker."""
    assert not not_above(path)


def test_all_that_is_above_is_asked_for():
    assert set(cupola._ABOVE) <= {name for path in ASKERS for name in asked_for(path)}


def reaches(module: str, other: str) -> bool:
    """Whether a module is in a room above another one, or imports it, through others too."""
    if ROOMS.index(room_of(module)) > ROOMS.index(room_of(other)):
        return True
    seen, todo = set(), [module]
    while todo:
        at = todo.pop()
        if at == other:
            return True
        if at not in seen:
            seen.add(at)
            for path in ROOT.glob(at.replace(".", "/") + ".p*"):
                if path.suffix in {".py", ".pyx", ".pxd"}:
                    todo += [found for found, _, _ in imports(path)]
    return False


PYTHON_WITH = re.compile(r" *(?:async )?with (?!nogil\b|gil\b|cython\.critical_section\().+:(?: *#.*)?")


def needs_a_traceback(text: str) -> list[str]:
    """The lines of a compiled module for which Cython makes code that fails if an error has no traceback yet."""
    found, handlers = [], []
    for line in re.sub(r'("""|\'\'\').*?\1', "", text, flags=re.DOTALL).splitlines():
        code = line.strip()
        if not code or code.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        handlers = [handler for handler in handlers if handler < indent]
        if PYTHON_WITH.fullmatch(line) or (handlers and re.match(r"return\b", code)):
            found.append(code)
        if re.match(r"except\b", code):
            handlers.append(indent)
    return found


@pytest.mark.parametrize("path", [path for path in sources(ROOT) if path.suffix != ".py"], ids=lambda path: path.name)
def test_no_compiled_module_needs_a_traceback(path):
    # Their errors have none before they reach Python (core/base/frames.h).
    advice = "write lock.acquire(), try: ..., finally: lock.release() for `with`, and `return` behind `except`"
    assert not needs_a_traceback(path.read_text()), advice


def test_a_line_that_needs_a_traceback_is_noticed():
    text = """
def f():
    with nogil:
        with gil:
            g()
    with cython.critical_section(self):
        g()
    try:
        g()
    except ValueError as error:
        raise
    finally:
        h()
    return 1
"""
    assert needs_a_traceback(text) == []
    assert needs_a_traceback(text + "    with self.lock:  # mine\n        g()\n") == ["with self.lock:  # mine"]
    assert needs_a_traceback(text.replace("raise", "if g():\n            return 2")) == ["return 2"]


@pytest.mark.parametrize(
    "folder",
    [BINDGEN, ROOT, *(path for path in sorted(ROOT.rglob("*")) if path.is_dir() and path.name != "__pycache__")],
    ids=str,
)
def test_no_folder_is_too_large(folder):
    assert len(modules(folder)) <= LIMIT


def modules(folder: Path) -> set[str]:
    """The modules of a folder that are written by hand: a .pyx with its .pxd and .pyi, or a .c with its .h, is one."""
    files = [path for path in folder.iterdir() if path.suffix in {".py", ".pyx", ".pxi", ".pxd", ".pyi", ".c", ".h"}]
    return {path.stem for path in files if "Generated by" not in path.read_text()[:200]}


BAD = {
    "pathfinder/bad.py": ("from ..core.device import _device\nimport cupola.bindings\n", ["core.device", "bindings"]),
    "core/device/bad.py": ("def f():\n    from cupola.graph import Graph\n", ["graph.Graph"]),
    "core/base/bad.pyx": (
        "from cupola.core.device._stream cimport (\n    Stream,\n    new_stream,\n)\n",
        ["core.device._stream.Stream", "core.device._stream.new_stream"],
    ),
    "core/memory/bad.pyx": ("cdef f():\n    from cupola import Program\n", [".Program"]),
    "core/launch/bad.py": ("from cupola import cpu\n", ["cpu"]),
    "core/launch/worse.pyx": ('graph = sys.modules.get("cupola.graph")\n', ["graph"]),
    "graph/good.py": (
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from cupola import Graph\nimport cupola.core\n",
        [],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_direction_is_noticed(tmp_path, name):
    text, expected = BAD[name]
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    (tmp_path / "cpu").mkdir()
    path.write_text(text)
    assert [found.removesuffix("._device") for found in upward(path, tmp_path)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from .emit import emit\n", ["bindgen.emit.emit"]),
        ("def f():\n    from . import descriptions, ir\n", ["bindgen.descriptions"]),
        ("import cupola.bindings\n", ["cupola.bindings"]),
        ("from cupola import Device\n", ["cupola.Device"]),
        ("from .typesystem import Types\nif TYPE_CHECKING:\n    from .emit import emit\n", []),
    ],
)
def test_the_direction_in_bindgen_is_noticed(tmp_path, text, expected):
    (tmp_path / "plan.py").write_text(text)
    assert upward_in_bindgen(tmp_path / "plan.py") == expected


def test_a_late_import_without_a_reason_is_noticed(tmp_path):
    room = tmp_path / "core" / "memory"
    room.mkdir(parents=True)
    (room / "quiet.py").write_text('"""Something."""\n')
    (room / "told.py").write_text('"""Something. Imported when it is first needed."""\n')
    (room / "early.py").write_text("from . import quiet\n")
    (room / "late.py").write_text("def f():\n    from . import told\n    from .quiet import g\n")
    assert late_and_silent(room / "early.py", tmp_path) == set()
    assert late_and_silent(room / "late.py", tmp_path) == {"core.memory.quiet"}


# Buffer is of core.memory, GraphBuilder of graph.
@pytest.mark.parametrize(
    ("room", "expected"),
    [("core/base", set()), ("core/memory", {"Buffer"}), ("graph", {"Buffer", "GraphBuilder"})],
)
def test_a_name_that_is_not_above_is_noticed(tmp_path, room, expected):
    path = tmp_path / room / "asker.pyx"
    path.parent.mkdir(parents=True)
    path.write_text('def f():\n    return above("Buffer"), above("GraphBuilder")\n')
    assert set(not_above(path, tmp_path)) == expected


def test_a_circle_is_noticed(tmp_path):
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "one.py").write_text("from cupola.graph import two\n")
    (tmp_path / "graph" / "two.pyx").write_text("def f():\n    from .one import g\n")
    assert set(circles(tmp_path)) == {"graph.one", "graph.two"}


def test_a_large_folder_is_noticed(tmp_path):
    for number in range(LIMIT + 1):
        (tmp_path / f"m{number}.pyx").write_text("")
        (tmp_path / f"m{number}.pxd").write_text("")
        (tmp_path / f"g{number}.c").write_text("/* Generated by hand. */")
    assert len(modules(tmp_path)) == LIMIT + 1
