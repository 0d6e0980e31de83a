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

ROOT = Path(cupola.__file__).parent

# From the bottom to the top; a room imports from those before it. What is below a room is of that room, too.
ROOMS = (
    "_above", "_completion", "_private_folder", "typing", "pathfinder", "cpu", "bindings",
    "core.base", "core.device", "core.memory", "core.exchange", "core.program", "core.launch", "core",
    "graph", "utils", "", "system", "_aliases", "_alias_packages", "cli", "testing", "__main__",
)  # fmt: skip
# Rooms that may know that there is a CPU device: to all others it is a driver behind the table of bindings.
MAY_NAME_THE_CPU_DEVICE = {"cpu", "bindings", "", "cli"}

# Where imports in functions are looked at.
LAZY = {"core", "graph", "utils", "typing.py"}
# Rooms that are imported where they are used: behind them is a library, or a class that is made when it is first named;
# cupola.typing needs enum, which is slow to import.
LIBRARIES = {"bindings", "pathfinder", "typing"}

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
    return (path for path in sorted(root.rglob("*")) if path.suffix in {".py", ".pyx", ".pxd"})


def module_of(path: Path, root: Path) -> str:
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


def test_imports_go_in_no_circle():
    assert not circles()


@pytest.mark.parametrize("path", [path for path in sources(ROOT) if path.relative_to(ROOT).parts[0] in LAZY], ids=str)
def test_what_is_imported_late_says_when(path):
    """An import inside a function has a reason: its target costs something and is seldom needed, and says so."""
    late = {module for module, _, inside in imports(path) if inside and module != module_of(path, ROOT)}
    assert not {module for module in late if not says_when(module)}


def says_when(module: str) -> bool:
    if room_of(module) in LIBRARIES:
        return True
    files = [*ROOT.glob(module.replace(".", "/") + ".py*"), *ROOT.glob(module.replace(".", "/") + "/__init__.py")]
    return any("Imported when" in path.read_text() for path in files)


def test_what_is_asked_for_is_above():
    """Each name that a room asks `_above` for is in the table of the top, and really above the asker."""
    asked = set()
    for path in sources(ROOT):
        for name in re.findall(r'\babove\("(\w+)"\)', path.read_text()):
            if module_of(path, ROOT) == "_above":
                continue
            asked.add(name)
            home = cupola._HOMES.get(name) or cupola._ABOVE[name]
            assert reaches(home, module_of(path, ROOT)), f"{path} can import {name} from {home}: it is not above"
    assert set(cupola._ABOVE) <= asked, "nobody asks for these any more"


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


@pytest.mark.parametrize(
    "folder",
    [ROOT, *(path for path in sorted(ROOT.rglob("*")) if path.is_dir() and path.name != "__pycache__")],
    ids=str,
)
def test_no_folder_is_too_large(folder):
    assert len(modules(folder)) <= LIMIT


def modules(folder: Path) -> set[str]:
    """The modules of a folder that are written by hand: a .pyx with its .pxd and .pyi, or a .c with its .h, is one."""
    files = [path for path in folder.iterdir() if path.suffix in {".py", ".pyx", ".pxd", ".pyi", ".c", ".h"}]
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
