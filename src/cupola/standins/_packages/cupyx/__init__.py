"""Found by processes that a program with the stand-in starts; see cupola/standins/__init__.py."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[3] / "_spawned.py"))["replace"](__name__, "cupola.standins")
