"""Graphs as pictures: where nodes are, and what the picture says of them."""

from __future__ import annotations

from xml.etree import ElementTree

import cupola
from cupola import LaunchConfig
from cupola.graph import GraphDefinition, _drawing


def test_layers_are_below_what_they_depend_on():
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]
    picture = _drawing.Picture([str(i) for i in range(5)], edges, [[]] * 5)
    layers = _drawing._ordered(_drawing._layers(5, edges), edges)
    assert [sorted(layer) for layer in layers] == [[0, 4], [1, 2], [3]]
    assert picture.body.count("<path") == len(edges) and picture.body.count("<rect") == 5
    # The line from 0 to 3 passes the layer between them beside its boxes.
    assert _drawing._by_layers([[0, 4], [1, 2], [3]], edges)[-1] == [0, 5, 3] and picture.body.count(" C") == 7
    # Lines that would cross do not.
    crossed = [(0, 3), (1, 2)]
    assert _drawing._ordered(_drawing._layers(4, crossed), crossed)[1] == [3, 2]


FIRST = """
import cupola
dev = cupola.Device()
dev.set_current()
kernel = cupola.compile('extern "C" __global__ void nothing() {}').get_kernel("nothing")
builder = dev.create_stream().create_graph_builder().begin_building()
cupola.launch(builder, cupola.LaunchConfig(grid=1, block=1), kernel)
graph = builder.end_building().complete()
print(graph, "<svg" in graph._repr_html_())
"""


def test_a_captured_graph_is_drawn_where_no_definition_was_made(run_python):
    done = run_python(FIRST)
    assert done.stdout == "<Graph of 1 nodes> True\n", done.stderr


def test_a_definition_and_what_is_made_of_it(device, stream):
    kernel = cupola.compile('extern "C" __global__ void less(int* x) { *x = 1; }').get_kernel("less")
    buffer = device.allocate(64, stream=stream)
    definition, child = GraphDefinition(), GraphDefinition()
    child.memset(buffer, 0, 16)
    work = definition.launch(LaunchConfig(grid=(2, 3), block=8), kernel, buffer)
    work.embed(child).callback(print)
    condition = definition.create_condition()
    loop = definition.while_loop(condition)
    loop.body.empty()
    page = definition._repr_html_()
    picture = ElementTree.fromstring(page[page.index("<svg") :].removesuffix("</div>"))
    texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(texts) == ["callback", "empty", "graph", "less [2 x 3, 8]", "memset 16", "while"]
    assert str(definition) == "<GraphDefinition of 4 nodes>" and "of 4 nodes" in page

    plain = GraphDefinition()
    plain.launch(LaunchConfig(grid=1, block=1), kernel, buffer)
    graph = plain.instantiate()
    assert "less [1, 1]" in graph._repr_html_() and str(graph) == "<Graph of 1 nodes>"
    del plain
    assert graph._repr_html_() == "<code>&lt;Graph whose definition is gone&gt;</code>"
    graph.close()
    assert str(graph) == "<Graph closed>"


def test_large_and_empty_graphs():
    definition = GraphDefinition()
    assert "empty" in definition._repr_html_()
    node = definition.empty()
    for _ in range(10):
        node = node.join()
    text = _drawing.picture_of(definition, most=4).svg()
    assert text.count("<rect") == 5 and "... and 7 more" in text


def test_a_builder(device, stream):
    builder = device.create_graph_builder().begin_building()
    assert "svg" not in builder._repr_html_()
    builder.callback(print)
    builder.end_building()
    assert "callback" in builder._repr_html_()
