"""The README and the pages of docs/ tell the truth: their Python runs as printed, and what they quote is what comes."""

from __future__ import annotations

import doctest
import re
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path

import pytest

from tools.refresh_readme import program, region, run_program

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("[!_]*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
    if re.search(r"^```(python|pycon)$", path.read_text(), re.M)
)


def blocks(page: str) -> list[tuple[str, str, int]]:
    """Language, source and line of each block of Python; one behind a comment is a program of its own."""
    text = (ROOT / page).read_text()
    found = re.finditer(r"(?<! -->\n)^```(python|pycon)\n(.*?)^```$", text, re.M | re.S)
    return [(m[1], m[2], text[: m.start()].count("\n") + 1) for m in found]


def run_page(page: str) -> int:
    """Run the blocks of a page, in order, in one namespace; returns the exit status."""
    names: dict[str, object] = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for language, source, line in blocks(page):
        if language == "python":
            exec(compile("\n" * line + source, page, "exec"), names)
            continue
        examples = doctest.DocTestParser().get_examples(source)
        test = doctest.DocTest(examples, {}, page, page, line, None)
        test.globs = names  # the namespace itself, where DocTest would keep a copy
        runner.run(test, clear_globs=False)
    return 1 if runner.summarize(verbose=False).failed else 0


UNCHECKED = {
    "docs/checks.md": "it has findings",
    "docs/fault-injection.md": "checks make calls of their own",
    "docs/guides/caching.md": "checked programs are compiled anew",
    "docs/programs.md": "checked programs are compiled anew",
}


def marked(page: str) -> object:
    """A page as a parameter, with the reason why it is not run while kernels are checked."""
    reason = UNCHECKED.get(page)
    return pytest.param(page, marks=pytest.mark.unchecked(reason=reason) if reason else ())


@pytest.mark.parametrize("page", [marked(page) for page in PAGES])
def test_page_runs_as_printed(page, run_python, request):
    text = (ROOT / page).read_text()
    if "opengl" in text:
        request.getfixturevalue("gl")  # or skip
    for package in ("dask", "ray"):
        if re.search(rf"^import {package}\b|^from {package}\b", text, re.M):
            pytest.importorskip(package, reason=f"the page's programs import {package}: cupola[{package}]")
    source = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "examples")!r}]
from tests.test_readme import run_page
sys.exit(run_page({page!r}))
"""
    done = run_python(source, CUPOLA_CPU_DEVICES="2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr


@pytest.mark.cpu_only
@pytest.mark.parametrize("name", ["tour", "fault"])
def test_output_in_the_readme_is_what_comes(name):
    """Addresses, times and registers differ from run to run and from one NVRTC to the next."""
    printed = re.search(r"^```text\n(.*?)^```$", region(README, name), re.M | re.S)[1]
    comes = run_program(program(README, name))
    printed, comes = (re.sub(r"0x[0-9a-f]+|[0-9]+(\.[0-9]+)?", "#", text.strip()) for text in (printed, comes))
    assert printed == comes, "refresh it with: python tools/refresh_readme.py"


def test_the_groups_of_the_driver_have_every_function():
    from cupola.bindings import driver

    text = (ROOT / "docs" / "api" / "bindings.md").read_text()
    table = re.findall(r"^\| [^|`]+ \| (`cu[^|]+) \|$", text, re.M)
    patterns = re.findall(r"`(\w+\*?)`", " ".join(table))
    functions = [name for name in dir(driver) if name.startswith("cu") and not isinstance(getattr(driver, name), type)]
    assert len(functions) > 500
    assert [name for name in functions if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert [pattern for pattern in patterns if not any(fnmatch(name, pattern) for name in functions)] == []


def test_the_variables_of_the_environment_are_listed():
    page = (ROOT / "docs" / "cpu-device.md").read_text()
    listed = set(re.findall(r"^\| `(CUPOLA_\w+)` \|", page, re.M))
    read = re.compile(r"(?:getenv|environ\.get|environ\[|text_of|(?:read|check)_\w+)[(\[]?\"(CUPOLA_\w+)\"")
    sources = [path for path in (ROOT / "src").rglob("*") if path.suffix in {".c", ".py", ".pyx"}]
    assert listed == {name for path in sources for name in read.findall(path.read_text())}


def test_every_example_has_a_line_in_the_readme():
    table = README[README.index("## Examples") :]
    named = set(re.findall(r"`(\w+)/?`", re.split("^## ", table, flags=re.M)[1]))
    there = {path.stem for path in (ROOT / "examples").iterdir() if not path.name.startswith(("_", "."))}
    assert there - {"arrays", "opengl", "pictures"} == named  # which are what the others share
