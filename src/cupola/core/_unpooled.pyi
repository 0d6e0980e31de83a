from typing import SupportsInt

from cupola.core._buffer import Buffer
from cupola.core._memory_resource import MemoryResource
from cupola.core._stream import Stream
from cupola.graph import GraphBuilder

class UnpooledMemoryResource(MemoryResource):
    def allocate(self, size: int, *, stream: Stream | GraphBuilder | None = None) -> Buffer: ...
    def deallocate(self, ptr: int, size: int, *, stream: Stream | GraphBuilder | None = None) -> None: ...

class LegacyPinnedMemoryResource(UnpooledMemoryResource): ...

class SynchronousMemoryResource(UnpooledMemoryResource):
    def __init__(self, device_id: SupportsInt) -> None: ...
