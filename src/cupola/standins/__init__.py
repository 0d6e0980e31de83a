"""Stand-ins: packages that programs import, made of cupola's, where the real ones cannot run.

``import cupy`` gives :mod:`cupola.standins.cupy` in a process that `install` was called in: ``cupola run`` and the
pytest plugin call it where the CPU device runs kernels, because CuPy has NVIDIA's runtime inside, which needs NVIDIA's
driver. ``CUPOLA_CUPY=1``, or ``cupola run --cupy``, asks for it on a GPU as well; ``CUPOLA_CUPY=0`` or ``--no-cupy``
leaves CuPy alone.

A finder at the head of ``sys.meta_path`` answers for the names. Nothing of that name is installed. Python programs that
this one starts find packages of these names in a folder that goes to ``PYTHONPATH``; they call `install` there.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# The module that programs import -> cupola's module. Submodules follow.
STANDINS = {"cupy": "cupola.standins.cupy", "cupyx": "cupola.standins.cupyx"}

# The release of CuPy whose interface it has.
VERSION = "14.2.0"

SPAWN_FOLDER = str(Path(__file__).with_name("_packages"))
SWITCH = "CUPOLA_CUPY"
_TOLD = "CUPOLA_CUPY_TOLD"  # in the environment, so that processes that this one starts do not say it again

__all__ = ["STANDINS", "VERSION", "choice", "install", "installed_cupy", "is_active"]


def choice() -> bool | None:
    """What ``CUPOLA_CUPY`` says: True or False; None: the stand-in goes with the CPU device.

    Raises
    ------
    ValueError
        When it says something else.
    """
    text = os.environ.get("CUPOLA_CUPY", "").lower()
    if text in ("", "auto"):
        return None
    if text in ("1", "on", "yes", "true"):
        return True
    if text in ("0", "off", "no", "false"):
        return False
    raise ValueError(f"{SWITCH} is {text!r}: it may be 1, 0 or auto, which takes the stand-in on the CPU device")


def install() -> None:
    """Make ``cupy`` and ``cupyx`` names of the stand-in, in this process and Python programs that it starts.

    Raises
    ------
    RuntimeError
        When CuPy is imported already.
    """
    if is_active():
        return
    loaded = sorted(name for name in sys.modules if name.split(".")[0] in STANDINS and not _is_spawned(name))
    if loaded:
        raise RuntimeError(
            f"{loaded[0]} is imported already, and the stand-in cannot replace its objects: "
            f"install it first (`cupola run`, or `pytest --cupola-names`), or leave CuPy alone with {SWITCH}=0"
        )
    sys.meta_path.insert(0, _Finder())
    if SPAWN_FOLDER not in sys.path:
        sys.path.insert(0, SPAWN_FOLDER)
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if SPAWN_FOLDER not in folders:
        os.environ["PYTHONPATH"] = os.pathsep.join([SPAWN_FOLDER, *folders])


def is_active() -> bool:
    """Whether ``import cupy`` gives the stand-in in this process."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def installed_cupy() -> str | None:
    """Where the real CuPy is installed; None if it is not."""
    folders = [folder for folder in sys.path if folder != SPAWN_FOLDER]
    spec = PathFinder.find_spec("cupy", folders)
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent)


def spawned(name: str) -> None:
    """Replace the package `name` of the spawn folder, which is being imported, by what it stands for."""
    install()
    sys.modules[name] = importlib.import_module(STANDINS[name])


def announce() -> None:
    """Say on stderr that ``cupy`` is the stand-in, once for a program and those that it starts."""
    if os.environ.get(_TOLD):
        return
    os.environ[_TOLD] = "1"
    real = installed_cupy()
    left = f"; {real} is left alone" if real else ""
    print(
        f"cupola: `import cupy` is cupola's stand-in for CuPy {VERSION}{left} ({SWITCH}=0: CuPy itself)",
        file=sys.stderr,
    )


class _Finder:
    """Finds modules of the stand-ins by the names that programs use."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, _Alias()) if name.split(".")[0] in STANDINS else None


def _advice(name: str) -> str:
    """What to say of a module that is not there: what its package says of the name."""
    parent, _, leaf = name.rpartition(".")
    try:
        getattr(sys.modules[parent], leaf)
    except AttributeError as error:
        if "cupola's stand-in" in str(error):
            return str(error)
    return f"cupola's stand-in for CuPy has no {name}; docs/coming-from-cupy.md lists what it has and what not"


class _Alias(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # What stands in sys.modules afterwards is what the import gives.
        name = module.__name__
        top, _, rest = name.partition(".")
        target = STANDINS[top] + (f".{rest}" if rest else "")
        try:
            sys.modules[name] = importlib.import_module(target)
        except ModuleNotFoundError as error:
            if error.name is None or not target.startswith(error.name):
                raise
            # With its own name `from cupyx import jit` would say no more than that there is none.
            raise ModuleNotFoundError(_advice(name), name=target) from None


def _is_spawned(name: str) -> bool:
    """Whether a module is one of the packages in the spawn folder."""
    file = getattr(sys.modules[name], "__file__", None)
    return file is not None and file.startswith(SPAWN_FOLDER)
