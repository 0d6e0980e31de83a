"""Change a module of another package when it is imported: for packages that ask for a GPU in ways of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

Change = Callable[[ModuleType], None]


def after_import(name: str, change: Change) -> None:
    """Call `change` with the module `name` once it has been imported, which may be now or never."""
    if name in sys.modules:
        change(sys.modules[name])
        return
    finder = next((known for known in sys.meta_path if isinstance(known, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.changes.setdefault(name, []).append(change)


class _Finder:
    def __init__(self) -> None:
        self.changes: dict[str, list[Change]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        changes = self.changes.get(name)
        if changes is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, changes)
        return spec


class _Loader(Loader):
    """Loads a module by its own loader, and then changes it. Whatever else a loader has is that loader's."""

    def __init__(self, loader: Loader, changes: list[Change]) -> None:
        self._loader = loader
        self._changes = changes

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        for change in self._changes:
            change(module)
