"""IR -> the committed files under ``src/cupola/bindings``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from .emit_header import header
from .emit_module import module
from .emit_pxd import pxd
from .emit_stub import stub
from .ir import Module
from .libraries import BINDINGS, LIBRARIES
from .typesystem import Types


def outputs() -> Iterator[tuple[Path, str]]:
    """Every generated file with its text."""
    for library in LIBRARIES.values():
        types = Types(Module.load(library.ir_path))
        yield BINDINGS / "include" / "cupola" / f"{library.name}.h", header(library, types)
        yield BINDINGS / f"c{library.name}.pxd", pxd(library, types)
        yield BINDINGS / f"{library.name}.c", module(library, types)
        yield BINDINGS / f"{library.name}.pyi", stub(library, types)


def emit(check: bool = False) -> int:
    """Write the generated files, or with `check` only say which differ; returns the exit status."""
    stale = [path for path, text in outputs() if not path.exists() or path.read_text() != text]
    if check:
        for path in stale:
            print(f"{path.name} is not what codegen makes of the IR: run `python -m codegen emit`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in outputs():
        if path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.name}")
    return 0
