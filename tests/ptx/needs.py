"""Which PTX and which targets instructions need, as NVIDIA's assembler answers: needs.txt, a file of probes.

A line of it is an instruction. The header above says from which version on which targets take it, written as in
`grammar.needs`: ``[8.8:100]`` for PTX 8.8 and sm_100 or later, ``[]`` for all, ``[never]`` for none.
`tools/record_ptx_needs.py` asks again about all lines, and about those that were added below any header.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from cupola.cpu.compiler.ptx.grammar.needs import TARGETS, Alternative, Target, Version, alternative

FILE = Path(__file__).with_name("needs.txt")
VERSIONS: tuple[Version, ...] = (
    *((6, minor) for minor in range(3, 6)),
    *((7, minor) for minor in range(9)),
    *((8, minor) for minor in range(9)),
    *((9, minor) for minor in range(6)),
)
"""Those that ptxas 13.5 knows and that have one of its targets."""

Answer = dict[str, Version]
"""Targets, and the first version in which they take an instruction."""

_HEAD = "# What ptxas {version} says of instructions; see needs.py.\n"


def read() -> list[tuple[str, Answer]]:
    """Every probe with its answer."""
    found: list[tuple[str, Answer]] = []
    answer: Answer = {}
    for line in FILE.read_text().splitlines():
        if line.startswith("["):
            words = line[1:-1].split()
            answer = {} if words == ["never"] else _spell_out([alternative(word) for word in words or ["0.0"]])
        elif line and line[0] != "#":
            found.append((line, answer))
    return found


def write(answers: Iterable[tuple[str, Answer]], version: str) -> None:
    """Write the file, instructions with the same answer together."""
    alike: dict[frozenset[tuple[str, Version]], list[str]] = {}
    for text, answer in answers:
        alike.setdefault(frozenset(answer.items()), []).append(text)
    groups = {_header(dict(answer)): texts for answer, texts in alike.items()}
    parts = [f"\n[{header}]\n" + "".join(f"{text}\n" for text in sorted(texts)) for header, texts in groups.items()]
    FILE.write_text(_HEAD.format(version=version) + "".join(sorted(parts)))


_WORDS = [
    f"{prefix}{target.removeprefix('sm_')}"
    for prefix in ("", *(f"{major}.{minor}:" for major, minor in VERSIONS))
    for target in TARGETS
]


def _fits(word: str, answer: Answer) -> bool:
    """Whether what a word says is so."""
    return all(answer.get(target, (99, 0)) <= first for target, first in _meaning(word).items())


def _says(word: str, left: Answer) -> int:
    """Of how many targets a word says all."""
    return sum(left[target] == first for target, first in _meaning(word).items() if target in left)


@cache
def _meaning(word: str) -> Answer:
    return _spell_out([alternative(word)])


def _spell_out(alternatives: list[Alternative]) -> Answer:
    answer: Answer = {}
    for name, first in TARGETS.items():
        for version in VERSIONS:
            if version >= first and any(each.holds(version, Target.of(name)) for each in alternatives):
                answer[name] = version
                break
    return answer


def _header(answer: Answer) -> str:
    """The shortest alternatives that say the same."""
    if not answer:
        return "never"
    words: list[str] = []
    left = dict(answer)
    while left:
        best = max(_WORDS, key=lambda word: (_fits(word, answer) and _says(word, left), "." not in word, -len(word)))
        if not _fits(best, answer) or not _says(best, left):
            raise ValueError(f"no words for {answer}")
        words.append(best)
        left = {target: first for target, first in left.items() if _meaning(best).get(target) != first}
    return " ".join(word.removesuffix(":75") for word in words if word != "75")
