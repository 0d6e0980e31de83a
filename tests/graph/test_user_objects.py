"""Who keeps what graphs need: definitions do through the driver, so that raw copies have it, and executables do not."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import pytest

from cupola import CUDAError, Program
from cupola.bindings import driver
from cupola.graph import GraphDefinition
from tests import limits
from tests.graph.helpers import ONE, SOURCE, Resource, run, wait_until

PROGRAMS = Path(__file__).with_name("programs")


def ok(result):
    """What a call of the driver returned besides its status, which must be CUDA_SUCCESS."""
    assert int(result[0]) == 0, result[0]
    return result[1] if len(result) == 2 else result[1:]


def collected(reference: weakref.ref) -> bool:
    def gone() -> bool:
        gc.collect()
        return reference() is None

    return wait_until(gone)


class Callback:
    """A callable that can be watched."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


class Needs:
    """A kernel, an event, a callback and two buffers, used by the nodes that `fill` makes, and watched."""

    def __init__(self, device, stream, whole, memory) -> None:
        self.resource, self.stream, self.memory = Resource(), stream, memory
        self.buffers = self.resource.parts(whole, 2, 4, stream)
        code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
        self.kernel, self.event, self.callback = code.get_kernel("add"), device.create_event(), Callback()
        self.watched = weakref.ref(self.callback)

    def fill(self, maker) -> None:
        node = maker.launch(ONE, self.kernel, self.memory[0], 1).memset(self.buffers[0], 0, 4)
        node.memcpy(self.buffers[1], self.buffers[0], 4).record(self.event).callback(self.callback)

    def drop(self) -> None:
        """Only graphs have them from here on."""
        for buffer in self.buffers:
            buffer.close()
        self.event.close()
        del self.kernel, self.callback, self.buffers, self.event
        gc.collect()

    def check_alive(self, graph) -> None:
        """A raw graph has all it needs; the graph is destroyed."""
        before, callback = int(self.memory[1][0]), self.watched()
        assert callback is not None and self.resource.freed == []
        calls = callback.calls
        executable = ok(driver.cuGraphInstantiate(graph, 0))
        ok(driver.cuGraphLaunch(executable, self.stream.handle))
        self.stream.sync()
        assert self.memory[1][0] == before + 1 and callback.calls == calls + 1
        ok(driver.cuGraphExecDestroy(executable))
        ok(driver.cuGraphDestroy(graph))

    def check_gone(self) -> None:
        assert wait_until(lambda: len(self.resource.freed) == 2) and collected(self.watched)


@pytest.fixture
def needs(device, stream, memory):
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        yield Needs(device, stream, whole, memory)


def around(child):
    """A raw graph with a copy of a graph that is given by its handle."""
    graph = ok(driver.cuGraphCreate(0))
    ok(driver.cuGraphAddChildGraphNode(graph, [], 0, child))
    return graph


def clone(graph):
    return ok(driver.cuGraphClone(graph))


def cloned_around(part):
    """The same for a part of another graph, of which a driver takes only a clone."""
    middle = clone(part)
    graph = around(middle)
    ok(driver.cuGraphDestroy(middle))
    return graph


