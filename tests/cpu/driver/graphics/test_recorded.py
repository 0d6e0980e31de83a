"""The functions of graphics interop answer as those of an H200 with driver 580 do, apart from what differs on purpose.

recorded.txt is what ``python -m tests.cpu.driver.graphics.facts`` printed there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cpu.driver.graphics import facts

RECORDED = Path(__file__).with_name("recorded.txt").read_text()
PARTS = dict(re.findall(r"^# (\w+)\n((?:[^#\n].*\n)+)", RECORDED, re.M))

# What differs: the line here, and why.
DIFFERENCES = {
    "unregister twice: INVALID_HANDLE": "the GPU's driver looks at memory that it has freed",
    "map what was unregistered: INVALID_HANDLE": "likewise",
    "register a 3D texture as 2D: INVALID_VALUE": "OpenGL cannot bind it so",
    "three levels: level 3: CUDA_ERROR_INVALID_VALUE": "there are three levels; the GPU's driver shows memory",
    "  level 3: INVALID_VALUE": "likewise",
    "  RANGE_SIZE: ['100']": "memory is as large as the buffer, so that accesses behind it are found",
    "  address range: CUDA_SUCCESS offset 0 100 bytes": "likewise",
    "  a byte behind the end: INVALID_VALUE": "likewise",
    "another context of OpenGL is current: map: INVALID_GRAPHICS_CONTEXT": "copies need the context",
    "  unmap: NOT_MAPPED": "likewise",
}


def test_every_part_is_recorded():
    assert list(PARTS) == [part.__name__ for part in facts.PARTS]


@pytest.mark.cpu_only
@pytest.mark.parametrize("part", facts.PARTS, ids=lambda part: part.__name__)
def test_answers(gl, part):
    found = facts.Facts(gl)
    part(found)
    recorded = PARTS[part.__name__].splitlines()
    assert len(found.lines) == len(recorded)
    differing = [(mine, theirs) for mine, theirs in zip(found.lines, recorded, strict=True) if mine != theirs]
    assert [mine for mine, _ in differing if mine not in DIFFERENCES] == []
