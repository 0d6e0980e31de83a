"""Which tests `make test-fast` chooses for a change."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "changed_tests.py"))


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("tests/bindings/test_enums.py", ["tests/bindings/test_enums.py"]),
        ("tests/bindings/stub.py", ["tests/bindings"]),
        ("tests/bindings/test_gone.py", []),
        ("tests/conftest.py", []),  # the whole suite, which is not fast
        ("src/cupola/bindings/nvvm.c", ["tests/bindings/test_nvvm.py"]),
        ("src/cupola/bindings/no_such_file.c", ["tests/bindings"]),
        ("src/cupola/bindings/support/no_such_folder/a.c", ["tests/bindings"]),
        ("src/cupola/_completion.py", ["tests/test_completion.py"]),
        ("bindgen/plan.py", ["tests/bindings/test_generated.py", "tests/bindings/test_sample.py"]),
        ("tools/check_machine.sh", ["tests/tools/test_check_machine.py"]),
        ("docs/memory.md", ["tests/test_readme.py", "tests/docs"]),
        ("LICENSE", []),
    ],
)
def test_tests_of_a_file(changed: str, tests: list[str]) -> None:
    assert TOOL["tests_of"](changed) == tests


def test_folders_are_run_once_and_files_first() -> None:
    chosen = TOOL["select"](["tests/bindings/stub.py", "src/cupola/bindings/a/b.c", "src/cupola/bindings/nvvm.c"])
    assert chosen == ["tests/test_layers.py", "tests/bindings/test_nvvm.py", "tests/bindings"]


@pytest.mark.parametrize("table", ["ELSEWHERE", "ALWAYS"])
def test_what_the_tables_name_exists(table: str) -> None:
    rows = TOOL[table]
    targets = [test for tests in rows.values() for test in tests] if isinstance(rows, dict) else rows
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_a_change_has_all_tests_that_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def run(command: list[str], **how: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "src/cupola/bindings/nvvm.c\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["changed_tests.py", "-x"])
    assert TOOL["main"]() == 0
    assert commands[-1][-4:] == ["--turn=all", "-x", "tests/test_layers.py", "tests/bindings/test_nvvm.py"]