@pytest.mark.parametrize("copy", [clone, cloned_around], ids=["clone", "child"])
class TestRawCopies:
    """Copies made by handle outlive what they are copies of."""

    def test_of_a_definition(self, needs, copy):
        copy = around if copy is cloned_around else copy
        definition = GraphDefinition()
        needs.fill(definition)
        raw = copy(definition.handle)
        needs.drop()
        del definition
        gc.collect()
        needs.check_alive(raw)
        needs.check_gone()

    def test_of_a_definition_that_was_used(self, needs, copy):
        """Instantiated, updated from and embedded: it has its objects back each time."""
        definition, outer = GraphDefinition(), GraphDefinition()
        needs.fill(definition)
        graph = definition.instantiate()
        graph.update(definition)
        node = outer.embed(definition)
        node.update(definition)
        outer_graph = outer.instantiate()
        outer_graph[node].update(definition)
        raw = copy(definition.handle)
        needs.drop()
        graph.close()
        outer_graph.close()
        del definition, outer, node, graph, outer_graph
        gc.collect()
        needs.check_alive(raw)
        needs.check_gone()

    @pytest.mark.parametrize("depth", [1, 2])
    def test_of_a_child_graph(self, needs, copy, depth):
        inner = GraphDefinition()
        needs.fill(inner)
        for _ in range(depth):
            outer = GraphDefinition()
            node = outer.embed(inner)
            inner = outer
        for _ in range(depth - 1):
            (node,) = node.child_graph.nodes()
        raw = copy(node.child_graph.handle)
        needs.drop()
        del inner, outer, node
        gc.collect()
        needs.check_alive(raw)
        needs.check_gone()

    def test_of_a_child_graph_that_was_filled_itself(self, needs, copy):
        outer = GraphDefinition()
        node = outer.embed(GraphDefinition())
        needs.fill(node.child_graph)
        outer.instantiate().close()
        raw = copy(node.child_graph.handle)
        needs.drop()
        del outer, node
        gc.collect()
        needs.check_alive(raw)
        needs.check_gone()

    def test_of_a_recorded_child_graph(self, needs, device, copy):
        inner, builder = GraphDefinition(), device.create_graph_builder().begin_building()
        needs.fill(inner)
        raw_inner = around(inner.handle)
        with_child = device.create_graph_builder().begin_building()
        builder.callback(needs.callback)
        needs.buffers[0].fill(0, stream=builder)
        needs.buffers[1].fill(0, stream=builder)
        with_child.embed(builder.end_building())
        (node,) = with_child.end_building().graph_definition.nodes()
        raw = copy(node.child_graph.handle)
        needs.drop()
        builder.close()
        with_child.close()
        del inner, builder, with_child, node
        needs.check_alive(raw_inner)
        calls = needs.watched().calls
        executable = ok(driver.cuGraphInstantiate(raw, 0))
        ok(driver.cuGraphDestroy(raw))
        ok(driver.cuGraphLaunch(executable, needs.stream.handle))
        needs.stream.sync()
        assert needs.watched().calls == calls + 1 and needs.resource.freed == []
        ok(driver.cuGraphExecDestroy(executable))
        needs.check_gone()


def test_a_part_of_a_graph_is_no_child(device):
    definition = GraphDefinition()
    part = definition.embed(GraphDefinition()).child_graph
    with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_SUPPORTED"):
        GraphDefinition().embed(part)


def test_clones_of_a_changed_definition(device, stream):
    """A clone has what the nodes needed when it was made, and nothing of what they were rid of before."""
    resource = Resource()
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        first, second, third = resource.parts(whole, 3, 4, stream)
        addresses = [buffer.handle for buffer in (first, second, third)]
        definition = GraphDefinition()
        node, other = definition.memset(first, 0, 4), definition.memset(third, 0, 4)
        clone = ok(driver.cuGraphClone(definition.handle))
        node.update(dst=second)
        other.destroy()
        later = ok(driver.cuGraphClone(definition.handle))
        for buffer in (first, second, third):
            buffer.close()
        del definition, node, other, buffer
        gc.collect()
        assert resource.freed == []
        ok(driver.cuGraphDestroy(clone))
        assert wait_until(lambda: sorted(resource.freed) == [addresses[0], addresses[2]])
        ok(driver.cuGraphDestroy(later))
        assert wait_until(lambda: sorted(resource.freed) == addresses)


def test_a_child_replaced_by_another(device, stream):
    resource = Resource()
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        first, second = resource.parts(whole, 2, 4, stream)
        addresses = [first.handle, second.handle]
        one, two, outer = GraphDefinition(), GraphDefinition(), GraphDefinition()
        one.memset(first, 0, 4)
        two.memset(second, 0, 4)
        node = outer.embed(one)
        node.update(two)
        first.close()
        second.close()
        del one, two
        gc.collect()
        assert wait_until(lambda: resource.freed == addresses[:1])
        run(outer.instantiate(), stream)
        node.destroy()
        assert wait_until(lambda: resource.freed == addresses)


def test_a_node_destroyed_by_its_handle(device, stream):
    """What was inside it is gone, and the definition can be used all the same."""
    with device.allocate(16, stream=stream) as buffer:
        definition = GraphDefinition()
        node = definition.embed(GraphDefinition())
        node.child_graph.memset(buffer, 0, 4)
        ok(driver.cuGraphDestroyNode(node.handle))
        definition.memset(buffer, 0, 4)
        run(definition.instantiate(), stream)


