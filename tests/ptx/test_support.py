"""docs/ptx-support.md tells the truth: what it calls supported is tested, what it calls missing is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.modules import load_image
from cupola.cpu.compiler.ptx import grammar
from cupola.cpu.compiler.ptx.names import SPECIAL_REGISTERS
from tests.ptx import support
from tests.ptx.support import REGISTERS, example, listed, rows

ROOT = Path(__file__).resolve().parents[2]


def test_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "ptx-support.md").read_text()
    assert page == support.page(), "run tools/ptx_support.py write"


@pytest.mark.parametrize(
    "number", range(len(listed())), ids=[f"{row.section} {row.name}" for row in listed()]
)  # without the forms, which each worker would read when it collects tests
def test_row(number: int) -> None:
    row = rows()[number]
    assert row.forms or row.tests or row.missing, (
        f"nothing is known about {row.name}: add a form to tests/ptx/forms, or a line to isa.toml"
    )
    for path in row.tests:
        text = (ROOT / path).read_text()
        assert re.search(rf"\b{row.name.split('.')[0]}\b", text), f"{path} has nothing of {row.name}"
    for text, words in row.missing:
        assert words or row.status == "no", f"say in isa.toml what of {row.name} is missing"
        name = text.split(" ")[0]
        try:
            load_image(example(text).encode())
        except ImageError as error:
            said, status = str(error), error.status
        else:
            pytest.fail(
                f"{name!r} is not refused any more: take it out of [missing] in tests/ptx/isa.toml, add forms of it to "
                "tests/ptx/forms, and run tools/ptx_support.py write"
            )
        assert name in said and "PTX line 3" in said and "example.cu:7" in said, said
        assert status == "CUDA_ERROR_INVALID_PTX"


def test_every_opcode_of_the_grammar_is_in_the_list() -> None:
    listed = {row.name.split(".")[0] for row in rows()}
    assert listed == set(grammar.opcodes())


VECTORS = {name[:-2] for name in SPECIAL_REGISTERS if name.endswith(".x")}


@pytest.mark.parametrize("name", sorted(SPECIAL_REGISTERS - VECTORS))
def test_special_register_can_be_read(name: str) -> None:
    if name == "%is_explicit_cluster":
        move = f"mov.pred %p0, {name}; selp.u32 %r0, 1, 0, %p0"
    elif name.endswith("64") or name in ("%globaltimer", "%current_graph_exec"):
        move = f"mov.u64 %l0, {name}; cvt.u32.u64 %r0, %l0"
    else:
        move = f"mov.u32 %r0, {name}"
    text = f".version 8.7 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) {{ {REGISTERS} {move}; "
    text += "ld.param.u64 %l1, [out]; st.global.u32 [%l1], %r0; ret; }"
    load_image(text.encode()).compile(0, (32, 1, 1))
