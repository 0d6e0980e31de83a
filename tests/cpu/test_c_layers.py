"""The rooms of the CPU device's C: what they include lies in rooms below, and what they declare they define."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CPU = Path(__file__).resolve().parents[2] / "src" / "cupola" / "cpu"

UPWARD = [
    "common",
    "engine",
    "engine/memory",
    "engine/checks",
    "engine/fault",
    "engine/schedule",
    "engine/instructions",
    "engine/instruments",
    "engine/texture",
    "engine/tensor",
    "driver/base",
    "driver/trace",
    "driver/inject",
    "driver/stream",
    "driver/memory",
    "driver/module",
    "driver/texture",
    "driver/graphics",
    "driver/tensor",
    "driver/graph",
    "driver/device_side",
    "driver/ipc",
    "driver/checkpoint",
    "driver",
    "cudart",
    "nvml",
    "math/base",
    "math/blas",
    "math/lt",
    "math/fft",
    "math/rand",
    "math/solver",
    "math/sparse",
    "math/direct",
    "math/nccl",
    "math",
    "provider",
    "provider/compilers",
]
"""Each room may include from those before it. In `engine` itself is what all its rooms share and what the driver sees,
in `driver` itself what it gives to those above it."""

ABOVE = "above.h"
"""The header of a room that declares what the rooms above provide to it. The others declare what is the room's own."""

MOST_MODULES = 25

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)
# What begins a line, up to the list of parameters; names in parentheses are protected from macros of the same name.
HEAD = r"^(?!static\b|typedef\b|return\b|else\b)[A-Za-z_][\w \t*]*[ \t*]\(?\b(\w+)\)?\((?:[^;{}()]|\([^;{}]*\))*\)\s*"
DECLARED = re.compile(HEAD + r"(?:__attribute__\(\(.*?\)\)\s*)?;", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(HEAD.replace(r"[ \t*]\(?", r"[ \t*]?\(?") + r"\{", re.MULTILINE)


def code(path: Path) -> str:
    """The text of a file without comments and directives."""
    return DIRECTIVE.sub("", COMMENT.sub("", path.read_text()))


def sources(root: Path) -> list[Path]:
    others = ("compiler", "pocketfft")  # no C, and another project's
    return sorted(path for path in root.rglob("*.[ch]") if not set(others) & set(path.relative_to(root).parts))


def room_of(root: Path, path: Path) -> str:
    return path.parent.relative_to(root).as_posix()


def wrong_includes(root: Path, path: Path) -> list[str]:
    """The includes of a file that lead upward, or to no file."""
    room = UPWARD.index(room_of(root, path))
    wrong = []
    for name in INCLUDE.findall(path.read_text()):
        if name.startswith("cupola/"):
            continue  # public headers, which know nothing of these rooms
        target = path.parent / name if (path.parent / name).exists() else root / name
        if not target.exists() or UPWARD.index(room_of(root, target)) > room:
            wrong.append(name)
    return wrong


def wrong_declarations(root: Path) -> list[str]:
    """What headers declare that another room defines, but for those that say so by their name."""
    defined: dict[str, str] = {}
    for path in sources(root):
        if path.suffix == ".c":
            defined |= dict.fromkeys(DEFINED.findall(code(path)), room_of(root, path))
    wrong = []
    for path in sources(root):
        room = room_of(root, path)
        if path.suffix == ".c" or room.startswith("provider"):
            continue
        for name in DECLARED.findall(code(path)):
            at = defined.get(name)
            own = at is not None and (at == room or (room == "engine" and at.startswith("engine/")))
            if at is None or own == (path.name == ABOVE):
                wrong.append(f"{path.relative_to(root)}: {name}, of {at}")
    return wrong


def modules(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir() if path.suffix in (".c", ".h")}


@pytest.mark.parametrize("path", sources(CPU), ids=lambda path: str(path.relative_to(CPU)))
def test_includes_lead_downward(path: Path) -> None:
    assert wrong_includes(CPU, path) == []


def test_headers_declare_what_is_their_rooms() -> None:
    assert wrong_declarations(CPU) == []


@pytest.mark.parametrize("room", UPWARD)
def test_rooms_are_small(room: str) -> None:
    assert 0 < len(modules(CPU / room)) <= MOST_MODULES


def test_every_file_is_built() -> None:
    text = (CPU / "meson.build").read_text()
    assert [
        str(path) for path in sources(CPU) if path.suffix == ".c" and f"'{path.relative_to(CPU)}'" not in text
    ] == []


def test_the_rules_can_fail(tmp_path: Path) -> None:
    for room in UPWARD:
        (tmp_path / room).mkdir(parents=True, exist_ok=True)
    stream, memory = tmp_path / "driver/stream/stream.h", tmp_path / "driver/memory/memory.h"
    memory.write_text(
        '#include "driver/stream/stream.h"\nint memory_free(int);\nCUresult memory_new(\n    int size);\n'
    )
    stream.write_text('#include "driver/memory/memory.h"\n#include "gone.h"\n#include "engine/engine.h"\n')
    (tmp_path / "engine/engine.h").write_text("int run(void);\n/* int comment(void); */\n")
    (tmp_path / "engine/memory/run.c").write_text("int run(void) { return 1; }\n")
    (tmp_path / "driver/graph/graph.c").write_text("static int x;\nint memory_free(int i) {\n    return i;\n}\n")
    assert wrong_includes(tmp_path, memory) == []
    assert wrong_includes(tmp_path, stream) == ["driver/memory/memory.h", "gone.h"]
    assert wrong_declarations(tmp_path) == [
        "driver/memory/memory.h: memory_free, of driver/graph",
        "driver/memory/memory.h: memory_new, of None",
    ]
    above = memory.with_name(ABOVE)
    memory.rename(above)
    (tmp_path / "driver/memory/new.c").write_text("CUresult(memory_new)(int size) { return size; }\n")
    assert wrong_declarations(tmp_path) == ["driver/memory/above.h: memory_new, of driver/memory"]
