"""The functions of the device runtime that the driver carries out: the compiler's list, the engine's, and their PTX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.frontend import ParsedModule
from cupola.cpu.compiler.objects import device_calls
from cupola.cpu.compiler.objects.device_calls import FUNCTIONS, SPELLINGS, WORDS, asked

CPU = Path(__file__).resolve().parents[4] / "src" / "cupola" / "cpu"  # an installed package has no C


def constants() -> list[str]:
    """What the engine calls them, in the order of its enumeration."""
    text = (CPU / "engine" / "device_calls.h").read_text()
    body = text[text.index("enum cpu_device_function {") :]
    return re.findall(r"CPU_DEVICE_(\w+),", body[: body.index("}")])


def test_the_engine_has_the_same_list():
    assert [name.replace("_", "") for name in constants()] == [name.upper() for name in FUNCTIONS]


def test_the_driver_takes_as_many_words():
    text = (CPU / "driver" / "device_side" / "answer.c").read_text()
    found = re.findall(r"\[CPU_DEVICE_(\w+)\] =\s*\{answer_(\w+),\s*(\d+)\}", text)
    assert [(constant, int(count)) for constant, _, count in found] == [
        (constant, function.words) for constant, function in zip(constants(), FUNCTIONS.values(), strict=True)
    ]
    assert [answer for _, answer, _ in found] == list(FUNCTIONS)


@pytest.fixture(scope="module")
def functions():
    return ptx.parse(".version 8.0\n.target sm_90\n.address_size 64\n" + device_calls.as_ptx()).functions


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_is_ptx_that_asks_the_driver(functions, spelling):
    function, named = functions[spelling], FUNCTIONS[SPELLINGS[spelling]]
    sizes = [sum(4 if word == "u32" else 8 for word in WORDS[type]) for type in named.parameters]
    assert [parameter.size for parameter in function.parameters] == sizes
    calls = [s for s in function.body if isinstance(s, ptx.ast.Instruction) and s.opcode == "call"]
    assert [call.operands[1].name for call in calls] == [asked(SPELLINGS[spelling])]


def test_a_call_by_such_a_name_with_too_few_arguments_is_refused():
    """The driver would read words that nobody has written."""
    text = """
        .version 8.0
        .target sm_90
        .address_size 64
        .extern .func (.param .b64 answer) cupola_asks_LaunchDevice();
        .visible .entry k() {
            .reg .b64 %r;
            { .param .b64 answer; call.uni (answer), cupola_asks_LaunchDevice; ld.param.b64 %r, [answer]; }
            ret;
        }
    """
    with pytest.raises(ImageError, match="'cupola_asks_LaunchDevice' does not take 0 arguments"):
        ParsedModule(text, {})
