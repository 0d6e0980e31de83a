"""Graphs: work that is recorded, or made node by node, and launched as a whole, many times."""

from cupola.graph._builder import GraphBuilder
from cupola.graph._condition import GraphCondition
from cupola.graph._graph import Graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cupola.graph._definition import GraphDefinition
    from cupola.graph._executable_nodes import (
        ExecutableChildGraphNode,
        ExecutableEventRecordNode,
        ExecutableEventWaitNode,
        ExecutableGraphNode,
        ExecutableHostCallbackNode,
        ExecutableKernelNode,
        ExecutableMemcpyNode,
        ExecutableMemsetNode,
    )
    from cupola.graph._node import GraphNode
    from cupola.graph._node_kinds import (
        AllocNode,
        ChildGraphNode,
        ConditionalNode,
        EmptyNode,
        EventRecordNode,
        EventWaitNode,
        FreeNode,
        HostCallbackNode,
        IfElseNode,
        IfNode,
        KernelNode,
        MemcpyNode,
        MemsetNode,
        SwitchNode,
        WhileNode,
    )
    from cupola.graph._options import GraphCompleteOptions, GraphDebugPrintOptions

__all__ = [
    "AllocNode",
    "ChildGraphNode",
    "ConditionalNode",
    "EmptyNode",
    "EventRecordNode",
    "EventWaitNode",
    "ExecutableChildGraphNode",
    "ExecutableEventRecordNode",
    "ExecutableEventWaitNode",
    "ExecutableGraphNode",
    "ExecutableHostCallbackNode",
    "ExecutableKernelNode",
    "ExecutableMemcpyNode",
    "ExecutableMemsetNode",
    "FreeNode",
    "Graph",
    "GraphBuilder",
    "GraphCompleteOptions",
    "GraphCondition",
    "GraphDebugPrintOptions",
    "GraphDefinition",
    "GraphNode",
    "HostCallbackNode",
    "IfElseNode",
    "IfNode",
    "KernelNode",
    "MemcpyNode",
    "MemsetNode",
    "SwitchNode",
    "WhileNode",
]


_MODULES = {
    "GraphCompleteOptions": "_options",
    "GraphDebugPrintOptions": "_options",
    "GraphDefinition": "_definition",
    "GraphNode": "_node",
}


def __getattr__(name: str) -> object:
    """Import what capturing does not need when it is first used; and older names."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name not in __all__:
        found = import_module("cupola.graph._older").find(name)
        if not isinstance(found, str):
            return found
        if found in globals():
            return globals()[found]
        name = found
    module = _MODULES.get(name, "_executable_nodes" if name.startswith("Executable") else "_node_kinds")
    globals()[name] = value = getattr(import_module(f"cupola.graph.{module}"), name)
    return value
