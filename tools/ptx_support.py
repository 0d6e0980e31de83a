#!/usr/bin/env python
"""Write docs/ptx-support.md, the page that lists what the CPU device has of the PTX ISA.

    tools/ptx_support.py write
    tools/ptx_support.py check

It comes from tests/ptx/isa.toml (the instructions of the ISA, and what is missing) and from the recorded forms in
tests/ptx/forms. ``check`` fails when the page is not what these give.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PAGE = ROOT / "docs" / "ptx-support.md"


def main() -> int:
    from tests.ptx.support import page

    if sys.argv[1:] == ["write"]:
        PAGE.write_text(page())
        return 0
    if sys.argv[1:] == ["check"]:
        if PAGE.read_text() == page():
            return 0
        print("docs/ptx-support.md is out of date: tools/ptx_support.py write")
        return 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
