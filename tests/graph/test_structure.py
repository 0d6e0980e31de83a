"""Executables are closed on one thread while another uses the definition that they were made of.

The driver does not lock graphs: on an H200 each of these crashed the process when the calls overlapped.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest

from cupola.graph import GraphDefinition
from tests import limits
from tests.graph.helpers import wait_until


class Callback:
    """A callable that can be watched."""

    def __call__(self) -> None:
        pass


def instantiate(definition: GraphDefinition) -> None:
    definition.instantiate()


def add_and_destroy(definition: GraphDefinition) -> None:
    definition.callback(Callback()).destroy()


def add_an_edge(definition: GraphDefinition) -> None:
    first, second = definition.callback(Callback()), definition.callback(Callback())
    second.pred.add(first)
    second.destroy()
    first.destroy()


def embed(definition: GraphDefinition) -> None:
    GraphDefinition().embed(definition)


def embed_into(definition: GraphDefinition) -> None:
    child = GraphDefinition()
    child.callback(Callback())
    definition.embed(child).destroy()


@pytest.fixture
def _quick_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_quick_turns")
@pytest.mark.parametrize("use", [instantiate, add_and_destroy, add_an_edge, embed, embed_into])
@pytest.mark.parametrize("how", ["closed", "collected"])
def test_executables_go_while_the_definition_is_used(device, use, how):
    definition, callback = GraphDefinition(), Callback()
    definition.callback(callback)
    watched = weakref.ref(callback)
    executables = [definition.instantiate() for _ in range(300)]
    del callback
    over, errors = threading.Event(), []

    def go_on(definition: GraphDefinition) -> None:
        try:
            device.set_current()
            while not over.is_set():
                use(definition)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=go_on, args=(definition,))
    thread.start()
    while executables:
        executable = executables.pop()
        if how == "closed":
            executable.close()
            assert executable.is_closed
        del executable
    over.set()
    thread.join()
    assert not errors
    del definition, thread

    def gone() -> bool:
        gc.collect()
        return watched() is None

    assert wait_until(gone)


def test_two_definitions_are_embedded_in_each_other(device):
    """Each thread needs the locks of both."""
    one, two = GraphDefinition(), GraphDefinition()
    one.callback(Callback())
    two.callback(Callback())
    errors = []

    def use(outer: GraphDefinition, inner: GraphDefinition) -> None:
        try:
            device.set_current()
            for _ in range(200):
                outer.embed(inner).destroy()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=pair, daemon=True) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    limits.join(*threads)
    assert not errors
