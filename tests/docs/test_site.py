"""What makes the site of docs/: its gallery, the texts of its search, and the look at its links."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
from pathlib import Path

import pytest

from docs import api_pages, gallery, search_texts, whole_programs
from tests import processes
from tools.site_look import dead_links

ROOT = Path(__file__).resolve().parents[2]


def test_the_gallery_has_all_examples():
    listed = [name for _, _, names in gallery.SECTIONS.values() for name in names.split()]
    there = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert sorted(listed) == sorted(there - set(whole_programs.MODULES))


def test_programs_that_the_tests_run_need_not_run_again(monkeypatch):
    monkeypatch.delenv("CUPOLA_GALLERY", raising=False)
    programs, notebook = "/gallery/programs/typical/nbody.py", "/notebooks/3_profile.py"
    pattern = gallery.settings()["filename_pattern"]
    assert re.search(pattern, programs) and re.search(pattern, notebook)
    monkeypatch.setenv("CUPOLA_GALLERY", "shown")
    pattern = gallery.settings()["filename_pattern"]
    assert not re.search(pattern, programs) and re.search(pattern, notebook)


@pytest.mark.parametrize("name", ["vector_add", "tour", "saxpy", "mpi_heat"])
def test_a_program_of_the_gallery_begins_with_a_heading(name):
    text = gallery.staged(name)
    title, line = re.match(r'"""\n(.*)\n(=+)\n\n', text).groups()
    assert len(title) == len(line) <= 60
    compile(text, name, "exec")
    whole = whole_programs.whole((ROOT / "examples" / f"{name}.py").read_text(), ROOT / "examples")
    assert text.partition("\nimport ")[2] == whole.partition("\nimport ")[2]


PROGRAMS = sorted(name for _, _, names in gallery.SECTIONS.values() for name in names.split())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_gallery_needs_no_other_file(name):
    """Each of its names is defined in it, and it imports no module that lies beside it."""
    tree = ast.parse(gallery.staged(name))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & set(whole_programs.MODULES)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}
    aliases = [node for node in ast.walk(tree) if isinstance(node, ast.alias)]
    bound |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
    assert names - bound - set(dir(builtins)) <= {"__file__", "__name__"}


def test_a_downloaded_program_runs_alone(tmp_path):
    (tmp_path / "reduction.py").write_text(gallery.staged("reduction"))  # with functions of two modules
    done = processes.run([sys.executable, "reduction.py"], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "reduction.png").stat().st_size


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_has_cells(path):
    text = path.read_text()
    title, line = re.match(r'"""\n(\d\. .*)\n(=+)\n\n', text).groups()
    assert len(title) == len(line)
    assert text.count("\n# %%\n") >= 4


def test_there_are_five_notebooks():
    assert len(list((ROOT / "examples" / "notebooks").glob("*.py"))) == 5


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text('<a href="sub/a.html#here">1</a> <a href="https://x.example/none">2</a>')
    (tmp_path / "sub" / "a.html").write_text(
        '<h1 id="here"></h1><a href="../index.html">1</a><img src="b.png"><a href="#there"></a>'
    )
    assert dead_links(tmp_path) == ["sub/a.html: #there has no such place", "sub/a.html: there is no b.png"]
    (tmp_path / "index.html").write_text('<a href="sub/a.html#gone">1</a>')
    assert "index.html: sub/a.html#gone has no such place" in dead_links(tmp_path)


def test_the_text_of_a_page_has_its_places():
    page = """<article role="main" id="x"><section id="top"><h1>Title<a class="headerlink" href="#top">#</a>
    </h1><p>a &lt;b&gt; <code>printf</code></p><dl><dt class="sig" id="cupola.launch">launch</dt></dl></section>
    </article>"""
    assert search_texts.text_of(page) == (
        '<div role="main"><section id="top"> Title a &lt;b&gt; printf <section id="cupola.launch"></section>launch '
        "</section></div>"
    )
    assert search_texts.text_of("<p>none</p>") == ""


LISTED = [
    (module, name)
    for path in sorted((ROOT / "docs" / "api").glob("*.rst"))
    for _, module, name in api_pages.objects(path.read_text())
]


def test_every_object_of_the_api_has_a_source_and_a_line_in_a_table():
    assert len(LISTED) > 150
    there = [(module, name) for module, name in LISTED if can_be_imported(module)]
    assert [f"{module}.{name}" for module, name in there if not api_pages.summary(module, name)] == []
    assert [f"{m}.{n}" for m, n in there if not api_pages.link("py", {"module": m, "fullname": n})] == []


def can_be_imported(module: str) -> bool:
    """False for a module of an extra that is not installed (without MPI, mpi4py raises a RuntimeError)."""
    try:
        importlib.import_module(module)
    except (ImportError, RuntimeError):
        assert module in {"cupola.dask", "cupola.mpi", "cupola.ray"}
        return False
    return True


@pytest.mark.parametrize(
    ("name", "definition"),
    [("Stream.sync", "def sync"), ("launch", "launch = "), ("Buffer", "class Buffer"), ("Event.close", "def close")],
)
def test_the_link_of_an_object_leads_to_its_definition(name, definition):
    link = api_pages.link("py", {"module": "cupola", "fullname": name})
    file, line = re.fullmatch(re.escape(api_pages.REPOSITORY) + r"(.*)#L(\d+)", link).groups()
    assert definition in (ROOT / "src" / file).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("name", "function"), [("Stream.sync", "cuStreamSynchronize"), ("Event.sync", "cuEventSynchronize")]
)
def test_the_functions_behind_a_method(name, function):
    path, qualified = api_pages.resolve("cupola", name)
    assert function in api_pages.functions_behind(path, qualified)
