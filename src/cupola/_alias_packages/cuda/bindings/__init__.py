"""Found by processes that a program under ``cupola run`` spawns; see cupola/_aliases.py."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[3] / "_spawned.py"))["replace"](__name__, "cupola._aliases")
