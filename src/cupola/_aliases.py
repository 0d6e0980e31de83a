"""Programs for CUDA Python on cupola: ``cuda.core`` and its siblings become names of cupola's modules.

A finder at the head of ``sys.meta_path`` answers for the names in `ALIASES` and everything below them; other packages
in the namespace ``cuda`` are found where they are. The alias is the same module object, so classes are the same
whichever name they were imported by. Only the three top packages are stand-ins of their own, because programs look at
their ``__version__``, which must be that of the API, not of cupola.

Some programs also load the driver themselves, as ``libcuda.so.1``. Where the CPU device runs them, that is its driver,
and CuPy, which cannot take it, has a stand-in (:mod:`cupola.standins`).

Python programs that this one starts do not have the finder, but they read ``PYTHONPATH``, and those that
multiprocessing spawns get ``sys.path``. Therefore a folder with a package ``cuda`` goes there, too, whose only content
is the call of `install`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from cupola import standins

# The module that programs import -> cupola's module. Submodules follow.
ALIASES = {
    "cuda.core": "cupola",
    "cuda.bindings": "cupola.bindings",
    "cuda.pathfinder": "cupola.pathfinder",
    # Where programs find the exceptions of the object layer, which have no public name there, and packages more.
    "cuda.core._utils": "cupola.core",
    "cuda.core._utils.cuda_utils": "cupola.core.base._cuda_utils",
    # The enums of tensor maps likewise.
    "cuda.core._tensor_map": "cupola.core.exchange._tensor_map",
}

# Spellings from before 1.0, and today's.
OLDER = {
    "cuda.core.experimental": "cuda.core",
    "cuda.cuda": "cuda.bindings.driver",
    "cuda.cudart": "cuda.bindings.runtime",
    "cuda.nvrtc": "cuda.bindings.nvrtc",
    "cuda.nvjitlink": "cuda.bindings.nvjitlink",
    "cuda.nvvm": "cuda.bindings.nvvm",
}

# The releases whose API cupola has.
VERSIONS = {"cuda.core": "1.2.2", "cuda.pathfinder": "1.9.0"}

# The top packages, which have a version of their own.
PACKAGES = frozenset([*VERSIONS, "cuda.bindings"])

SPAWN_FOLDER = str(Path(__file__).with_name("_alias_packages"))


def install() -> None:
    """Make ``cuda.core``, ``cuda.bindings`` and ``cuda.pathfinder`` names of cupola, in this process.

    Raises
    ------
    RuntimeError
        When the real module of one of these names is imported already.
    """
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    loaded = sorted(name for name in sys.modules if _target(name) is not None and not _is_spawned(name))
    if loaded:
        raise RuntimeError(
            f"{loaded[0]} is imported already, and cupola cannot replace its objects: "
            "let cupola take over the names first (`cupola run`, or `pytest -p cupola.testing`)"
        )
    sys.meta_path.insert(0, AliasFinder())
    if SPAWN_FOLDER not in sys.path:
        sys.path.insert(0, SPAWN_FOLDER)  # in front of the real packages, if they are installed
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if SPAWN_FOLDER not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([SPAWN_FOLDER, *folders])
    from cupola.bindings import _provider

    on_cpu = _provider.provide_library()
    if on_cpu:
        from cupola import _cutile, _jax, _numba, _tried, _triton

        for package in (_triton, _cutile, _jax, _numba, _tried):
            package.install()
    chosen = standins.choice()
    if chosen or (chosen is None and on_cpu):
        standins.install()


def spawned(name: str) -> None:
    """Replace the package `name` of the spawn folder, which is being imported, by what it stands for."""
    install()
    sys.modules[name] = _load(name)


class AliasFinder:
    """Finds modules by their names in CUDA Python."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "cuda":
            return None if _finds_elsewhere(name) else ModuleSpec(name, _Namespace(), is_package=True)
        if _target(name) is None:
            return None
        return ModuleSpec(name, _Alias())


class _Namespace(Loader):
    """The namespace ``cuda``, if no package is installed in it."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Alias(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # What stands in sys.modules afterwards is what the import gives, so the real module keeps its own __spec__.
        sys.modules[module.__name__] = _load(module.__name__)


class _Package(ModuleType):
    """One of the top packages: cupola's under another name and version."""

    def __init__(self, name: str, target: ModuleType) -> None:
        super().__init__(name, target.__doc__)
        spec = ModuleSpec(name, _Alias(), is_package=True)  # importlib.util.find_spec() asks for it
        vars(self).update(__path__=[], __spec__=spec, _target=target, __version__=_version(name))

    def __getattr__(self, name: str) -> object:
        # For a module below this one that exists under another name, such as `cuda.core._utils`.
        target = vars(self)["_target"]
        try:
            return getattr(target, name)
        except AttributeError:
            raise AttributeError(
                f"module {self.__name__!r} has no attribute {name!r}: it is {target.__name__} in this process"
            ) from None

    def __dir__(self) -> list[str]:
        return sorted({*dir(vars(self)["_target"]), "__version__"})


def _load(name: str) -> ModuleType:
    newer = OLDER.get(name)
    if newer is not None:
        warnings.warn(f"{name} is now {newer}", DeprecationWarning, stacklevel=3)  # importlib's frames do not count
        name = newer
    target = _target(name)
    assert target is not None
    try:
        module = importlib.import_module(target)
    except ModuleNotFoundError as error:
        if error.name is None or not target.startswith(error.name):
            raise
        raise ModuleNotFoundError(
            f"cupola has no {target}, so it has no {name}; docs/migrate.md lists what differs from CUDA Python",
            name=name,
        ) from None
    if name == "cuda.core":
        from cupola.core.device._stream import call_streams_of_cuda_core

        call_streams_of_cuda_core()
    return _Package(name, module) if name in PACKAGES else module


def _target(name: str) -> str | None:
    """The module of cupola that `name` stands for."""
    known = name
    while known not in ALIASES and known not in OLDER:
        known, dot, _ = known.rpartition(".")
        if not dot:
            return None
    if known in OLDER:
        return _target(OLDER[known] + name[len(known) :])
    return ALIASES[known] + name[len(known) :]


def _version(name: str) -> str:
    if name == "cuda.bindings":
        from cupola.bindings.driver import CUDA_VERSION

        return f"{CUDA_VERSION // 1000}.{CUDA_VERSION % 1000 // 10}.0"
    return VERSIONS[name]


def _is_spawned(name: str) -> bool:
    """Whether a module is one of the packages in the spawn folder."""
    file = getattr(sys.modules[name], "__file__", None)
    return file is not None and file.startswith(SPAWN_FOLDER)


def _finds_elsewhere(name: str) -> bool:
    for finder in sys.meta_path:
        if not isinstance(finder, AliasFinder):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return True
    return False
