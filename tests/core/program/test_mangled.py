"""What mangled names tell of the parameters of kernels."""

from __future__ import annotations

import random

import pytest

from cupola.core.program._mangled import OTHER, SIGNED, UNSIGNED, signs_of, types_of

LETTERS = {"s": SIGNED, "u": UNSIGNED, "-": OTHER}

# Name, and a letter for each parameter; None where the name does not tell.
NAMES = [
    ("saxpy", None),
    ("_Z1fv", ""),
    ("_Z5saxpyPi", "-"),
    ("_Z1fij", "su"),
    ("_Z1fahstijlmxyno", "susususususu"),
    ("_Z1fbcwfde", "------"),
    ("_ZL1fi", "s"),
    ("_ZN12_GLOBAL__N_11kEl", "s"),
    ("_ZN2ns5inner1fEji", "us"),
    ("_Z1fPKfRKim", "--u"),
    ("_Z1fPFviEj", "-u"),
    ("_Z1fPA4_ij", "-u"),
    ("_Z1fP6float2i", "-s"),
    ("_Z1fN3foo3barEiS0_j", "-s-u"),
    ("_Z1f4PairiS_j", "-s-u"),
    ("_Z4keepIiEvPT_S0_", "-s"),
    ("_Z4keepIjEvPT_S0_", "-u"),
    ("_Z4keepIfEvPT_S0_i", "--s"),
    ("_Z4keepI4PairEvPT_S1_i", "--s"),
    ("_Z1fIiLi3EEvT_j", "su"),
    ("_Z1fILb1EiEvT0_y", "su"),
    ("_ZN2ns1fIiEEvT_NS_1sEh", "s-u"),
    ("_Z1fSt6vectorIiSaIiEEi", "-s"),
    ("_Z1fN2ns3boxIiEES1_j", "--u"),
    ("_Z1fDF16_Dhi", "--s"),
    ("_Z1fIJiiEEvDpT_", None),  # packs
    ("_Z1fIXadL_Z1gvEEEvi", None),  # functions as arguments of templates
    ("_Z", None),
    ("_Z9short", None),
    ("_Z1fS9_", None),
    ("_Z1fT_", None),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_signs(name, expected):
    assert signs_of(name) == (None if expected is None else [LETTERS[letter] for letter in expected])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_Z1fPfPKdPjPVxPv", ["Pf", "Pd", "Pj", "Px", "Pv"]),
        ("_Z1fPPfRfP6float2", ["", "", ""]),
        ("_Z1fP6__halfPK13__nv_bfloat16S0_", ["PH", "PB", "PH"]),
        ("_Z4keepIfEvPT_S0_", ["Pf", "f"]),
        ("_Z1fv", []),
    ],
)
def test_pointers(name, expected):
    assert types_of(name) == expected


def test_no_name_is_an_error():
    """Names come from code that anybody made."""
    source = random.Random(3)
    names = [name for name, _ in NAMES] + ["_Z1f" + "P" * 5000 + "i", "_Z1f" + "N" * 5000, "_Z1fI" + "L" * 99]
    for _ in range(20_000):
        letters = list(source.choice(names[:-3]))
        for _ in range(source.randrange(1, 4)):
            letters[source.randrange(len(letters))] = source.choice("_ZNSTIELJPKRFAi0123456789ftD.")
        names.append("".join(letters))
    for name in names:
        signs = signs_of(name)
        assert signs is None or set(signs) <= {SIGNED, UNSIGNED, OTHER}
