"""Spellings from before 1.0 work, warn once, at the line that has them, and name the spelling of today."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

import cupola
from tests.reference.test_api import PTX, called

# What is written (`o` is the builder, event ... of its group), what the warning says, what comes, in Python again.
OLDER = [
    ("EventOptions(enable_timing=True)", "timing_enabled", "EventOptions(timing_enabled=True)"),
    ("EventOptions(busy_waited_sync=True)", "blocking_sync", "EventOptions(blocking_sync=True)"),
    ("device.create_event({'enable_timing': True}).is_timing_enabled", "timing_enabled", "True"),
    ("device.create_event(enable_timing=True).is_timing_enabled", "timing_enabled", "True"),
    ("stream.record(options={'busy_waited_sync': True}).is_blocking_sync", "blocking_sync", "True"),
    (
        "LaunchConfig(grid=1, block=1, cooperative_launch=True)",
        "is_cooperative",
        "LaunchConfig(grid=1, block=1, is_cooperative=True)",
    ),
    ("Linker(code, options=ARCH).backend", r"Linker\.which_backend\(\)", "Linker.which_backend()"),
    ("cupola.StridedMemoryView", r"cupola\.utils\.StridedMemoryView", "utils.StridedMemoryView"),
    (
        "cupola.args_viewable_as_strided_memory",
        r"cupola\.utils\.args_viewable_as_strided_memory",
        "utils.args_viewable_as_strided_memory",
    ),
    ("device.allocate(64, stream).size", "stream=", "64"),
    ("device.memory_resource.allocate(64, stream).size", "stream=", "64"),
    ("LegacyPinnedMemoryResource().allocate(64, stream).size", "stream=", "64"),
    ("buffer.copy_to(other, stream) is other", "stream=", "True"),
    ("buffer.copy_from(other, stream)", "stream=", "None"),
    ("buffer.fill(1, stream)", "stream=", "None"),
    ("graph.GraphDef", "GraphDefinition", "graph.GraphDefinition"),
    ("graph.Condition", "GraphCondition", "graph.GraphCondition"),
    ("graph.GraphAllocOptions(device=0).device", "allocate", "0"),
    ("definition.alloc(64).bytesize", "allocate", "64"),
    ("definition.record_event(event).event", "record", "event"),
    ("definition.wait_event(event).event", "wait", "event"),
    ("definition.callback(called).callback_fn", "callback", "called"),
    ("definition.debug_print(path)", "debug_dot_print", "None"),
    ("definition.allocate(64).options.device", "properties", "0"),
    ("builder.add_child(child)", "embed", "None"),
    ("type(builder.create_conditional_handle(0)).__name__", "create_condition", "'GraphCondition'"),
    ("type(builder.if_cond(builder.create_condition(0))).__name__", "if_then", "'GraphBuilder'"),
]

# Both spellings at once: which one would it be?
BOTH = [
    "EventOptions(enable_timing=True, timing_enabled=True)",
    "EventOptions(busy_waited_sync=False, blocking_sync=True)",
    "LaunchConfig(grid=1, block=1, cooperative_launch=True, is_cooperative=True)",
    "device.allocate(64, stream, stream=stream)",
    "device.memory_resource.allocate(64, stream, stream=stream)",
    "buffer.copy_to(other, stream, stream=stream)",
    "buffer.copy_from(other, stream, stream=stream)",
    "buffer.fill(1, stream, stream=stream)",
    "definition.allocate(64, options, device=0)",
]

# What cannot go on working says what is written today.
REFUSED = [
    ("kernel.attributes.num_regs()", TypeError, "not callable"),
    ("Program(PTX, 'ptx', ARCH).link('cubin')", AttributeError, r"compile\("),
]


@pytest.fixture
def names(device, stream, tmp_path):
    from cupola import graph, utils

    code = cupola.ObjectCode.from_ptx(PTX.encode(), name="increment")
    child = device.create_graph_builder().begin_building().end_building()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        options = graph.GraphAllocOptions(device=0)
    names: dict[str, Any] = {name: getattr(cupola, name) for name in cupola.__all__}
    names.update(
        cupola=cupola,
        graph=graph,
        utils=utils,
        PTX=PTX,
        ARCH={"arch": f"sm_{device.arch}"},
        device=device,
        stream=stream,
        event=stream.record(),
        code=code,
        kernel=code.get_kernel("increment"),
        config=cupola.LaunchConfig(grid=1, block=1),
        buffer=device.allocate(64, stream=stream),
        other=device.allocate(64, stream=stream),
        definition=graph.GraphDefinition(),
        builder=device.create_graph_builder().begin_building(),
        child=child,
        called=called,
        options=options,
        path=str(tmp_path / "graph.dot"),
    )
    yield names
    names["builder"].close()
    stream.sync()


@pytest.mark.parametrize(("written", "text", "same"), OLDER)
def test_older_spelling(names, written, text, same):
    source = compile(written, "the user's program", "eval")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = eval(source, names)
    assert [warning.category for warning in caught] == [DeprecationWarning]
    assert re.search(text, str(caught[0].message)), str(caught[0].message)
    assert caught[0].filename == "the user's program"
    assert found == eval(same, names)


@pytest.mark.parametrize("written", BOTH)
def test_both_spellings(names, written):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises(TypeError):
            eval(written, names)


@pytest.mark.parametrize(("written", "error", "text"), REFUSED)
def test_what_does_not_work_says_so(names, written, error, text):
    with pytest.raises(error, match=text):
        eval(written, names)
