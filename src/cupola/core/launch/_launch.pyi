from typing import Any

from cupola.core.device._stream import Stream
from cupola.core.launch._launch_config import LaunchConfig
from cupola.core.program._kernel import Kernel
from cupola.graph import GraphBuilder
from cupola.typing import IsStreamType

def launch(
    stream: Stream | GraphBuilder | IsStreamType, config: LaunchConfig, kernel: Kernel, *kernel_args: Any
) -> None: ...
