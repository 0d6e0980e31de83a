"""What may change in an executable graph is what an H200 with driver 580 lets change.

changes.txt is what ``python -m tests.cpu.driver.graph.changes`` printed there: nodes by parameters of their own, and by
an update of the whole graph, in executables for the host and for launches by kernels.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok
from tests.cpu.driver.graph import changes

RECORDED = Path(__file__).with_name("changes.txt").read_text()
PARTS = dict(re.findall(r"^# (\w+)\n((?:[^#\n].*\n)+)", RECORDED, re.M))


@pytest.fixture
def maker(context):
    made = changes.Changes(context)
    yield made
    made.close()


def test_every_part_is_recorded():
    assert list(PARTS) == [part.__name__ for part in changes.PARTS]


@pytest.mark.cpu_only
@pytest.mark.parametrize("part", changes.PARTS, ids=lambda part: part.__name__)
def test_answers(maker, part):
    part(maker)
    assert maker.lines == PARTS[part.__name__].splitlines()


# executable, what a node was, what it is given: what the error says
REASONS = [
    ("host", "plain", "launching graphs", "had none when it was instantiated"),
    ("device", "plain", "launching kernels", "launches kernels was given to a node whose first kernel does not"),
    ("host", "plain", "updating nodes", "updates nodes of graphs was given"),
    ("host", "copy device to device", "copy pinned to device", "between other kinds of memory"),
    ("device", "copy pinned to device", "copy pageable to device", "pageable memory"),
    ("host", "copy device to device", "copy of rows", "others cannot become copies of rows"),
    ("host", "fill of rows", "fill of more rows", "only the address and the value"),
    ("host", "child of kernel", "child of fill", "nodes and edges of the old one"),
]


@pytest.mark.cpu_only
@pytest.mark.parametrize(("how", "before", "after", "reason"), REASONS)
def test_the_error_says_what_cannot_change(maker, how, before, after, reason):
    graph, node = maker.graph_of(before)
    executable, _ = maker.instantiate(graph, changes.EXECUTABLES[how])
    assert reason in explanation(driver.cuGraphExecNodeSetParams(executable, node, maker.parameters(after, graph)))
    if not before.startswith("child"):
        assert reason in explanation(driver.cuGraphExecUpdate(executable, maker.graph_of(after)[0]))
    ok(driver.cuGraphExecDestroy(executable))
