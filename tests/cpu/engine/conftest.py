"""Every way in which the CPU device can run a kernel. Each run of the tests has two of them (tests/turns.py)."""

from __future__ import annotations

import functools

import pytest

OTHERS = ("scalar", "narrow", "independent", "large")


@pytest.fixture(
    params=[
        "chosen",
        *(
            pytest.param(way, marks=[pytest.mark.cpu_only, pytest.mark.turn(number, of=len(OTHERS))])
            for number, way in enumerate(OTHERS)
        ),
    ]
)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have kernels compiled as the device chooses (the only way on a GPU), or in one particular way.

    Add the name to the source, so that kernels of different engines are different ones.
    """
    way: str = request.param
    if way == "chosen":
        return "// chosen"
    from cupola.cpu.compiler import modules
    from cupola.cpu.compiler.emit import bodies
    from cupola.cpu.compiler.emit.threads.shape import Shape, choose_shape
    from cupola.cpu.compiler.objects import machine, recall

    def narrow(block: tuple[int, int, int], *, whole_warps: bool, walkers: int, largest_compared: int) -> Shape:
        if whole_warps:  # its threads meet, or an instrument looks at warps: units are warps then, always
            return choose_shape(block, whole_warps=True, walkers=walkers, largest_compared=largest_compared)
        width = {"scalar": 1, "narrow": 4}[way]
        threads = block[0] * block[1] * block[2]
        one_row = threads == block[0]
        return Shape(width, one_row or block[0] % width == 0, threads % width == 0)

    monkeypatch.setattr(recall, "enabled", False)
    if way == "large":
        monkeypatch.setattr(bodies, "LARGE_STATEMENTS", -1)
        monkeypatch.setattr(machine, "LARGE", 0)
        monkeypatch.setattr(machine, "HUGE", 0)
    elif way == "independent":
        monkeypatch.setattr(bodies, "emit_body", functools.partial(bodies.emit_body, independent=True))
    else:
        monkeypatch.setattr(modules, "choose_shape", narrow)
    return f"// {way}"
