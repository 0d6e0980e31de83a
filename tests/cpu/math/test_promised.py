"""The functions of the math libraries that programs may count on (promised.txt) are in the bindings and emulated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cupola.bindings import get_include
from cupola.cpu import _driver

TABLE = Path(__file__).with_name("promised.txt")
HEADERS = {"cublasLt": "cublaslt", "cusolverDn": "cusolver_dn"}  # the others have the library's name


def expanded(pattern: str) -> list[str]:
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [name for part in found[1].split(",") for name in expanded(pattern.replace(found[0], part, 1))]


def promised() -> dict[str, set[str]]:
    libraries: dict[str, set[str]] = {}
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            library, *patterns = line.split()
            names = libraries.setdefault(library, set())
            names |= {library + name for pattern in patterns for name in expanded(pattern)}
    return libraries


@pytest.mark.parametrize("library", promised())
def test_promised_functions_are_there(library: str) -> None:
    names = promised()[library]
    header = Path(get_include(), "cupola", f"{HEADERS.get(library, library)}.h").read_text()
    declared = set(re.findall(r"\(\*(\w+)\)\(", header))
    assert not names - declared, "no such functions"
    emulated = set(_driver.math_symbols())
    with_64_bits = {f"{name}_64" for name in names} & declared
    assert not (names | with_64_bits) - emulated
    assert len(names) > 15
