"""``cupola run ./program``: a program in machine code, or any other that is not Python's."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import elf

STATIC_RUNTIME = (
    "%s has NVIDIA's CUDA runtime inside, which works with NVIDIA's driver only: on the CPU device its calls fail. "
    "Build it with the shared runtime: `cupola nvcc`, nvcc -cudart shared, or CMAKE_CUDA_RUNTIME_LIBRARY=Shared"
)
UNKNOWN_RUNTIME = "%s is linked with %s, which the CPU device does not have: build it with CUDA 12 or 13"


def find_program(name: str) -> Path | None:
    """The file of a program that is not Python's: an ELF file, or a script for another interpreter; None if it is."""
    path = Path(name)
    if os.sep not in name and not path.exists():
        found = shutil.which(name)
        if found is None:
            return None
        path = Path(found)
    try:
        with path.open("rb") as file:
            start = file.readline(256)
    except OSError:
        return None
    is_other_script = start.startswith(b"#!") and b"python" not in start and os.access(path, os.X_OK)
    return path if start.startswith(elf.MAGIC) or is_other_script else None


def run(path: Path, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the program, with what it needs to find the device that is chosen.

    The program's exit status and signals are its own.

    Raises
    ------
    SystemExit
        When it cannot be started.
    """
    from cupola.bindings import _provider

    variables = dict(os.environ)
    if _provider.is_cpu():
        from cupola.cpu import programs

        try:
            variables.update(programs.environment())
        except (ImportError, RuntimeError) as error:
            raise SystemExit(f"cupola run: {error}") from None
        _look_at(path, variables)
        if _is_python(path):
            _load_first(variables, programs.compilers())
    else:
        _add_runtime(variables)
    try:
        os.execve(path, list(arguments), variables)
    except OSError as error:
        raise SystemExit(f"cupola run: cannot start {path}: {error.strerror}") from None


def _is_python(path: Path) -> bool:
    return re.fullmatch(r"python[\d.]*t?", path.name) is not None


def _load_first(variables: dict[str, str], libraries: Sequence[str]) -> None:
    """Let the program have libraries from the beginning, in whichever folder it would look for them."""
    variables["LD_PRELOAD"] = " ".join(filter(None, [*libraries, variables.get("LD_PRELOAD")]))


def _look_at(path: Path, variables: dict[str, str]) -> None:
    """Say what will not work, before the program fails in its own way."""
    from cupola.cpu import programs

    if not elf.is_elf(path):
        return
    logger = logging.getLogger("cupola")
    try:
        program = elf.read(path)
    except ValueError as error:
        logger.warning("%s", error)
        return
    if program.has_rpath:  # its own folders would come first
        folder = programs.library_folder()
        if own := [os.path.join(folder, name) for name in program.needed if name in programs.LIBRARIES]:
            _load_first(variables, own)
    if program.runtime is None:
        if program.has_device_code:
            logger.warning(STATIC_RUNTIME, path)
    elif program.runtime not in programs.RUNTIMES:
        logger.warning(UNKNOWN_RUNTIME, path, program.runtime)


def _add_runtime(variables: dict[str, str]) -> None:
    """NVIDIA's runtime from a wheel is in no folder that the dynamic linker knows."""
    from cupola.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        path = load_nvidia_dynamic_lib("cudart").abs_path
    except DynamicLibNotFoundError:
        return
    if path:
        folders = [variables.get("LD_LIBRARY_PATH"), os.path.dirname(path)]
        variables["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
