"""Errors in IPython and notebooks end where the program called cupola."""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

import pytest

import cupola
from cupola import LaunchConfig, _notebook, launch


def names(found: object) -> list[str]:
    return [frame.f_code.co_name for frame, _ in traceback.walk_tb(found)]


@pytest.fixture
def error(device, stream):
    def called():
        cupola.compile("no CUDA C++")

    def calling():
        called()

    with pytest.raises(cupola.NVRTCError) as caught:
        calling()
    return caught.value


def test_frames_of_cupola_are_left_out(error, stream):
    assert "compile" in names(error.__traceback__)
    assert names(_notebook.shorten(error.__traceback__))[-2:] == ["calling", "called"]
    with pytest.raises(TypeError) as caught:
        launch(stream, LaunchConfig(grid=1, block=1), None)  # compiled modules, which may have frames
    assert names(_notebook.shorten(caught.value.__traceback__)) == ["test_frames_of_cupola_are_left_out"]


def test_what_does_not_end_in_cupola_is_whole():
    with pytest.raises(ZeroDivisionError) as caught:
        1 / 0  # noqa: B018
    assert names(_notebook.shorten(caught.value.__traceback__)) == ["test_what_does_not_end_in_cupola_is_whole"]
    frames = _notebook.shorten(None)
    assert frames is None


@pytest.mark.parametrize(("mode", "last"), [("Context", "called"), ("Verbose", "_run")])
def test_the_shell_shows_it(error, mode, last):
    shown = []
    shell = SimpleNamespace(
        InteractiveTB=SimpleNamespace(mode=mode), showtraceback=lambda found, **options: shown.append((found, options))
    )
    _notebook.show(shell, type(error), error, error.__traceback__, tb_offset=1)
    [((kind, value, found), options)] = shown
    assert (kind, value, options) == (type(error), error, {"tb_offset": 1, "running_compiled_code": True})
    assert names(found)[-1].rpartition(".")[2] == last


def test_a_shell_is_asked_once_and_only_if_it_has_no_handler(monkeypatch):
    asked = []

    def shell(*handled: type) -> SimpleNamespace:
        return SimpleNamespace(custom_exceptions=handled, set_custom_exc=lambda *given: asked.append(given))

    for found in (None, shell(ValueError), shell()):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda found=found: found))
        _notebook.begin()
    assert asked == [((Exception,), _notebook.show)]
    monkeypatch.setitem(sys.modules, "IPython", None)
    _notebook.begin()