def test_two_threads_use_one_definition(device, needs):
    definition = GraphDefinition()
    needs.fill(definition)

    def use(definition) -> None:
        device.set_current()
        for _ in range(50):
            definition.instantiate().close()

    threads = [threading.Thread(target=use, args=(definition,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raw = ok(driver.cuGraphClone(definition.handle))
    needs.drop()
    del definition, threads, thread
    needs.check_alive(raw)
    needs.check_gone()


# ---- executables ----------------------------------------------------------------------------------------------------


class Owner:
    """Has a graph that calls one of its methods: a cycle, which the collector sees if the driver has no part in it."""

    def __init__(self, make, calls, started=None, go_on=None) -> None:
        self.calls, self.started, self.go_on = calls, started, go_on
        self.graph = make(self.step)

    def step(self) -> None:
        if self.started:
            self.started.set()
            limits.wait(self.go_on)
        self.calls.append(1)


def from_definition(step):
    definition = GraphDefinition()
    definition.callback(step)
    return definition.instantiate()


def from_builder(step):
    from cupola import Device

    builder = Device().create_graph_builder().begin_building()
    builder.callback(step)
    graph = builder.end_building().complete()
    builder.close()
    return graph


def updated(step):
    graph, definition = from_builder(print), GraphDefinition()
    definition.callback(step)
    graph.update(definition)
    return graph


def changed(step):
    definition = GraphDefinition()
    node = definition.callback(print)
    graph = definition.instantiate()
    graph[node].update(step)
    return graph


def with_child(step):
    child, definition = GraphDefinition(), GraphDefinition()
    child.callback(step)
    definition.embed(child)
    return definition.instantiate()


def with_child_changed(step):
    child, definition = GraphDefinition(), GraphDefinition()
    child.callback(print)
    node = definition.embed(child)
    graph = definition.instantiate()
    (inner,) = child.nodes()
    inner.update(step)
    graph[node].update(child)
    return graph


MAKERS = [from_definition, from_builder, updated, changed, with_child, with_child_changed]


@pytest.mark.parametrize("make", MAKERS)
def test_executables_hold_no_user_objects(device, stream, make):
    """They would keep the owner for good, and make launches slow."""
    calls: list[int] = []
    owner = Owner(make, calls)
    run(owner.graph, stream)
    assert calls == [1]
    gone = weakref.ref(owner)
    del owner
    assert collected(gone)


@pytest.mark.parametrize("make", MAKERS)
def test_what_the_collector_finds_during_a_launch(device, stream, make):
    calls: list[int] = []
    started, go_on = threading.Event(), threading.Event()
    owner = Owner(make, calls, started, go_on)
    owner.graph.launch(stream)
    assert limits.wait(started)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is not None  # the launch needs it
    go_on.set()
    stream.sync()
    assert collected(gone) and calls == [1]


class HeldUp:
    """A definition whose launches wait for the host before they fill a buffer, which only graphs have."""

    def __init__(self, stream, whole) -> None:
        self.resource, self.started, self.go_on = Resource(), threading.Event(), threading.Event()
        (buffer,) = self.resource.parts(whole, 1, 4, stream)
        self.definition: GraphDefinition | None = GraphDefinition()
        self.definition.callback(self._block).join().memset(buffer, 0, 4)
        buffer.close()

    def _block(self) -> None:
        self.started.set()
        limits.wait(self.go_on)


@pytest.fixture
def held_up(device, stream):
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        held = HeldUp(stream, whole)
        yield held
        held.go_on.set()
        device.sync()


def launch_plainly(device, graph, stream):
    graph.launch(stream)


def launch_twice(device, graph, stream):
    graph.launch(stream)
    graph.launch(device.create_stream())


def launch_in_a_lost_stream(device, graph, stream):
    other = device.create_stream()
    graph.launch(other)
    other.close()


def launch_by_handle(device, graph, stream):
    ok(driver.cuGraphLaunch(graph.handle, stream.handle))


def launch_and_upload(device, graph, stream):
    graph.launch(stream)
    graph.upload(device.create_stream())


def close_at_once(graph):
    graph.close()


def close_elsewhere(graph):
    """On a thread without a current context."""
    thread = threading.Thread(target=graph.close)
    thread.start()
    thread.join()


@pytest.mark.parametrize("close", [close_at_once, close_elsewhere, lambda graph: None], ids=["close", "thread", "drop"])
@pytest.mark.parametrize(
    "start", [launch_plainly, launch_twice, launch_in_a_lost_stream, launch_by_handle, launch_and_upload]
)
def test_a_launch_under_way_at_the_end(device, stream, held_up, start, close):
    graph = held_up.definition.instantiate()
    start(device, graph, stream)
    assert limits.wait(held_up.started)
    held_up.definition = None
    close(graph)
    del graph
    gc.collect()
    assert held_up.resource.freed == []
    held_up.go_on.set()
    assert wait_until(lambda: len(held_up.resource.freed) == 1)


def test_what_is_replaced_stays_for_a_launch_under_way(device, stream):
    """By updates and by changes of a node, in turns; what no launch has used goes with the executable at the latest."""
    resource, started, go_on = Resource(), threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        limits.wait(go_on)

    def make(buffer) -> tuple:
        definition = GraphDefinition()
        return definition, definition.callback(block).join().memset(buffer, 0, 4)

    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        buffers = resource.parts(whole, 5, 4, stream)
        addresses = [buffer.handle for buffer in buffers]
        definition, node = make(buffers[0])
        graph = definition.instantiate()
        graph.launch(stream)
        assert limits.wait(started)
        for i in (1, 3):
            graph.update(make(buffers[i])[0])
            graph[node].update(dst=buffers[i + 1], value=0, width=4)
        for buffer in buffers:
            buffer.close()
        del buffer, buffers
        node.destroy()
        gc.collect()
        assert resource.freed == []
        go_on.set()
        stream.sync()
        graph.close()
        assert wait_until(lambda: sorted(resource.freed) == addresses)


def test_what_no_launch_has_used_goes_at_once(device, stream):
    resource = Resource()
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        first, second = resource.parts(whole, 2, 4, stream)
        addresses = [first.handle, second.handle]
        definition = GraphDefinition()
        node = definition.memset(whole, 0, 4)
        graph = definition.instantiate()
        graph[node].update(dst=first, value=0, width=4)
        graph[node].update(dst=second, value=0, width=4)
        first.close()
        second.close()
        assert resource.freed == addresses[:1]
        graph.close()
        assert resource.freed == addresses


def test_a_graph_that_goes_in_a_callback(device, stream, recwarn):
    """Where the driver cannot be asked for anything: it is destroyed soon after."""
    resource, refused = Resource(), []
    with device.allocate(1024, stream=stream) as whole:
        stream.sync()
        (buffer,) = resource.parts(whole, 1, 4, stream)
        inner, outer = GraphDefinition(), GraphDefinition()
        inner.memset(buffer, 0, 4)
        buffer.close()
        graphs = [inner.instantiate()]
        run(graphs[0], stream)
        del inner

        def drop() -> None:
            try:
                graphs[0].close()
            except CUDAError as error:
                refused.append(error.name)
            graphs.clear()

        outer.callback(drop)
        run(outer.instantiate(), stream)
        assert wait_until(lambda: len(resource.freed) == 1)
    assert refused in ([], ["CUDA_ERROR_NOT_PERMITTED"])
    assert not recwarn.list


def test_an_update_from_a_closed_builder(device):
    """Refused, as in cuda.core; a view of its graph is as good as before."""
    builders = [device.create_graph_builder().begin_building() for _ in range(2)]
    for builder in builders:
        builder.callback(print)
        builder.end_building()
    graph, definition = builders[0].complete(), builders[1].graph_definition
    builders[1].close()
    with pytest.raises(RuntimeError, match="GraphBuilder has been closed"):
        graph.update(builders[1])
    graph.update(definition)


def test_a_capture_on_the_thread_does_not_mind(device, stream):
    """One in the mode in which calls that could harm it spoil it."""
    graph = GraphDefinition()
    graph.callback(print)
    other, third = graph.instantiate(), graph.instantiate()
    builder = device.create_graph_builder().begin_building("global")
    other.close()
    del third
    gc.collect()
    assert builder.is_building
    builder.end_building()


PRELUDE = """
import gc, threading, time, weakref
from cupola import Device, LaunchConfig, Program, launch
from cupola.graph import GraphDefinition
device = Device(0)
device.set_current()
stream = device.create_stream()
class Callback:
    def __call__(self): print("called", flush=True)
"""


def test_exit_during_a_launch(run_python):
    source = (
        PRELUDE
        + """
started = threading.Event()
def slow():
    started.set()
    time.sleep(0.3)
definition = GraphDefinition()
definition.callback(slow).join().callback(Callback())
graph = definition.instantiate()
graph.launch(stream)
started.wait()
"""
    )
    done = run_python(source)
    assert (done.returncode, done.stderr) == (0, "")


def test_objects_go_after_a_fault(run_python):
    done = run_python(PROGRAMS / "objects_after_a_fault.py")
    assert done.stdout.split() == ["False", "CUDA_ERROR_LAUNCH_FAILED", "True"], done.stderr
