from typing import overload

from cupola.bindings.driver import CUgraphExec
from cupola.core.device._stream import Stream
from cupola.graph._builder import GraphBuilder
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
    ChildGraphNode,
    EventRecordNode,
    EventWaitNode,
    HostCallbackNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
)

class Retired: ...

class Graph:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def launch(self, stream: Stream | GraphBuilder) -> None: ...
    def upload(self, stream: Stream | GraphBuilder) -> None: ...
    def update(self, source: GraphBuilder | GraphDefinition) -> None: ...
    @overload
    def __getitem__(self, node: KernelNode) -> ExecutableKernelNode: ...
    @overload
    def __getitem__(self, node: MemsetNode) -> ExecutableMemsetNode: ...
    @overload
    def __getitem__(self, node: MemcpyNode) -> ExecutableMemcpyNode: ...
    @overload
    def __getitem__(self, node: ChildGraphNode) -> ExecutableChildGraphNode: ...
    @overload
    def __getitem__(self, node: EventRecordNode) -> ExecutableEventRecordNode: ...
    @overload
    def __getitem__(self, node: EventWaitNode) -> ExecutableEventWaitNode: ...
    @overload
    def __getitem__(self, node: HostCallbackNode) -> ExecutableHostCallbackNode: ...
    @overload
    def __getitem__(self, node: GraphNode) -> ExecutableGraphNode: ...
    @property
    def handle(self) -> CUgraphExec: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...
