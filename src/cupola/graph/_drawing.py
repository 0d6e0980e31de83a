"""Graphs as pictures (SVG): nodes in layers, each below those that it depends on.

Imported when a graph is shown in a notebook.
"""

from __future__ import annotations

from html import escape

from cupola.core.base._errors import CUDAError

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.graph._definition import GraphDefinition

LETTER, HEIGHT, GAP, LAYER = 7, 28, 18, 30  # pixels
MOST = 300
"""How many nodes are drawn."""


class Box:
    """A node in the picture, with the graphs inside it."""

    def __init__(self, label: str, inside: list[Picture]) -> None:
        self.label, self.inside = label, inside
        self.width = max([LETTER * len(label) + 20, sum(p.width + 12 for p in inside) + 12 if inside else 0])
        self.height = HEIGHT + (max(p.height for p in inside) + 12 if inside else 0)
        self.x = self.y = 0.0

    def draw(self) -> str:
        """The box at its place."""
        parts = [
            f"<g transform='translate({self.x:.0f},{self.y:.0f})'>"
            f"<rect width='{self.width}' height='{self.height}' rx='6' fill='currentColor' fill-opacity='0.07' "
            "stroke='currentColor'/>"
            f"<text x='{self.width / 2:.0f}' y='18' text-anchor='middle' fill='currentColor'>"
            f"{escape(self.label)}</text>"
        ]
        left = 12
        for picture in self.inside:
            parts.append(f"<g transform='translate({left},{HEIGHT})'>{picture.body}</g>")
            left += picture.width + 12
        return "".join([*parts, "</g>"])


class Bend(Box):
    """Where a line passes a layer."""

    def __init__(self) -> None:
        super().__init__("", [])
        self.width = self.height = 0

    def draw(self) -> str:
        """Nothing: the line is all there is."""
        return ""


class Picture:
    """A graph, laid out."""

    width: int
    height: int

    def __init__(self, labels: list[str], edges: list[tuple[int, int]], inside: list[list[Picture]]) -> None:
        boxes = [Box(label, pictures) for label, pictures in zip(labels, inside, strict=True)]
        layers = _layers(len(labels), edges)
        chains = _by_layers(layers, edges)
        boxes += [Bend() for layer in layers for i in layer if i >= len(boxes)]
        layers = _ordered(layers, [pair for chain in chains for pair in zip(chain, chain[1:], strict=False)])
        self.width = max([sum(boxes[i].width + GAP for i in layer) - GAP for layer in layers], default=40)
        top = 0
        for layer in layers:
            left = (self.width - sum(boxes[i].width + GAP for i in layer) + GAP) / 2
            height = max(boxes[i].height for i in layer)
            for i in layer:
                boxes[i].x, boxes[i].y = left, top
                left += boxes[i].width + GAP
                if isinstance(boxes[i], Bend):
                    boxes[i].height = height
            top += height + LAYER
        self.height = max(top - LAYER, 20)
        self.body = "".join([_line([boxes[i] for i in chain]) for chain in chains] + [box.draw() for box in boxes])
        if not boxes:
            self.body = "<text y='14' fill='currentColor'>empty</text>"

    def svg(self) -> str:
        """The picture as it stands in a page."""
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{self.width + 20}' height='{self.height + 20}' "
            "font-family='monospace' font-size='12' style='max-width:100%'>"
            "<defs><marker id='cupola-arrow' markerWidth='8' markerHeight='8' refX='7' refY='4' orient='auto'>"
            "<path d='M0,1 L7,4 L0,7 z' fill='currentColor'/></marker></defs>"
            f"<g transform='translate(10,10)'>{self.body}</g></svg>"
        )


def _line(boxes: list[Box]) -> str:
    """A line from the first box to the last one, through the bends between them."""
    above, below = boxes[0], boxes[-1]
    places = [(above.x + above.width / 2, above.y + above.height)]
    for bend in boxes[1:-1]:
        places += [(bend.x, bend.y), (bend.x, bend.y + bend.height)]
    places.append((below.x + below.width / 2, below.y))
    path = f"M{places[0][0]:.0f},{places[0][1]:.0f}"
    for (x1, y1), (x2, y2) in zip(places, places[1:], strict=False):
        half = (y1 + y2) / 2
        path += f" C{x1:.0f},{half:.0f} {x2:.0f},{half:.0f} {x2:.0f},{y2:.0f}"
    return f"<path d='{path}' fill='none' stroke='currentColor' marker-end='url(#cupola-arrow)'/>"


