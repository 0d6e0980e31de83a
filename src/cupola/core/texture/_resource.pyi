from typing import Literal

from numpy.typing import DTypeLike

from cupola.core.memory._buffer import Buffer
from cupola.core.texture._array import MipmappedArray, OpaqueArray
from cupola.typing import ArrayFormatType

class ResourceDescriptor:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @classmethod
    def from_opaque_array(cls, array: OpaqueArray) -> ResourceDescriptor: ...
    @classmethod
    def from_mipmapped_array(cls, mipmapped_array: MipmappedArray) -> ResourceDescriptor: ...
    @classmethod
    def from_linear(
        cls,
        buffer: Buffer,
        *,
        format: ArrayFormatType | str | DTypeLike,
        num_channels: int,
        size_bytes: int | None = None,
    ) -> ResourceDescriptor: ...
    @classmethod
    def from_pitch2d(
        cls,
        buffer: Buffer,
        *,
        format: ArrayFormatType | str | DTypeLike,
        num_channels: int,
        width: int,
        height: int,
        pitch_bytes: int,
    ) -> ResourceDescriptor: ...
    @property
    def kind(self) -> Literal["array", "mipmapped_array", "linear", "pitch2d"]: ...
    @property
    def source(self) -> OpaqueArray | MipmappedArray | Buffer: ...
    @property
    def format(self) -> ArrayFormatType | None: ...
    @property
    def num_channels(self) -> int | None: ...
    @property
    def size_bytes(self) -> int | None: ...
    @property
    def width(self) -> int | None: ...
    @property
    def height(self) -> int | None: ...
    @property
    def pitch_bytes(self) -> int | None: ...
