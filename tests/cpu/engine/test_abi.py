"""What Python and C both say in numbers: the code generator, the engine and the descriptions of faults agree."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cupola.cpu.compiler.emit.memory import addresses, spans, textures
from cupola.cpu.compiler.objects import abi
from cupola.cpu.reports import faults
from tests import processes

CPU = Path(__file__).parents[3] / "src" / "cupola" / "cpu"
Fact = tuple[str, int]

COMPARED_APART = {"CONTEXT", "WARP", "SPACES", "WARP_BYTES", "SITE_CACHE_BYTES", "SIGNATURE"}
"""Of the constants of `abi`, those that are no number or have another name in C."""


def c_name(field: str) -> str:
    """``tid.y`` of the tables is ``tid[1]`` in C."""
    name, _, component = field.partition(".")
    return f"{name}[{'xyz'.index(component)}]" if component else name


def constants() -> Iterator[Fact]:
    """The constants of `abi` with their names in C: all of them, so that a new one needs a counterpart."""
    for name, value in vars(abi).items():
        if name.isupper() and not name.startswith("_") and name not in COMPARED_APART:
            is_state = name in (
                "DONE",
                "BARRIER",
                "YIELD",
                "INDEPENDENT",
                "WAITING",
                "FAULT",
                "SYNC",
                "CLUSTER",
                "WARPGROUP",
            )
            yield f"CPU_STATE_{name}" if is_state else f"CPU_{name}", value


def numbered(prefix: str, names: tuple[str, ...]) -> list[Fact]:
    return [(f"{prefix}_{name.upper()}", number) for number, name in enumerate(names)]


SPACES = {name: number for name, number in abi.SPACES.items() if name not in ("generic", "cluster")}

FACTS: dict[str, list[Fact]] = {
    "engine/running.h": [
        *((f"offsetof(cpu_context, {c_name(field)})", offset) for field, offset in abi.CONTEXT.items()),
        *((f"offsetof(cpu_warp, {c_name(field)})", offset) for field, offset in abi.WARP.items()),
        ("sizeof(cpu_site_cache)", abi.SITE_CACHE_BYTES),
        ("sizeof(cpu_warp)", abi.WARP_BYTES),
        *constants(),
        *((f"CPU_SPACE_{name.upper()}", number) for name, number in SPACES.items()),
        ("CPU_SITE_GENERIC", abi.SPACES["generic"]),
        ("CPU_SITE_GENERIC", abi.SPACES["cluster"]),
        ("CPU_STATE(CPU_STATE_YIELD, 7)", abi.state(abi.YIELD, 7)),
        *((f"CPU_FAULT_{kind.name}", kind.value) for kind in faults.Kind),
        *numbered("CPU_SPACE", addresses._SPACES),
    ],
    "engine/schedule/scheduler.c": [("ROW_BYTES", spans._ROOM)],
    "engine/texture/texture.c": [
        *numbered("GEOMETRY", textures._GEOMETRIES),
        ("LEVEL_BASE", textures._LEVEL_MODES.index("base")),
        ("LEVEL_GIVEN", textures._LEVEL_MODES.index("level")),
        ("LEVEL_GRADIENT", textures._LEVEL_MODES.index("grad")),
        *((f"LOOKUP_{name}", getattr(textures, f"_{name}")) for name in ("FLOAT", "OFFSET", "COMPARE", "HALF")),
        *(
            (f"ROW_{name}", getattr(textures, f"_ROW_{name}"))
            for name in ("LAYER", "AT", "LEVEL", "DX", "DY", "OFFSET", "COMPARE")
        ),
        ("ROWS", textures._ROWS),
        *(
            (f"QUERY_{name.upper()}", number)
            for name, number in textures._QUERIES.items()
            if not name.startswith("addr_mode")
        ),
        *((f"QUERY_ADDR_MODE + {i}", textures._QUERIES[f"addr_mode_{i}"]) for i in range(3)),
    ],
    "engine/texture/surface.c": [
        *numbered("GEOMETRY", textures._GEOMETRIES),
        *numbered("BOUNDS", textures._BOUNDS),
        ("ROW_LAYER", textures._ROW_LAYER),
        ("ROW_AT", textures._ROW_AT),
    ],
}
"""File that knows the names: what they must be."""

ENUMS = {
    ("engine/engine.h", "cpu_fault_kind"): {f"CPU_FAULT_{kind.name}" for kind in faults.Kind},
    ("engine/engine.h", "cpu_space"): {f"CPU_SPACE_{name.upper()}" for name in SPACES},
    ("engine/abi.h", "cpu_state"): {name for name, _ in constants() if name.startswith("CPU_STATE_")},
    ("engine/running.h", "cpu_result"): {name for name, _ in constants() if name.startswith("CPU_RESULT_")},
    ("engine/texture/sampling.h", "geometry"): {f"GEOMETRY_{name.upper()}" for name in textures._GEOMETRIES},
    ("engine/texture/texture.c", "query"): {
        "QUERY_" + re.sub("(addr_mode)_[0-9]", r"\1", name).upper() for name in textures._QUERIES
    },
    ("engine/texture/surface.c", "bounds"): {f"BOUNDS_{name.upper()}" for name in textures._BOUNDS},
}
"""Enumerations of C, whose enumerators Python all has."""


def complaints(tmp_path: Path, file: str, facts: list[Fact]) -> str:
    """What a C compiler has to say of the facts."""
    lines = [f'_Static_assert({what} == {value}, "{what} is not {value}");' for what, value in facts]
    source = tmp_path / "facts.c"
    source.write_text("\n".join([f'#include "{file}"', *lines, ""]))
    folders = [f"-I{CPU}", f"-I{CPU.parent / 'bindings' / 'include'}"]
    command = ["cc", "-std=gnu11", "-fsyntax-only", "-w", *folders, str(source)]
    return processes.run(command).stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("file", FACTS)
def test_numbers_are_the_same(tmp_path: Path, file: str) -> None:
    assert complaints(tmp_path, file, FACTS[file]) == ""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_comparison_can_fail(tmp_path: Path) -> None:
    said = complaints(tmp_path, "engine/running.h", [("CPU_STATE_FAULT", 6), ("CPU_STATE_SYNC", 6)])
    assert "CPU_STATE_FAULT is not 6" in said
    assert "CPU_STATE_SYNC" not in said


@pytest.mark.parametrize(("file", "name"), ENUMS)
def test_enumerations_have_the_same_members(file: str, name: str) -> None:
    text = re.sub(r"/\*.*?\*/", "", (CPU / file).read_text(), flags=re.DOTALL)
    body = re.search(rf"\benum {name} \{{(.*?)\}}", text, re.DOTALL)
    assert body is not None
    assert set(re.findall(r"(?:^|,)\s*(\w+)", body[1])) == ENUMS[file, name]


def test_spaces_are_told_in_the_order_of_their_numbers() -> None:
    words = {"const": "constant", "param": "parameter"}
    assert tuple(words.get(name, name) for name in SPACES) == faults._SPACES


def test_every_helper_that_is_called_exists() -> None:
    defined = set()
    for path in (CPU / "engine").rglob("*.c"):
        text = path.read_text()
        defined |= set(re.findall(r"^CPU_HELPER [\w *]+?\*?(cupola_\w+)\(", text, re.MULTILINE))
    called = set()
    for path in (CPU / "compiler").rglob("*.py"):
        called |= set(re.findall(r"@(cupola_\w+)\(", path.read_text()))
    assert len(called) > 20
    assert called - defined == set()