def _by_layers(layers: list[list[int]], edges: list[tuple[int, int]]) -> list[list[int]]:
    """Each edge as a chain from layer to layer, with a new number in `layers` for each layer that it only passes."""
    depth = {i: n for n, layer in enumerate(layers) for i in layer}
    chains, last = [], len(depth)
    for a, b in edges:
        chain = [a]
        for layer in range(depth[a] + 1, depth[b]):
            layers[layer].append(last)
            chain.append(last)
            last += 1
        chains.append([*chain, b])
    return chains


def _layers(count: int, edges: list[tuple[int, int]]) -> list[list[int]]:
    """Each node in the layer behind the last one that it depends on."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    waiting = [len(found) for found in before]
    depth = [0] * count
    ready = [i for i in range(count) if not waiting[i]]
    for i in ready:  # grows while it is walked
        for other in after[i]:
            depth[other] = max(depth[other], depth[i] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for i in range(count):
        layers[depth[i]].append(i)
    return layers


def _ordered(layers: list[list[int]], edges: list[tuple[int, int]]) -> list[list[int]]:
    """The layers, with nodes near those that they belong to: each where the middle of its neighbours is."""
    place = {i: float(n) for layer in layers for n, i in enumerate(layer)}
    for forward in (True, False, True):
        for layer in layers if forward else reversed(layers):
            beside: dict[int, list[float]] = {i: [] for i in layer}
            for a, b in edges:
                here, there = (b, a) if forward else (a, b)
                if here in beside:
                    beside[here].append(place[there])
            layer.sort(key=lambda i: sum(beside[i]) / len(beside[i]) if beside[i] else place[i])
            place.update({i: float(n) for n, i in enumerate(layer)})
    return layers


def picture_of(definition: GraphDefinition, most: int = MOST) -> Picture:
    """The picture of a definition, with the graphs inside its nodes."""
    nodes = sorted(definition.nodes(), key=lambda node: int(node.handle or 0))
    number = {node: i for i, node in enumerate(nodes[:most])}
    edges = sorted((number[a], number[b]) for a, b in definition.edges() if a in number and b in number)
    labels, inside = [], []
    for node in number:
        label, graphs = _label(node)
        labels.append(label)
        inside.append([picture_of(graph, most // 4 + 1) for graph in graphs])
    if len(nodes) > most:
        labels.append(f"... and {len(nodes) - most} more")
        inside.append([])
    return Picture(labels, edges, inside)


def _label(node: Any) -> tuple[str, list[GraphDefinition]]:
    """What a node does, and the graphs inside it."""
    name = type(node).__name__.removesuffix("Node")
    if name == "Kernel":
        grid, block = (" x ".join(map(str, _short(extent))) for extent in (node.grid, node.block))
        return f"{node.kernel._name()} [{grid}, {block}]", []
    if name == "ChildGraph":
        return "graph", [node.child_graph]
    if hasattr(node, "branches"):
        return {"IfElse": "if, else"}.get(name, name.lower()), list(node.branches)
    sizes = {"Memcpy": "size", "Alloc": "bytesize", "Memset": "width"}
    if name in sizes:
        return f"{name.lower()} {getattr(node, sizes[name]):,}", []
    return {"HostCallback": "callback", "EventRecord": "record event", "EventWait": "wait for event"}.get(
        name, name.lower()
    ), []


def _short(extent: tuple[int, ...]) -> tuple[int, ...]:
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return extent


def html_of(definition: GraphDefinition | None, title: str) -> str:
    """A title and the picture; without one where the definition of an executable is gone."""
    if definition is None:
        return f"<code>{escape(title)}</code>"
    try:
        return f"<div><code>{escape(title)}</code></div>{picture_of(definition).svg()}"
    except (CUDAError, RuntimeError):
        return f"<code>{escape(title)}</code>"
