"""Every instruction states all that it does, and states nothing that its forms or the lowerings contradict."""

from __future__ import annotations

import itertools

import pytest

from cupola.cpu.compiler.emit import bodies, instructions
from cupola.cpu.compiler.emit.control import lowerings
from cupola.cpu.compiler.passes import uniformity
from cupola.cpu.compiler.passes.effects import OWN_OPERANDS
from cupola.cpu.compiler.ptx import grammar
from cupola.cpu.compiler.ptx.grammar import descriptions
from cupola.cpu.compiler.ptx.grammar.descriptions import Description

ROWS = [row for opcode in grammar.described() for row in grammar.descriptions_of(opcode)]
FORMS = [form for opcode in grammar.opcodes() for form in grammar.forms(opcode)]
EVERYBODY_COMES = {"setmaxnreg": "only a hint: registers are not counted here"}
"""Forms for all threads of a warp at which nobody waits, and why."""


def spellings(form: grammar.Form) -> set[tuple[str, ...]]:
    """Modifiers of the form, some of each group: those that rows ask for, and another one."""
    asked = {modifier for row in grammar.descriptions_of(form.opcode) for modifier in row.modifiers}
    choices = []
    for group in form.groups:
        some = sorted(group.choices & asked) + sorted(group.choices - asked)[:1]
        choices.append([(choice,) for choice in some] + [()] * group.optional)
    return {tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices)}


def rows_of(form: grammar.Form) -> set[Description]:
    return {grammar.description(form.opcode, modifiers) for modifiers in spellings(form)}


def test_there_is_a_row_for_every_opcode_and_none_for_others() -> None:
    assert set(grammar.described()) == {*grammar.opcodes(), *grammar.OWN_OPCODES}
    assert set(grammar.OWN_OPCODES) == OWN_OPERANDS.keys()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.syntax.partition(" ")[0])
def test_rows_fit_the_forms(form: grammar.Form) -> None:
    """Whoever names a place in memory says what happens there, and whoever has a result how lanes differ in it."""
    has_address = any(kind.address for kind in form.operands)
    has_result = any(kind.written for kind in form.operands)
    for row in rows_of(form):
        assert not has_address or row.memory != "none", row
        assert has_result == (row.lanes != "none"), row
        assert not row.writes_memory or row.loads == "stay", row
        assert row.waits == "no" or row.loads == "stay", row
        if "sync" in form.syntax.partition(" ")[0].split(".") and form.opcode not in EVERYBODY_COMES:
            assert row.suspends, row
        assert row.carry == (form.opcode in ("addc", "subc", "madc")), row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_for_some_form(row: Description) -> None:
    """A modifier that is misspelled, or a row that others take everything from, is found."""
    if row.opcode in grammar.OWN_OPCODES:
        return
    forms = [form for form in grammar.forms(row.opcode) if row in rows_of(form)]
    assert forms
    assert row.memory == "none" or any(kind.address for form in forms for kind in form.operands)


def test_every_word_for_lanes_has_its_rule() -> None:
    assert set(descriptions.COLUMNS["lanes"]) == uniformity.RULES.keys()
    assert {row.lanes for row in ROWS} == uniformity.RULES.keys()


def test_lowerings_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bodies.problem_with  # the module that registers them all is imported
    lowerings.require_all(instructions.opcodes())
    with pytest.raises(NotImplementedError, match=r"do not agree on xor$"):
        lowerings.require_all(instructions.opcodes() - {"xor"})
    with pytest.raises(NotImplementedError, match=r"do not agree on frobnicate$"):
        lowerings.require_all(instructions.opcodes() | {"frobnicate"})
    monkeypatch.delitem(lowerings.LOWERINGS, "sust")
    with pytest.raises(NotImplementedError, match=r"do not agree on sust$"):
        lowerings.require_all(instructions.opcodes())


@pytest.mark.parametrize(
    ("rows", "opcodes", "message"),
    [
        ("add values none pass no sum", ["add", "frob"], "what the instruction 'frob' does"),
        ("frob.sync own none stay warp none", ["frob"], "what the instruction 'frob' does"),
        ("frob own none stay no", ["frob"], "does not state all of lowered, memory, loads, waits, lanes"),
        ("frob own none may no none", ["frob"], "loads is one of pass, stay, not 'may'"),
        ("frob own none stay no none fast", ["frob"], "there is no flag fast"),
        ("frob refused none stay no none", ["frob"], "a refused instruction has a reason"),
        ("frob own none stay no none : because", ["frob"], "a refused instruction has a reason, and no other has"),
        ("frob own none stay no none\nfrob.sync own none stay no none", ["frob"], "is never reached"),
    ],
)
def test_what_is_not_stated_is_refused(rows: str, opcodes: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        descriptions.read(rows, opcodes)


def test_the_first_row_that_fits_is_the_instructions() -> None:
    found = descriptions.read("bar.warp meeting none stay warp none\nbar own none stay no none", ["bar"])
    assert [row.name for row in found["bar"]] == ["bar.warp", "bar"]
    assert grammar.description("bar", ("warp", "sync")).waits == "warp"
    assert grammar.description("bar", ("cta", "red", "popc", "u32")).lanes == "block"
    assert grammar.description("ld", ("acquire", "gpu", "global", "u32")).polls
    assert grammar.description("ld", ("global", "u32")).loads == "pass"
