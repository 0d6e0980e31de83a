"""``cupola new``: the project works as it is made, and is refused where it cannot be."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest

from cupola.cli import main, new
from tests import processes
from tools import installation


def test_the_project_passes_its_tests(tmp_path, capsys):
    folder = tmp_path / "fast-sums"
    assert main(["new", str(folder), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["project"], made["package"]) == ("fast-sums", "fast_sums")
    assert str(folder / ".github" / "workflows" / "test.yml") in made["files"]
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert (folder / "requirements.txt").read_text().splitlines()[-1] == installation.REQUIREMENT
    assert not any("my_kernels" in text or "my-kernels" in text for text in texts)
    options = ["-q", "-p", "cupola.testing.plugin", "-p", "no:cacheprovider", "--cupola-device", "cpu"]
    done = processes.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder, env={**os.environ, "CUPOLA_CPU_MODEL": "h200"},
    )  # fmt: skip
    assert done.returncode == 0 and "cupola: 7 tests on" in done.stdout, done.stdout + done.stderr


def test_the_next_steps_are_told(tmp_path, capsys):
    assert main(["new", str(tmp_path / "x"), "--name", "Some.Thing"]) == 0
    assert 'pip install -e ".[test]"' in capsys.readouterr().out
    assert (tmp_path / "x" / "src" / "some_thing" / "kernels.cu").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, None),  # from an index
        ('{"url": "https://x.example/cupola", "vcs_info": {"vcs": "git"}}', None),  # as the project's own requirement
        ('{"url": "file:///home/me/cupola", "dir_info": {}}', 'pip install "cupola[all] @ file:///home/me/cupola"'),
        ('{"url": "file:///x.whl", "archive_info": {}}', 'pip install "cupola[all] @ file:///x.whl"'),
    ],
)
def test_where_cupola_came_from_is_told_for_another_environment(tmp_path, capsys, monkeypatch, text, told):
    monkeypatch.setattr(new, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert main(["new", str(tmp_path / "x"), "--name", "x"]) == 0
    out = capsys.readouterr().out
    assert ("In another environment" in out) == (told is not None) and (told or "") in out


@pytest.mark.parametrize("name", ["1st", "class", "a b", "-x", "cupola", ""])
def test_names_that_cannot_be(tmp_path, name, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["new", str(tmp_path / "folder"), f"--name={name}"] if name else ["new", "/"])
    assert caught.value.code == 2 and "--name" in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "file"):
        with pytest.raises(SystemExit) as caught:
            main(["new", str(folder), "--name", "fine"])
        assert caught.value.code == 2 and "is there already" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["file"]
