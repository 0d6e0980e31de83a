from typing import TypeVar

from cupola.core._buffer import Buffer
from cupola.core._ipc import IPCBufferDescriptor
from cupola.core._memory_resource import MemoryResource
from cupola.core._pool import PoolMemoryResource
from cupola.core._stream import Stream
from cupola.graph import GraphBuilder

B = TypeVar("B", bound=Buffer)

def export_pool(resource: PoolMemoryResource) -> int: ...
def import_pool(resource: PoolMemoryResource, descriptor: int, ordinal: int) -> None: ...
def export_buffer(buffer: Buffer) -> IPCBufferDescriptor: ...
def import_buffer(
    cls: type[B], resource: MemoryResource, descriptor: IPCBufferDescriptor, stream: Stream | GraphBuilder
) -> B: ...
def rebuild_buffer(resource: MemoryResource, descriptor: IPCBufferDescriptor) -> Buffer: ...
