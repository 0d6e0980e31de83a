#!/usr/bin/env python
"""Check what a source distribution and a wheel of it contain: tools/wheel_contents.py SDIST WHEEL.

The source distribution has every file of the repository. The wheel has every Python file, stub, public header and data
file of src/cupola, every compiled module that has a stub or a .pyx file, and no source of one.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = {".bin", ".cu", ".py", ".pyi", ".pxd", ".ptx", ".typed"}


def problems(sdist: Path, wheel: Path) -> list[str]:
    """What is missing or too much, a line each."""
    committed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    found = [f"{sdist.name} lacks {name}" for name in committed if name not in in_sdist]

    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if name.startswith("cupola/")}
    compiled = {name.partition(".")[0] for name in in_wheel if name.endswith(".so")}
    for name in committed:
        path = Path(name)
        if not name.startswith("src/cupola/"):
            continue
        inside = path.relative_to("src").as_posix()
        if path.suffix in SHIPPED or (path.suffix == ".h" and "include" in path.parts):
            if inside not in in_wheel:
                found.append(f"{wheel.name} lacks {inside}")
        elif path.suffix in {".c", ".h", ".pyx", ".pxi", ".build"} and inside in in_wheel:
            found.append(f"{wheel.name} has the source {inside}")
        if path.suffix == ".pyx" and inside.removesuffix(".pyx") not in compiled:
            found.append(f"{wheel.name} lacks the module compiled from {inside}")
    return found


def main() -> int:
    found = problems(Path(sys.argv[1]), Path(sys.argv[2]))
    print(*found or ["the source distribution and the wheel are complete"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
