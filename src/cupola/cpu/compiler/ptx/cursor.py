"""A place in the list of words, and the small steps that all parts of the parser take from it."""

from __future__ import annotations

import struct
from typing import NoReturn

from cupola.cpu.compiler.ptx.errors import PtxSyntaxError
from cupola.cpu.compiler.ptx.lexer import Tokens


class Cursor:
    """Reads words front to back; ``index`` is the next one.

    Attributes
    ----------
    tokens : Tokens
    words : list of str
        ``tokens.words``.
    index : int
    """

    __slots__ = ("index", "tokens", "words")

    def __init__(self, tokens: Tokens, index: int = 0) -> None:
        self.tokens = tokens
        self.words = tokens.words
        self.index = index

    def fail(self, message: str, expected: str = "", at: int | None = None, source: str = "") -> NoReturn:
        """Raise `PtxSyntaxError` for the word at ``at`` (the next one)."""
        index = self.index if at is None else at
        line, column = self.tokens.position(index)
        raise PtxSyntaxError(message, line, column, self.words[index][:80], expected, source)

    def unexpected(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise `PtxSyntaxError`: something else than ``expected`` is there."""
        word = self.words[self.index if at is None else at]
        if word.startswith("/*"):
            self.fail("a comment has no end", "'*/'", at)
        self.fail(f"unexpected {word[:80]!r}" if word else "the text ends too early", expected, at)

    def accept(self, word: str) -> bool:
        """Step over ``word`` if it is next."""
        if self.words[self.index] == word:
            self.index += 1
            return True
        return False

    def expect(self, word: str) -> None:
        """Step over ``word``, which must be next."""
        if self.words[self.index] != word:
            self.unexpected(f"{word!r}")
        self.index += 1

    def take(self) -> str:
        """The next word, stepped over."""
        word = self.words[self.index]
        if word:
            self.index += 1
        return word

    def name(self, what: str = "a name") -> str:
        """The next word, which must be an identifier."""
        word = self.words[self.index]
        if not is_name(word):
            self.unexpected(what)
        self.index += 1
        return word

    def integer(self, what: str = "a whole number") -> int:
        """The next word, which must be a whole number without a sign."""
        value = parse_integer(self.words[self.index])
        if value is None:
            self.unexpected(what)
        self.index += 1
        return value


def is_name(word: str) -> bool:
    """Whether a word can be a name, and not a number, directive, opcode or punctuation."""
    return bool(word) and (word[0].isalpha() or word[0] in "_$%") and "." not in word and word != "%"


def parse_integer(word: str) -> int | None:
    """The value of an integer literal (PTX ISA 4.5.1), or None."""
    digits = word[:-1] if word.endswith("U") else word
    if not digits[:1].isdigit() or len(digits) > 80:
        return None
    try:
        if digits[0] == "0" and len(digits) > 1:
            return int(digits, 0) if digits[1] in "xXbB" else int(digits, 8)
        return int(digits)
    except ValueError:
        return None


def parse_float(word: str) -> tuple[int, str] | None:
    """The IEEE bits and the kind (``"f32"``, ``"f64"``) of a floating-point literal (PTX ISA 4.5.2), or None."""
    prefix = word[:2].lower()
    try:
        if prefix == "0f" and len(word) == 10:
            return int(word[2:], 16), "f32"
        if prefix == "0d" and len(word) == 18:
            return int(word[2:], 16), "f64"
        if word[:1].isdigit() and (("." in word) or ("e" in word.lower() and "x" not in word.lower())):
            return struct.unpack("<Q", struct.pack("<d", float(word)))[0], "f64"
    except ValueError:
        return None
    return None
