from typing import TypeVar

from cupola.core.device._memory_resource import MemoryResource
from cupola.core.device._stream import Stream
from cupola.core.memory._buffer import Buffer
from cupola.core.memory._ipc import IPCBufferDescriptor
from cupola.core.memory._pool import PoolMemoryResource
from cupola.graph import GraphBuilder

B = TypeVar("B", bound=Buffer)

def export_pool(resource: PoolMemoryResource) -> int: ...
def import_pool(resource: PoolMemoryResource, descriptor: int, ordinal: int) -> None: ...
def export_buffer(buffer: Buffer) -> IPCBufferDescriptor: ...
def import_buffer(
    cls: type[B], resource: MemoryResource, descriptor: IPCBufferDescriptor, stream: Stream | GraphBuilder
) -> B: ...
def rebuild_buffer(resource: MemoryResource, descriptor: IPCBufferDescriptor) -> Buffer: ...
