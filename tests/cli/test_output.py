"""Colours and progress are for terminals."""

from __future__ import annotations

import io
import sys

import pytest

from cupola.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.paint("text", output.RED, Terminal()) == "\x1b[31mtext\x1b[0m"
    assert output.paint("text", output.RED, io.StringIO()) == "text"
    for name, value in (("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
        assert output.paint("text", output.RED, Terminal()) == "text"


@pytest.mark.parametrize(
    ("stream", "items", "quiet", "bar"),
    [
        (Terminal, 3, False, True),
        (Terminal, 3, True, False),
        (Terminal, 1, False, False),
        (io.StringIO, 3, False, False),
    ],
)
def test_progress(monkeypatch, stream, items, quiet, bar):
    monkeypatch.setattr(sys, "stderr", stream())
    assert list(output.progress(range(items), "working", quiet=quiet)) == list(range(items))
    text = sys.stderr.getvalue()
    assert (f"working [{'#' * 16}{'.' * 8}] 2/3  2" in text and text.endswith("\r\x1b[K")) if bar else not text
