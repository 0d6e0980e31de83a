from typing import SupportsInt

from cupola.core.device._memory_resource import MemoryResource
from cupola.core.device._stream import Stream
from cupola.core.memory._buffer import Buffer
from cupola.graph import GraphBuilder

class UnpooledMemoryResource(MemoryResource):
    def allocate(self, size: int, *, stream: Stream | GraphBuilder | None = None) -> Buffer: ...
    def deallocate(self, ptr: int, size: int, *, stream: Stream | GraphBuilder | None = None) -> None: ...

class LegacyPinnedMemoryResource(UnpooledMemoryResource): ...

class SynchronousMemoryResource(UnpooledMemoryResource):
    def __init__(self, device_id: SupportsInt) -> None: ...
