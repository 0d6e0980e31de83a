"""The tables of recorded forms themselves: how they are read, compared and kept; and NVIDIA's assembler takes all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ptx import forms, recording
from tests.ptx.assembler import refused
from tests.ptx.forms import Form, computed_families, families
from tests.ptx.inputs import SETS, rows
from tests.ptx.programs import kernel


def read(line: str) -> list[Form]:
    return [forms._parse("example", text, {"VALUES": "{%d[2]:b32}"}) for text in forms._expand(line)]


@pytest.mark.parametrize("family", [*families(), *computed_families()])
def test_nvidias_assembler_takes_every_form(family: str) -> None:
    assert refused(forms.forms(family)) == {}


def test_the_documentation_says_how_many_there_are() -> None:
    count = sum(len(forms.forms(family)) for family in families())
    page = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
    assert f"All {count:,} forms are recorded" in page.read_text()


def test_alternatives() -> None:
    lines = [form.line for form in read("add<.rn|.rz>.<T=f32|f64> %d:<T:b32|b64>, %a:<T>, 1")]
    assert lines == [
        "add.rn.f32 %d:b32, %a:f32, 1",
        "add.rn.f64 %d:b64, %a:f64, 1",
        "add.rz.f32 %d:b32, %a:f32, 1",
        "add.rz.f64 %d:b64, %a:f64, 1",
    ]


def test_rows_of_registers_and_short_names() -> None:
    (form,) = read("x $VALUES, {%in[3]:f32}")
    assert form.outputs == ["d0", "d1"] and form.inputs == ["in0", "in1", "in2"]
    with pytest.raises(ValueError, match="OTHERS is not defined above"):
        read("x $OTHERS")


def test_registers_and_options() -> None:
    (form,) = read(
        "shfl.sync.up.b32 %t:b32|%d:pred, %io:b32, %lane:lane, 0, -1; ex %x, %t   //  error=2**-3 block=64 grid=2"
    )
    assert form.inputs == ["io", "lane"] and form.outputs == ["d", "io"]
    assert form.options == {"error": 0.125, "block": 64, "grid": 2} and form.threads == 128
    assert form.code == "shfl.sync.up.b32 %t|%d, %io, %lane, 0, -1; ex %x, %t"
    assert ".maxntid 64, 1, 1" in kernel(form)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("add %d:int, 1", "no type or set"),
        ("add %d:b32, %d:b64", "two types"),
        ("add %in:b32", "is taken"),
        ("add %d:b32 // bound=3", "no option"),
        ("add.<T=a|b> <U:x|y>", "does not fit"),
        ("add.<T=a|b> <T:x>", "does not fit"),
    ],
)
def test_mistakes(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read(line)


def test_a_mistake_is_reported_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some.txt").write_text("# fine\nadd.u32 %d:b32, 1\n    , 2\nadd %d:int, 1\n")
    monkeypatch.setattr(forms, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"some\.txt:4: there is no type"):
        forms.forms.__wrapped__("some")


@pytest.mark.parametrize("name", SETS)
def test_sets_fit_their_registers(name: str) -> None:
    values = [row["a"] for row in rows({"a": name}, 500)]
    assert all(0 <= value < 1 << SETS[name].bits for value in values)
    assert len(set(values)) > 1
    assert values == [row["a"] for row in rows({"a": name}, 500)]


def test_recordings_are_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (form,) = read("x %d0:b16, %d1:b128, %d2:pred, %a:u32")
    outputs = [[i * 3 for i in range(128)], [i << 100 for i in range(128)], [i & 1 for i in range(128)]]
    monkeypatch.setattr(recording, "FOLDER", tmp_path)
    recording._recorded.cache_clear()
    assert recording.recorded(form) is None
    recording.write(tmp_path, "example", {recording.digest(form): (form, recording.pack(form, outputs))})
    recording._recorded.cache_clear()
    assert recording.recorded(form) == outputs
    (other,) = read("x %d0:b16, %d1:b128, %d2:pred, %a:s32")
    assert recording.recorded(other) is None
    recording._recorded.cache_clear()


ONE, NEXT = 0x3F800000, 0x3F800001


@pytest.mark.parametrize(
    ("line", "found", "expected", "same"),
    [
        ("x %d:b32", ONE, NEXT, False),
        ("x %d:f32", ONE, NEXT, False),
        ("x %d:f32", 0x7FC00000, 0xFF812345, True),
        ("x %d:b32", 0x7FC00000, 0xFF812345, False),
        ("x %d:f32 // ulp=1", ONE, NEXT + 1, True),  # each side may be off by one
        ("x %d:f32 // ulp=1", ONE, NEXT + 2, False),
        ("x %d:f32 // error=2**-22", ONE, NEXT + 3, True),
        ("x %d:f32 // error=2**-22", ONE, NEXT + 4, False),
        ("x %d:f32 // absolute=0.5", ONE, 0x40000000, True),
        ("x %d:f32 // absolute=0.4", ONE, 0x40000000, False),
        ("x %d:f32 // ulp=100", 0x7F800000, 0x7F7FFFFF, False),
        ("x %d:f32 // ulp=100", 0x7FC00000, ONE, False),
        ("x %d:f16x2 // ulp=1", 0x3C003C00, 0x3C013C02, True),
        ("x %d:f16x2 // ulp=1", 0x3C003C00, 0x3C033C00, False),
    ],
)
def test_comparison(line: str, found: int, expected: int, same: bool) -> None:
    (form,) = read(line)
    column = [expected] * form.threads
    changed = [*column[:7], found, *column[8:]]
    said = recording.difference(form, [changed], [column])
    assert (said is None) == same
    assert same or "row 7: %d is " + hex(found) in str(said) and "1 of 128 rows differ" in str(said)
