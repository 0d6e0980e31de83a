"""``cupola completion``: bash completes with the script; those of the other shells have every command and option."""

from __future__ import annotations

import shutil

import pytest

from cupola.cli import main, make_parser
from tests import processes


@pytest.fixture(scope="module")
def script():
    def make(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return make


# What is typed -> some of what is offered.
TYPED = {
    "": {"info", "doctor", "run", "compile", "bench", "new", "--version"},
    "comp": {"compile", "completion"},
    "compile --s": {"--show", "--std"},
    "compile --show ": {"ptx", "sass"},
    "compile --show p": {"ptx"},
    "bench --device ": {"auto", "cpu", "gpu", "both"},
    "completion ": {"bash", "zsh", "fish"},
    "compile saxp": {"saxpy.cu"},
    "compile --arch ": set(),
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash(script, capsys, tmp_path):
    (tmp_path / "saxpy.cu").touch()
    lines = [script("bash", capsys)]
    for typed in TYPED:
        words = ["cupola", *typed.split(" ")]
        lines.append(f"COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _cupola")
        lines.append('echo "${COMPREPLY[@]}"')
    done = processes.run(["bash", "-c", "\n".join(lines)], cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for (typed, wanted), line in zip(TYPED.items(), done.stdout.splitlines(), strict=True):
        offered = set(line.split())
        assert wanted <= offered and (wanted or not offered), typed
        assert all(word.startswith(typed.split(" ")[-1]) for word in offered), typed


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish(script, capsys, tmp_path):
    (tmp_path / "saxpy.cu").touch()
    (tmp_path / "cupola.fish").write_text(script("fish", capsys))
    commands = "; ".join(f"complete -C {f'cupola {typed}'!r}; echo ." for typed in TYPED)
    whole = ["fish", "--no-config", "-c", f"source cupola.fish; {commands}"]
    done = processes.run(whole, cwd=tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    known = set(make_parser()[1].choices)
    for (typed, wanted), text in zip(TYPED.items(), done.stdout.split(".\n"), strict=False):
        offered = {line.split("\t")[0] for line in text.splitlines()}
        assert {word for word in wanted if word[:1] != "-" or "-" in typed} <= offered, typed
        assert " " not in typed or not known & offered, "commands are offered where there is one already"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(script, capsys, shell):
    text = script(shell, capsys)
    _, commands = make_parser()
    for name, parser in commands.choices.items():
        assert name in text
        for action in parser._actions:
            for flag in action.option_strings:
                assert (
                    f"'{flag}[" if shell == "zsh" else f" -{'l' if flag[1] == '-' else 's'} {flag.lstrip('-')}"
                ) in text
    if path := shutil.which(shell):
        assert processes.run([path, "-n"], input=text).returncode == 0
