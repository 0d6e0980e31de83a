"""List the files under src/cupola that are built from but not shipped, one path a line, for meson."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "cupola"
PRIVATE = {".c", ".map", ".pyx", ".pxi", ".build"}

for path in sorted(ROOT.rglob("*")):
    if path.suffix in PRIVATE or (path.suffix == ".h" and "include" not in path.parts):
        print(path.relative_to(ROOT).as_posix())
