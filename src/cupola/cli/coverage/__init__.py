"""``cupola run --coverage``, ``pytest --cupola-cov``: which lines and branches of CUDA C++ ran.

Imported when one of them is asked for.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from cupola.cli.options import check_folder, not_written

from . import formats, html, text
from .model import Data, placed

VARIABLE = "CUPOLA_COVERAGE"
"""Names the folder where this process and those that it starts write what they count."""

TITLE = "CUDA C++ coverage"


def prepare(device: str | None, report: str | None = None, option: str = "--coverage-report") -> str:
    """The device on which coverage is measured.

    Parameters
    ----------
    device
        That which was chosen.
    report
        The folder for the reports.
    option
        What it was said with.

    Raises
    ------
    ValueError
        When another device is chosen, or the reports cannot be written.
    """
    if device not in (None, "cpu"):
        raise ValueError("coverage is measured on the CPU device only: add --device cpu")
    if report is not None:
        check_folder(option, report)
    return "cpu"


class Session:
    """Coverage of this process and of those that it starts, from here on.

    Parameters
    ----------
    report
        The folder for the reports; None for the table alone.

    Attributes
    ----------
    is_first
        Whether this process adds up what the others count: none that it was started by does.
    """

    def __init__(self, report: str | None) -> None:
        self.is_first = not os.environ.get(VARIABLE)
        self._report = None if report is None else os.path.abspath(report)
        if self.is_first:
            os.environ[VARIABLE] = tempfile.mkdtemp(prefix="cupola-coverage-")
            atexit.register(shutil.rmtree, os.environ[VARIABLE], ignore_errors=True)  # where nothing comes to its end
        self._folder = os.environ[VARIABLE]
        if "cupola.cpu._driver" in sys.modules:  # the device may be in use already
            from cupola.cpu import observed

            observed.begin_from_environment()

    def tell(self) -> None:
        """Say what ran, at the end of the first process."""
        if self.is_first:
            print(self.finish(), end="", file=sys.stderr)

    def save(self) -> None:
        """Write down what this process has counted."""
        observed = sys.modules.get("cupola.cpu.observed")
        if observed is not None:
            observed.save()

    def finish(self) -> str:
        """Add up what all processes have written; returns the table, and writes the reports."""
        self.save()
        data = Data()
        data.read_folder(self._folder)
        shutil.rmtree(self._folder, ignore_errors=True)
        if os.environ.get(VARIABLE) == self._folder:
            del os.environ[VARIABLE]
        said = text.report(data.files())
        if self._report is not None:
            where = os.path.relpath(self._report)
            try:
                write(data, self._report)
            except OSError as error:
                said += f"\n{not_written('--coverage-report', where, error)}\n"
            else:
                said += f"\nreports: {where}/index.html, coverage.lcov, coverage.xml\n"
        return said


def write(data: Data, folder: str | Path) -> None:
    """Write all reports, and the data itself, to a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = data.files()
    (folder / "index.html").write_text(html.index(files, TITLE), "utf-8")
    for number, file in enumerate(files):
        (folder / html.page_name(number)).write_text(html.source(file, TITLE), "utf-8")
    where = list(placed(files, str(folder / "sources")))
    (folder / "coverage.lcov").write_text(formats.lcov(where), "utf-8")
    (folder / "coverage.xml").write_text(formats.cobertura(where, os.getcwd()), "utf-8")
    (folder / "coverage.json").write_text(json.dumps(data.dump()), "utf-8")


def combine(folders: list[str], report: str | None) -> int:
    """``cupola coverage``: add up the reports of several runs."""
    data = Data()
    try:
        if report is not None:
            check_folder("--coverage-report", report)
    except ValueError as error:
        print(f"cupola coverage: {error}", file=sys.stderr)
        return 2
    for folder in folders:
        path = Path(folder)
        path = path / "coverage.json" if path.is_dir() else path
        try:
            data.add(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"cupola coverage: {path} is no coverage.json of --coverage-report ({error})", file=sys.stderr)
            return 2
    print(text.report(data.files()), end="")
    if report is not None:
        try:
            write(data, report)
        except OSError as error:
            print(f"cupola coverage: {not_written('--coverage-report', report, error)}", file=sys.stderr)
            return 1
    return 0
