"""What a GPU left in the outputs of the forms, kept as text, and how results are compared with it.

`recorded/<family>.txt` has a line for each form: digest of the form with its inputs, results (compressed, base 85), and
the form itself for those who read. A form whose line or inputs changed has another digest and counts as not recorded.
"""

from __future__ import annotations

import base64
import zlib
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from pathlib import Path

from tests.ptx.device_forms import Outputs, input_rows
from tests.ptx.forms import Form
from tests.ptx.inputs import SETS, Set

FOLDER = Path(__file__).with_name("recorded")
PENDING = FOLDER / "pending.txt"
RECIPE = 1
"""To be counted up when the kernels around the forms change such that results do."""


def digest(form: Form) -> str:
    """Twelve hexadecimal digits for a form and its inputs."""
    hashed = blake2b(f"{RECIPE}\n{form.whole}\n".encode(), digest_size=6)
    for row in input_rows(form):
        hashed.update(repr(list(row.values())).encode())
    return hashed.hexdigest()


def _path(family: str) -> Path:
    return FOLDER / f"{family}.txt"


@cache
def _recorded(family: str) -> dict[str, str]:
    """Packed results by digest."""
    if not _path(family).exists():
        return {}
    lines = (line.split(" ", 2) for line in _path(family).read_text().splitlines())
    return {digest: packed for digest, packed, _ in lines}


def pending_families() -> list[str]:
    """Families some of whose forms may still lack a recording."""
    return [line for line in PENDING.read_text().split() if line] if PENDING.exists() else []


def _widths(form: Form) -> list[int]:
    return [-(-SETS[form.registers[name]].bits // 8) for name in form.outputs]


def pack(form: Form, outputs: Outputs) -> str:
    raw = b"".join(
        value.to_bytes(width, "little")
        for width, column in zip(_widths(form), outputs, strict=True)
        for value in column
    )
    return base64.b85encode(zlib.compress(raw, 9)).decode()


def unpack(form: Form, packed: str) -> Outputs:
    raw = zlib.decompress(base64.b85decode(packed))
    outputs: Outputs = []
    for width in _widths(form):
        column, raw = raw[: width * form.threads], raw[width * form.threads :]
        outputs.append([int.from_bytes(column[i : i + width], "little") for i in range(0, len(column), width)])
    return outputs


def recorded(form: Form) -> Outputs | None:
    """What the GPU left; None when the form was not recorded."""
    packed = _recorded(form.family).get(digest(form))
    return None if packed is None else unpack(form, packed)


def write(folder: Path, family: str, results: dict[str, tuple[Form, str]]) -> None:
    """Write the recording of a family, given by digest."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{key} {packed} {form.line}\n" for key, (form, packed) in results.items()]
    (folder / f"{family}.txt").write_text("".join(lines))


def already_packed(form: Form) -> str | None:
    """The results as they are in the file."""
    return _recorded(form.family).get(digest(form))


def difference(form: Form, found: Outputs, expected: Outputs) -> str | None:
    """The first row whose results are not those recorded, in words."""
    for index, name in enumerate(form.outputs):
        given = SETS[form.registers[name]]
        wrong = [
            row
            for row, (a, b) in enumerate(zip(found[index], expected[index], strict=True))
            if a != b and not _close(form, given, a, b)
        ]
        if wrong:
            row = wrong[0]
            inputs = ", ".join(f"%{key} = {value:#x}" for key, value in input_rows(form)[row].items())
            return (
                f"{form.line}: row {row}: %{name} is {found[index][row]:#x}, the GPU has {expected[index][row]:#x}"
                f" ({inputs or 'no inputs'}); {len(wrong)} of {form.threads} rows differ"
            )
    return None


def _close(form: Form, given: Set, found: int, expected: int) -> bool:
    """Whether two results that differ count as the same."""
    if given.format is None:
        return False
    width = given.bits // given.lanes
    mask = (1 << width) - 1
    return all(
        _numbers_close(form, given, found >> i * width & mask, expected >> i * width & mask) for i in range(given.lanes)
    )


def _numbers_close(form: Form, given: Set, found: int, expected: int) -> bool:
    """NaNs are alike. Both sides may be off by the ISA's bound, so that they are twice the bound apart."""
    f = given.format
    assert f is not None
    if found == expected or f.is_nan(found) and f.is_nan(expected):
        return True
    if f.is_nan(found) or f.is_nan(expected) or f.is_infinite(found) or f.is_infinite(expected):
        return False
    a, b = f.value(found), f.value(expected)
    allowed = Fraction(0)
    if "error" in form.options:
        allowed = max(allowed, Fraction(form.options["error"]) * max(abs(b), Fraction(2) ** (1 - f.bias)))
    if "absolute" in form.options:
        allowed = max(allowed, Fraction(form.options["absolute"]))
    if "ulp" in form.options:
        allowed = max(allowed, Fraction(form.options["ulp"]) * _ulp(f, b))
    return abs(a - b) <= 2 * allowed


def _ulp(f, value: Fraction) -> Fraction:
    """The distance of neighboring numbers of a format at a value."""
    pattern = f.round(abs(value))
    if pattern >= f.infinity - 1:
        pattern = f.infinity - 2
    return f.value(pattern + 1) - f.value(pattern)
