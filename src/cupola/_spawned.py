"""What the packages do that Python programs find by ``PYTHONPATH`` when one under ``cupola run`` has started them.

They run this file by its path, because the other Python may have no cupola, or may be of another version.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def replace(name: str, module: str) -> None:
    """Let `module` of cupola replace the package `name`, which is being imported.

    Raises
    ------
    ModuleNotFoundError
        When this Python has no cupola.
    """
    try:
        spawned = importlib.import_module(module).spawned
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cupola":
            raise
        version = ".".join(map(str, sys.version_info[:3]))
        lacks = "no cupola" if error.name == "cupola" else "cupola only for another version of Python"
        raise ModuleNotFoundError(
            f"{name} stands for cupola's here, because `cupola run` has started this program, but {sys.executable} "
            f"(Python {version}) has {lacks}: install it there, or remove the folders in {Path(__file__).parent} from "
            "PYTHONPATH when you start it",
            name=name,
        ) from None
    spawned(name)
