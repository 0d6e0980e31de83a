from collections.abc import Callable, Iterable
from typing import Any

from cupola.core.device._event import Event
from cupola.core.launch._launch_config import LaunchConfig
from cupola.core.memory._buffer import Buffer
from cupola.core.program._kernel import Kernel
from cupola.graph._definition import GraphDefinition
from cupola.graph._graph import Graph
from cupola.graph._node import GraphNode
from cupola.typing import DevicePointerType

class ExecutableGraphNode:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @classmethod
    def _of(cls, graph: Graph, node: GraphNode) -> ExecutableGraphNode: ...

class _SwitchableNode(ExecutableGraphNode):
    @property
    def is_enabled(self) -> bool: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...

class ExecutableKernelNode(_SwitchableNode):
    def update(self, *, config: LaunchConfig, kernel: Kernel, args: Iterable[Any]) -> None: ...

class ExecutableMemsetNode(_SwitchableNode):
    def update(
        self, *, dst: Buffer | DevicePointerType, value: Any, width: int, height: int = 1, pitch: int = 0
    ) -> None: ...

class ExecutableMemcpyNode(_SwitchableNode):
    def update(self, *, dst: Buffer | DevicePointerType, src: Buffer | DevicePointerType, size: int) -> None: ...

class ExecutableChildGraphNode(ExecutableGraphNode):
    def update(self, child: GraphDefinition) -> None: ...

class ExecutableEventRecordNode(ExecutableGraphNode):
    def update(self, event: Event) -> None: ...

class ExecutableEventWaitNode(ExecutableGraphNode):
    def update(self, event: Event) -> None: ...

class ExecutableHostCallbackNode(ExecutableGraphNode):
    def update(self, fn: Callable[..., Any], *, user_data: Any = None) -> None: ...
