"""The rooms of the CPU device's compiler: imports go downward only, inside of functions too, as in the whole package.

What only type checkers read may name any room. `tests.test_layers` has the rooms of the package.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_layers import LIMIT, ROOT, imports, module_of, sources

COMPILER = ROOT / "cpu" / "compiler"
# From the bottom to the top; a room imports from those before it.
ROOMS = (
    "records", "collector", "errors", "facts", "numerics", "ptx.grammar", "ptx", "passes", "objects", "images",
    "emit.values", "emit.instructions", "emit.threads", "emit.control", "emit.memory", "emit.instruments", "emit",
    "frontend", "modules", "worker",
)  # fmt: skip
PREFIX = "cpu.compiler."
BELOW = {"objects": {"_packed", "_private_folder", "_soon", "cpu._driver"}}
"""What rooms take from outside of the compiler: the C of the engine, whose functions machine code calls, and whether
the folder of the cache is the user's own."""


def room_of(module: str) -> str | None:
    """The room of a module by its name in the package; None for the compiler as a whole, which is only a docstring."""
    parts = module.removeprefix(PREFIX).split(".") if module.startswith(PREFIX) else []
    return next((room for length in (2, 1) if (room := ".".join(parts[:length])) in ROOMS), None)


def upward(path: Path, root: Path = ROOT) -> list[str]:
    """What a module of the compiler imports from above its room, or from outside."""
    room = room_of(module_of(path, root))
    found = []
    for module, _, _ in imports(path, root):
        other = room_of(module)
        if other is None:
            found += [module] if module not in {PREFIX[:-1], *BELOW.get(room or "", ())} else []
        elif room is None or ROOMS.index(other) > ROOMS.index(room):
            found.append(module)
    return found


@pytest.mark.parametrize("path", list(sources(COMPILER)), ids=lambda path: module_of(path, COMPILER))
def test_imports_go_downward(path: Path) -> None:
    assert not upward(path)


@pytest.mark.parametrize("folder", sorted({path.parent for path in sources(COMPILER)}), ids=lambda path: path.name)
def test_rooms_are_small(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= LIMIT


def test_every_module_is_in_a_room() -> None:
    outside = {module_of(path, ROOT) for path in sources(COMPILER) if room_of(module_of(path, ROOT)) is None}
    assert outside == {PREFIX[:-1]}


def test_the_rule_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "cpu" / "compiler" / "passes" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text(
        "from cupola.cpu.compiler.ptx import ast\n"
        "from cupola.cpu import reports\n"
        "if TYPE_CHECKING:\n    from cupola.cpu.compiler.emit.control.body import Body\n"
        "def f():\n    from cupola.cpu.compiler.emit import bodies\n    from ..objects.machine import compile_ir\n"
    )
    assert upward(bad, tmp_path) == ["cpu", "cpu.compiler.emit", "cpu.compiler.objects.machine"]
