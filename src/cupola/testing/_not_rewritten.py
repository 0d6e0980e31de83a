"""Modules of cupola keep their code in a run of pytest, whose import hook would rewrite them.

pytest rewrites the assertions of the distribution that a plugin comes with. That is all of cupola: hundreds of modules,
most of which a test imports in its midst, many on a thread that compiles kernels. To rewrite a module, pytest parses it
into the classes of ``ast``. While Python makes these it counts how deep it is, against the recursion limit, which
hypothesis changes around each of its tests. Where another thread does so meanwhile, the import ends in "SystemError:
AST constructor recursion depth mismatch", and the kernel in an unknown error.

``PYTEST_DONT_REWRITE`` in a docstring is no help: pytest looks for it when the module has been parsed. So a finder of
Python's own stands before the hook. The modules of the plugin that pytest loads first are rewritten all the same, on
the thread that begins the run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

import pytest


class _Finder(MetaPathFinder):
    """Finds modules of cupola as Python does without pytest. Those of an editable installation have another finder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path, target) if fullname.startswith("cupola.") else None


def keep(config: pytest.Config) -> None:
    """Have the modules that are imported from now on, until the end of this run, left alone."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    config.add_cleanup(lambda: sys.meta_path.remove(finder))
