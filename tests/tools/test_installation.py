"""Pages and the template install cupola in one form."""

from __future__ import annotations

import re

import pytest

from tools import installation

NEW = installation.REQUIREMENT


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('$ pip install "cupola[all]" pytest', f'$ pip install "{NEW}" pytest'),
        ('- run: pip install "cupola[all] @ file:///x"', f'- run: pip install "{NEW}"'),
        ("# of cupola[all]\ncupola[all] @ git+https://x.example\n", f"# of cupola[all]\n{NEW}\n"),
        ('pip install "cupola[dask]"', 'pip install "cupola[dask]"'),  # adds to what is there
        (f'pip install "{NEW}"', f'pip install "{NEW}"'),
    ],
)
def test_what_is_written(text, written):
    assert installation.written(text) == written


def test_pages_show_the_one_form():
    there = installation.pages()
    assert {"README.md", "start.md", "index.md", "ci.md", "requirements.txt"} <= {path.name for path in there}
    for path in there:
        text = path.read_text()
        assert installation.written(text) == text, f"{path}: python tools/installation.py"
        plain = [line for line in re.findall(r"pip install .*cupola\[.*", text) if NEW not in line]
        assert all('"cupola[' in line and "cupola[all]" not in line for line in plain), (path, plain)
    with_form = [path.name for path in there if NEW in path.read_text()]
    assert {"README.md", "start.md", "index.md", "ci.md", "teaching.md", "requirements.txt"} <= set(with_form)
