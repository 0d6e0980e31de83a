"""Words of a PTX text (PTX ISA 4.1 to 4.5).

One regular expression takes the text apart. Its quantifiers are possessive, so a text is read once from
front to back whatever it holds; what is no PTX becomes a one-character token that the parser refuses. The outermost one
is not, because Python before 3.11.5 gives back what such a group of alternatives has matched; nothing behind it fails.

Three shapes that are several words to the PTX ISA are one token here, because nearly all operands have them
and the parser can then look an operand up by its text: an opcode with all its modifiers (``ld.global.u32``), an
address ``[%rd1+4]``, and a negative number after a comma.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_TOKEN = re.compile(
    r"""
    (?: \s++ | //[^\n]*+ | /\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/ )*  # white space and comments
    (
      [A-Za-z_$%][\w$.]*+ (?: ::\w[\w$.]*+ )*+               # names, opcodes with modifiers
    | \.[\w$]*+ (?: ::\w++ )*+                              # directives, types of a declaration
    | [,;]
    | \[ [ \t]*+ [A-Za-z_$%][\w$]*+ [ \t]*+ (?: \+ [ \t]*+ -? \d\w*+ [ \t]*+ )?+ \]
    | (?:(?<=,)|(?<=,\ )) - \d++ (?![\w.])
    | 0[fF][0-9a-fA-F]{8}(?!\w) | 0[dD][0-9a-fA-F]{16}(?!\w)
    | 0[xX][0-9a-fA-F]++U?+ | 0[bB][01]++U?+
    | \d++ (?: \.\d*+ (?: [eE][-+]?\d++ )?+ | [eE][-+]?\d++ | U?+ )
    | " (?: [^"\\\n] | \\. )*+ "?+
    | << | >> | <= | >= | == | != | && | \|\|
    | /\*(?s:.*+)                                            # a comment that never ends
    | (?s:.)
    | \Z                                                     # nothing but white space is left
    )
    """,
    re.VERBOSE | re.ASCII,
)


_STRUCTURE = re.compile(r'[{}]|"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/')


class Tokens:
    """The words of a text, and where each one stands.

    ``words`` ends with two empty strings, so that looking one word ahead never leaves the list.

    Parameters
    ----------
    text : str
    pieces : list of (int, int), optional
        The parts of the text to read, from front to back; all of it by default.
    whole : Tokens, optional
        Of the same text, whose lines are known.
    """

    __slots__ = ("_lines", "_matches", "text", "words")

    def __init__(self, text: str, pieces: list[tuple[int, int]] | None = None, whole: Tokens | None = None) -> None:
        self.text = text
        self._matches: list[re.Match[str]] = []
        for start, end in pieces or [(0, len(text))]:
            self._matches += _TOKEN.finditer(text, start, end)
            while self._matches and not self._matches[-1][1]:
                self._matches.pop()
        self.words = [match[1] for match in self._matches]
        self.words += ("", "")
        self._lines: list[int] | None = whole.line_starts() if whole else None

    def start(self, index: int) -> int:
        """Offset of a word in the text."""
        return self._matches[index].start(1) if index < len(self._matches) else len(self.text)

    def end(self, index: int) -> int:
        """Offset just behind a word."""
        return self._matches[index].end(1) if index < len(self._matches) else len(self.text)

    def line_starts(self) -> list[int]:
        if self._lines is None:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return self._lines

    def line(self, index: int) -> int:
        """The line of a word, from 1."""
        return bisect_right(self.line_starts(), self.start(index))

    def position(self, index: int) -> tuple[int, int]:
        """Line and column of a word, from 1."""
        start = self.start(index)
        line = bisect_right(self.line_starts(), start)
        return line, start - self.line_starts()[line - 1] + 1


def kernel_bodies(text: str) -> list[tuple[int, int]]:
    """Where the bodies of kernels seem to begin and end, between the braces, found without reading their words.

    A brace opens the body of a kernel if ``.entry`` stands before it in the same statement. Where that is in a
    comment, the parser comes to no body.
    """
    found = []
    depth = start = last = 0
    for match in _STRUCTURE.finditer(text):
        brace = match[0]
        if brace == "{":
            depth += 1
            if depth == 1:
                start = match.end()
        elif brace == "}":
            depth -= 1
            if depth == 0:
                entry = text.rfind(".entry", last, start)
                if entry >= 0 and text.find(";", entry, start) < 0:
                    found.append((start, match.start()))
                last = match.end()
    return found if not depth else []
