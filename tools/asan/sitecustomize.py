"""On the path of the processes of `make asan`: cupola.bindings comes from the build with AddressSanitizer."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path


class Finder:
    """Finds what was compiled in the folder CUPOLA_ASAN."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        if package != "cupola.bindings":
            return None
        found = sorted(Path(os.environ["CUPOLA_ASAN"]).glob(f"{module}.*.so"))
        return (
            spec_from_file_location(name, found[0], loader=ExtensionFileLoader(name, str(found[0]))) if found else None
        )


if "CUPOLA_ASAN" in os.environ:
    sys.meta_path.insert(0, Finder)
