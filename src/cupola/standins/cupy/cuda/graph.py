"""Graphs that streams have recorded."""

from cupola.standins.cupy.cuda.stream import Graph as Graph
