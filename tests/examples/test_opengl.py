"""Contexts of OpenGL that the driver gives up, which needs another program's fault, are told and made anew."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import fluid
from opengl import LostContext, OpenGL

INNOCENT_CONTEXT_RESET = 0x8254


def test_a_lost_context_is_told() -> None:
    gl: Any = OpenGL.__new__(OpenGL)
    gl.tells_losses, gl.GetGraphicsResetStatus, gl.GetError = True, lambda: INNOCENT_CONTEXT_RESET, lambda: 0
    with pytest.raises(LostContext, match="0x8254"):
        gl.check("while drawing")
    gl.GetGraphicsResetStatus = lambda: 0
    gl.check("while drawing")


@pytest.mark.parametrize(("losses", "contexts"), [(0, 1), (2, 3), (3, 3)])
def test_another_context_draws(monkeypatch: pytest.MonkeyPatch, losses: int, contexts: int) -> None:
    made: list[int] = []

    @contextlib.contextmanager
    def context(cuda_device: int) -> Iterator[Any]:
        made.append(cuda_device)
        yield SimpleNamespace(GetString=lambda name: b"a renderer")

    def drawn(*_: object) -> str:
        if len(made) <= losses:
            raise LostContext("lost")
        return "picture"

    monkeypatch.setattr(fluid, "OpenGL", context)
    monkeypatch.setattr(fluid, "drawn", drawn)
    device: Any = SimpleNamespace(name="NVIDIA", device_id=1)
    nothing: Any = None
    found: Any = None
    with pytest.raises(LostContext) if losses == 3 else contextlib.nullcontext():
        found = fluid.drawn_by_opengl(device, nothing, 1, 1)
    assert found == (None if losses == 3 else ("picture", "a renderer"))
    assert made == contexts * [1]
