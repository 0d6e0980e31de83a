"""The form of installation that pages and the template of `cupola new` show: one line, REQUIREMENT, kept here.

In a fresh environment cupola comes from there. Where it is installed already, ``pip install "cupola[dask]"`` adds the
packages of an extra, so such lines need no place to come from.

usage: python tools/installation.py         write it wherever it is shown
       python tools/installation.py --check  say where something else is shown, and fail
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

REQUIREMENT = "cupola[all] @ git+https://github.com/cupola-project/cupola"
"""Once wheels are on an index: ``cupola[all]``."""

PLACES = [
    "README.md",
    "docs/index.md",
    "docs/start.md",
    "docs/testing-kernels.md",
    "docs/guides/*.md",
    "examples/project/requirements.txt",
]
"""Where readers begin with an empty environment."""

SHOWN = re.compile(r'(?P<before>pip install "|^)cupola\[all\](?P<source> @ [^"\n]*)?(?P<after>"|$)', re.M)


def written(text: str) -> str:
    """A page with the requirement wherever it installs cupola."""
    return SHOWN.sub(lambda match: match["before"] + REQUIREMENT + match["after"], text)


def pages() -> list[Path]:
    return sorted(path for place in PLACES for path in ROOT.glob(place))


def main() -> int:
    others = [path for path in pages() if written(path.read_text()) != path.read_text()]
    if "--check" in sys.argv[1:]:
        for path in others:
            print(f"{path.relative_to(ROOT)} installs cupola from elsewhere: python tools/installation.py")
        return 1 if others else 0
    for path in others:
        path.write_text(written(path.read_text()))
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
