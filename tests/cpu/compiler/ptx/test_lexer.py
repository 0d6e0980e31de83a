"""Words of a text: shapes that the lexer takes as one, positions, and work that grows with the text."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.ptx import PtxSyntaxError, parse
from cupola.cpu.compiler.ptx.lexer import Tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("add.s32 %r1,-4;", ["add.s32", "%r1", ",", "-4", ";"]),
        ("ld.shared::cta.b32 %r1, [%rd1 + -8];", ["ld.shared::cta.b32", "%r1", ",", "[%rd1 + -8]", ";"]),
        ("LOOP:mov", ["LOOP", ":", "mov"]),
        ("{a, _}", ["{", "a", ",", "_", "}"]),
        ("p|q", ["p", "|", "q"]),
        ("@!p", ["@", "!", "p"]),
        (".reg.b16 x<3>;", [".reg", ".b16", "x", "<", "3", ">", ";"]),
        (
            "0f3F800000 0d3FF0000000000000 1.5e-3 0x1Fu 7U",
            ["0f3F800000", "0d3FF0000000000000", "1.5e-3", "0x1F", "u", "7U"],
        ),
        ("a /* b */ c // d\ne", ["a", "c", "e"]),
        ('.file 1 "a b.cu"', [".file", "1", '"a b.cu"']),
        ("a<<2>=b", ["a", "<<", "2", ">=", "b"]),
        ("%tid.x %v.y", ["%tid.x", "%v.y"]),
        ("é#", ["é", "#"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    tokens = Tokens(text)
    assert tokens.words == [*words, "", ""]
    assert [text[tokens.start(i) : tokens.end(i)] for i in range(len(words))] == words


def test_positions() -> None:
    tokens = Tokens("a b\n  c /* \n\n */ d\n")
    assert [tokens.position(i) for i in range(5)] == [(1, 1), (1, 3), (2, 3), (4, 5), (5, 1)]
    assert [tokens.line(i) for i in range(4)] == [1, 1, 2, 4]


@pytest.mark.parametrize(
    "piece",
    [
        "/*",
        "/* */",
        '"',
        '"\n',
        " ",
        "\t\n",
        "//",
        "//\n",
        "[%r1",
        "[%r1+",
        "::",
        "a::",
        "0x",
        "0f",
        "1e",
        "-",
        ", -",
        "\\",
        '"\\',
    ]
    + [".a::", "%", "{", "é"],
)
def test_work_grows_with_the_text(piece: str) -> None:
    """However odd the text, it is read once: each character belongs to one token or to white space."""
    text = piece * 20_000
    tokens = Tokens(text)
    assert len(tokens.words) <= len(text) + 2
    ends = [tokens.end(i) for i in range(len(tokens.words) - 2)]
    starts = [tokens.start(i) for i in range(len(tokens.words) - 2)]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    with pytest.raises(PtxSyntaxError):
        parse(text)
