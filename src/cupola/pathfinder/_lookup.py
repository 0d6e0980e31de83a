"""A program of its own: prints where the loader finds the first of the given names that it finds.

Run as a file, in a process of its own, so that a library can be looked up without being loaded into this one.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # The child is isolated (-I), so that not even this folder is on its path.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if sys.platform == "win32":
        from _loader_windows import path_of, try_open  # type: ignore[import-not-found]
    else:
        from _loader_linux import path_of, try_open  # type: ignore[import-not-found]
    for candidate in sys.argv[1:]:
        opened = try_open(candidate)
        if opened:
            print(path_of(opened) or "")
            break
