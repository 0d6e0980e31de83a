"""The neighbors of a node, as a set.

Imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet

from cupola._above import above

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any, Self

    from cupola.graph._node import GraphNode


class AdjacencySet(MutableSet["GraphNode"]):
    """The nodes on which a node depends, or those that depend on it.

    A live set: reading asks the driver, and each change is one call of it (``cuGraphAddDependencies``,
    ``cuGraphRemoveDependencies``), which adds all edges or none. A cycle of edges is found when the graph is
    instantiated. The operators ``|``, ``&``, ``-`` and ``^`` give plain sets.
    """

    __slots__ = ("_before", "_node")

    def __init__(self, node: GraphNode, before: bool) -> None:
        self._node = node
        self._before = before

    # --- reading --------------------------------------------------------------------------------------

    def __contains__(self, node: object) -> bool:
        return self._node._is_beside(node) and node in self._nodes()

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self._nodes())

    def __len__(self) -> int:
        return len(self._nodes())

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self._nodes()))}}}"

    @classmethod
    def _from_iterable(cls, nodes: Iterable[Any]) -> Any:
        return set(nodes)

    def _nodes(self) -> list[GraphNode]:
        return self._node._neighbours(self._before)

    # --- changing -------------------------------------------------------------------------------------

    def add(self, node: GraphNode) -> None:
        """Add an edge, unless it exists.

        Parameters
        ----------
        node : GraphNode
            Of the same graph.

        Raises
        ------
        TypeError
            When it is no node.
        ValueError
            When the node is of another graph.
        CUDAError
            When it is this node itself.
        """
        self._link([node])

    def update(self, *others: GraphNode | Iterable[GraphNode]) -> None:
        """Add edges. If one of them is invalid, none is added.

        Parameters
        ----------
        *others : GraphNode or iterable of GraphNode
            Nodes of the same graph.
        """
        self._link(_flatten(others))

    def discard(self, node: object) -> None:
        """Remove an edge, if it exists.

        Parameters
        ----------
        node : object
            Anything but a neighbor has no effect.
        """
        if node in self:
            self._node._unlink([node], self._before)

    def clear(self) -> None:
        """Remove all edges."""
        self._node._unlink(self._nodes(), self._before)

    def __ior__(self, others: AbstractSet[GraphNode]) -> Self:  # type: ignore[override,misc]
        self._link(_flatten([others]))
        return self

    def __isub__(self, others: AbstractSet[Any]) -> Self:
        self._remove(others)
        return self

    def __iand__(self, others: AbstractSet[Any]) -> Self:
        self._remove([node for node in self._nodes() if node not in others])
        return self

    def __ixor__(self, others: AbstractSet[Any]) -> Self:  # type: ignore[misc]
        given = _flatten([others])
        common = [node for node in self._nodes() if node in given]
        self._link([node for node in given if node not in common])
        self._remove(common)
        return self

    def _link(self, nodes: Iterable[GraphNode]) -> None:
        there = set(self._nodes())
        new: list[GraphNode] = []
        for node in nodes:
            self._check(node)
            if node not in there:
                there.add(node)
                new.append(node)
        self._node._link(new, self._before)

    def _remove(self, others: Iterable[Any]) -> None:
        gone = set(others)
        self._node._unlink([node for node in self._nodes() if node in gone], self._before)

    def _check(self, node: object) -> None:
        if not isinstance(node, above("GraphNode")):
            raise TypeError(f"expected GraphNode, got {type(node).__name__}")
        if not node.is_valid:
            raise RuntimeError("GraphNode has been destroyed")
        if not self._node._is_beside(node):
            raise ValueError(f"{node!r} is a node of another graph: edges join nodes of one graph")


def _flatten(others: Iterable[Any]) -> list[Any]:
    nodes: list[Any] = []
    kind = above("GraphNode")
    for other in others:
        if isinstance(other, kind):
            nodes.append(other)
        elif isinstance(other, Iterable) and not isinstance(other, str | bytes):
            nodes.extend(other)
        else:
            raise TypeError(f"expected GraphNode, got {type(other).__name__}")
    return nodes
