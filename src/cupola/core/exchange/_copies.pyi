from collections.abc import Sequence
from typing import Any

from cupola.core.device._stream import Stream
from cupola.core.exchange._copy_options import CopyOptions
from cupola.core.memory._buffer import Buffer
from cupola.graph import GraphBuilder

class Side: ...

def copy_arrays(dst: Any, src: Any, stream: Stream | GraphBuilder, options: CopyOptions | None) -> None: ...
def copy_batch(
    stream: Stream,
    srcs: Sequence[Buffer],
    dsts: Sequence[Buffer],
    *,
    options: CopyOptions | Sequence[CopyOptions] | None = None,
) -> None: ...
