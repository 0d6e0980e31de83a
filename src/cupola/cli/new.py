"""``cupola new``: a project with a kernel, its tests and a workflow, to start from."""

from __future__ import annotations

import argparse
import json
import keyword
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from .output import BOLD, paint, show

PACKAGE, PROJECT = "my_kernels", "my-kernels"
"""The names in the template, ``examples/project`` in cupola's repository."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "new",
        help="make a project with a kernel, tests, and a workflow that runs them without a GPU",
        description="Make a folder with a Python package of CUDA kernels, tests, and a workflow for CI that needs no "
        "GPU. The folder must not exist, or be empty. The exit status is 1 if it cannot be written.",
    )
    command.add_argument("folder", metavar="FOLDER", help="the folder to make; its name is that of the project")
    command.add_argument("--name", metavar="NAME", help="another name for the project")
    command.add_argument("--json", action="store_true", help="print the files as JSON")
    command.set_defaults(run=run)


def run(options: argparse.Namespace, command: argparse.ArgumentParser) -> int:
    """Make the project; the exit status is 1 if it cannot be written."""
    folder = Path(options.folder)
    project = options.name or folder.resolve().name
    package = re.sub(r"[-.]+", "_", project).lower()
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z]", project) or keyword.iskeyword(package):
        command.error(f"{project!r} cannot be the name of a package: letters, digits, - and _, a letter first (--name)")
    if package in {"cupola", "cuda", "numpy", "tests"}:
        command.error(f"a package {package} is there already: choose another name (--name)")
    written = []
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            command.error(f"{folder} is there already, and no empty folder")
        for name, text in _template():
            path = folder / name.replace(PACKAGE, package)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(PACKAGE, package).replace(PROJECT, project), encoding="utf-8")
            written.append(str(path))
    except OSError as error:
        raise SystemExit(f"cupola new: cannot write {error.filename}: {error.strerror}") from None
    if options.json:
        show(json.dumps({"project": project, "package": package, "files": written}, indent=2))
        return 0
    steps = [f"cd {folder}", 'pip install -e ".[test]"', "pytest --cupola-device cpu"]
    lines = [f"{paint(project, BOLD)}:", *(f"  {path}" for path in written), "", "Next:", *(f"  {s}" for s in steps)]
    source = _local_source()
    if source:
        lines += ["", "In another environment of this computer, first:", f'  pip install "cupola[all] @ {source}"']
    show("\n".join(lines))
    return 0


def _local_source() -> str | None:
    """The URL of the folder or wheel of this computer that cupola was installed from (PEP 610), if it was."""
    try:
        text = distribution("cupola").read_text("direct_url.json")
    except PackageNotFoundError:  # run from its sources
        return None
    url = json.loads(text).get("url", "") if text else ""
    return url if url.startswith("file:") else None


def _template() -> list[tuple[str, str]]:
    """Paths and texts of the template's files."""
    root = files("cupola.cli") / "template"
    found = sorted((name, file.read_text(encoding="utf-8")) for name, file in _walk(root))
    if not found:
        raise SystemExit("cupola new: this installation lacks the template: install cupola again")
    return found


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.is_file():
            yield f"{prefix}{entry.name}", entry
        elif entry.name != "__pycache__":
            yield from _walk(entry, f"{prefix}{entry.name}/")
