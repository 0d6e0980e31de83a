"""Functions that launch the kernels of kernels.cu."""

from functools import cache
from importlib.resources import files

import cupola
from cupola import Array, Kernel, LaunchConfig, Stream

__all__ = ["saxpy"]


@cache
def _kernel(name: str, device: int) -> Kernel:
    source = files(__name__).joinpath("kernels.cu").read_text()
    options = {"name": "kernels.cu", "lineinfo": True}  # so that errors name lines
    return cupola.compile(source, options=options).get_kernel(name)


def saxpy(a: float, x: Array, y: Array, stream: Stream) -> None:
    """Add `a` times `x` to `y`, both of float32, in the order of the stream."""
    if x.dtype != "float32" or y.dtype != "float32" or x.size != y.size:
        raise ValueError("x and y must be arrays of float32 of one size")
    if not (x.is_contiguous and y.is_contiguous):
        raise ValueError("x and y must be in one piece")
    if x.size:
        kernel = _kernel("saxpy", x.device_id)
        cupola.launch(stream, LaunchConfig.for_elements(x.size), kernel, a, x, y, x.size)
