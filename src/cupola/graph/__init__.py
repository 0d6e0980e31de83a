"""Graphs: work that is recorded once and launched as a whole, many times."""

from cupola.graph._builder import GraphBuilder
from cupola.graph._condition import GraphCondition
from cupola.graph._graph import Graph
from cupola.graph._options import GraphCompleteOptions, GraphDebugPrintOptions

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphCondition", "GraphDebugPrintOptions"]
