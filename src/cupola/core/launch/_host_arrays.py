"""Launches with arrays of the host among the arguments: ``In(a)``, ``Out(b)``, ``InOut(c)``.

Each gets device memory for the launch, allocated, filled, read back and released in the order of the stream. Imported
when such an argument is first given.
"""

from __future__ import annotations

from cupola.core.array._array import Array, element_type, new_array
from cupola.core.device._stream import Stream
from cupola.core.launch._arguments import HostArray, In, Out
from cupola.core.launch._launch import launch

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from cupola.core.launch._launch_config import LaunchConfig
    from cupola.core.program._kernel import Kernel


def launch_with_copies(stream: Any, config: LaunchConfig, kernel: Kernel, arguments: list[Any]) -> None:
    """What :func:`cupola.launch` does then."""
    if not isinstance(stream, Stream):
        raise TypeError(
            "arrays of the host cannot be arguments of a launch that is recorded, since a graph copies the memory that "
            "it finds when it runs: pass an Array or a Buffer"
        )
    resource = stream.device.memory_resource
    made: list[tuple[HostArray, np.ndarray, Array]] = []
    try:
        for i, argument in enumerate(arguments):
            if isinstance(argument, HostArray):
                host = _host_array(argument)
                size = max(host.nbytes, 1)  # a pointer to no elements is one, too
                array = new_array(Array, resource.allocate(size, stream=stream), host.shape, host.dtype)
                made.append((argument, host, array))
                if not isinstance(argument, Out) and host.size:
                    array.copy_from(host, stream=stream)
                arguments[i] = array
        launch(stream, config, kernel, *arguments)
        for argument, host, array in made:
            if not isinstance(argument, In) and host.size:
                array.copy_to(host, stream=stream)
    finally:
        for _, _, array in made:
            array.close(stream)


def _host_array(argument: HostArray) -> np.ndarray:
    import numpy

    host = numpy.asarray(argument.array)
    element_type(host.dtype)
    if not isinstance(argument, In):
        if host is not argument.array:
            raise TypeError(
                f"{type(argument).__name__}() takes a NumPy array, which gets the elements; "
                f"{type(argument.array).__name__} is none"
            )
        if not host.flags.writeable:
            raise ValueError(f"{type(argument).__name__}() needs an array that can be written; this one is read-only")
    return host
