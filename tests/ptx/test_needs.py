"""Each instruction is taken from the version and for the targets that NVIDIA's assembler takes it from (needs.txt)."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler import ptx
from cupola.cpu.compiler.ptx.grammar import needs
from cupola.cpu.compiler.ptx.grammar.needs import TARGETS, Target, Version
from cupola.cpu.compiler.ptx.names import SPECIAL_REGISTERS
from tests.ptx.needs import VERSIONS, Answer, read

BY_OPERANDS = {
    "cp.async.ca.shared.global [%r0], [%l0], 16, %p0",
    "mbarrier.arrive.shared.b64 _, [%r0]",
    "st.bulk.shared::cta [%r0], %r1, 0",
    "tcgen05.mma.cta_group::1.kind::f16 [%r0], %l0, %l1, %r1, %p0, 2",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%l0], 13",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [%l0], 15",
    "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%l0], 4",
    "tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}|%p0, [%l0, {%r4, %r5}]",
    "tld4.g.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}|%p0, [%l0, {%r4, %r5}]",
}
"""Newer for what an operand is, which the table does not know: these are taken for targets that lack them."""


def parts(text: str) -> tuple[str, tuple[str, ...], int]:
    """The opcode, modifiers and number of operands of a probe; the name of a special register that is moved."""
    head, _, operands = text.partition(" ")
    register = operands.split(", ")[-1].split(".")[0]
    if register in {name.split(".")[0] for name in SPECIAL_REGISTERS} or register.startswith("%locality"):
        return register, (), 0
    opcode, *modifiers = head.split(".")
    depth, count = 0, 1 if operands else 0
    for character in operands:
        depth += (character in "{[(") - (character in ")]}")
        count += character == "," and not depth
    return opcode, tuple(modifiers), count


def borders(answer: Answer) -> list[tuple[str, Version, bool]]:
    """For each target the newest version, that from which it has the instruction, and the one before."""
    found = []
    for target, first in TARGETS.items():
        own = [version for version in VERSIONS if version >= first]
        found.append((target, own[-1], target in answer))
        if target in answer:
            place = own.index(answer[target])
            found.append((target, own[place], True))
            if place:
                found.append((target, own[place - 1], False))
    return found


def test_versions_and_targets() -> None:
    known: dict[tuple[str, tuple[str, ...], int, str, Version], str] = {}
    wrong = []
    for text, answer in read():
        if answer and text not in BY_OPERANDS:
            what = parts(text)
            for target, version, is_taken in borders(answer):
                key = (*what, target, version)
                if key not in known:
                    known[key] = needs.unmet(*what, version, Target.of(target))
                if bool(known[key]) == is_taken:
                    wrong.append(f"{text}: ptxas {'takes' if is_taken else 'refuses'} it in {version} for {target}")
    assert not wrong, f"{len(wrong)} of grammar/needs.py are wrong:\n" + "\n".join(wrong[:20])


REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>;"


def module(version: str, target: str, text: str) -> str:
    return (
        f'.version {version}\n.target {target}\n.address_size 64\n.file 1 "kernel.cu"\n'
        f".visible .entry k() {{ {REGISTERS}\n.loc 1 7 3\n{text};\nret; }}"
    )


TAKEN = [
    ("8.8", "sm_100", "min.f32 %f0, %f1, %f2, %f3"),
    ("8.6", "sm_100a", "redux.sync.min.f32 %f0, %f1, 0xffffffff"),
    ("8.8", "sm_103f", "redux.sync.min.f32 %f0, %f1, 0xffffffff"),
    ("8.7", "sm_120", "add.rn.f32x2 %l0, %l1, %l2"),
    ("8.0", "sm_90a", "wgmma.fence.sync.aligned"),
    ("7.8", "sm_90", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1"),
    ("8.1", "sm_89", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1"),
    ("6.0", "sm_52", "add.u32 %r0, %r1, %r2"),
    ("9.9", "sm_90", "mov.u32 %r0, %clusterid.x"),
]


@pytest.mark.parametrize(("version", "target", "text"), TAKEN)
def test_taken(version: str, target: str, text: str) -> None:
    ptx.parse(module(version, target, text))


REFUSED = [
    ("8.7", "sm_90", "min.f32 %f0, %f1, %f2, %f3", "'min.f32' with 4 operands needs PTX 8.8 and sm_100"),
    ("8.7", "sm_100", "min.f32 %f0, %f1, %f2, %f3", "'min.f32' with 4 operands needs PTX 8.8 and sm_100"),
    ("9.0", "sm_100", "redux.sync.min.f32 %f0, %f1, -1", "'redux.sync.min.f32' needs PTX 8.6 and sm_100f"),
    ("9.0", "sm_120f", "redux.sync.min.f32 %f0, %f1, -1", "'redux.sync.min.f32' needs PTX 8.6 and sm_100f"),
    ("9.0", "sm_90a", "add.rn.f32x2 %l0, %l1, %l2", "'add.rn.f32x2' needs PTX 8.6 and sm_100"),
    ("9.0", "sm_90", "wgmma.fence.sync.aligned", "'wgmma.fence.sync.aligned' needs PTX 8.0 and sm_90a"),
    ("9.0", "sm_100a", "wgmma.fence.sync.aligned", "'wgmma.fence.sync.aligned' needs PTX 8.0 and sm_90a"),
    ("8.0", "sm_89", "cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1", "needs PTX 7.8 and sm_90 or PTX 8.1 and sm_89"),
    ("7.0", "sm_75", "cp.async.wait_all", "'cp.async.wait_all' needs PTX 7.0 and sm_80"),
    ("8.7", "sm_80", "mov.u32 %r0, %clusterid.x", "the register '%clusterid' needs PTX 7.8 and sm_90"),
]


@pytest.mark.parametrize(("version", "target", "text", "words"), REFUSED)
def test_refused(version: str, target: str, text: str, words: str) -> None:
    with pytest.raises(ptx.PtxSyntaxError) as caught:
        ptx.parse(module(version, target, text))
    said = str(caught.value)
    assert f"{words}, and this module is PTX {version} for {target} at PTX line 7, column " in said
    assert text.startswith("mov") or said.endswith(" (kernel.cu:7)")


def test_a_target_has_a_first_version() -> None:
    with pytest.raises(ptx.PtxSyntaxError) as caught:
        ptx.parse(module("8.0", "sm_100", "exit"))
    assert str(caught.value) == "the target 'sm_100' needs PTX 8.6, and this module is PTX 8.0 at PTX line 2, column 9"


UNKNOWN = {
    "fabric.submit": "it needs PTX 9.3 and sm_100, and the CPU device does not have it",
    "cvt.rn.ue5m3x2.f32 %h0, %f0, %f1": "it needs PTX 9.4 and sm_107f, and the CPU device does not have it",
    "mov.u32 %r0, %locality_domain_id": "needs PTX 9.5 and sm_100, and the CPU device does not have it",
    "min.foo.f16 %h0, %h1, %h2": "'min' has no modifier '.foo'",
    "frob.f16 %h0, %h1, %h2": "there is no opcode 'frob'",
}
"""What the CPU device does not have, whatever the module is for."""


@pytest.mark.parametrize("text", UNKNOWN)
def test_newer_than_the_cpu_device(text: str) -> None:
    with pytest.raises(ptx.PtxSyntaxError) as caught:
        ptx.parse(module("9.5", "sm_120a", text))
    assert f"{UNKNOWN[text]} at PTX line 7, column " in str(caught.value)


def test_a_form_that_was_taken_for_one_target_is_not_for_another() -> None:
    """The forms that were found to be right are kept, for each version and target."""
    text = "add.rn.f32x2 %l0, %l1, %l2"
    for _ in range(2):
        ptx.parse(module("8.6", "sm_100", text))
        with pytest.raises(ptx.PtxSyntaxError, match=r"needs PTX 8\.6 and sm_100"):
            ptx.parse(module("8.6", "sm_90", text))
