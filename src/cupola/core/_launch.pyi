from typing import Any

from cupola.core._kernel import Kernel
from cupola.core._launch_config import LaunchConfig
from cupola.core._stream import Stream
from cupola.graph import GraphBuilder
from cupola.typing import IsStreamType

def launch(
    stream: Stream | GraphBuilder | IsStreamType, config: LaunchConfig, kernel: Kernel, *kernel_args: Any
) -> None: ...
