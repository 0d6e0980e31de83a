"""Strategies for hypothesis: sizes, launches and arrays on which kernels tend to be wrong.

hypothesis is not installed with cupola: ``pip install hypothesis``. A test takes device 0, or the current one::

    from hypothesis import given
    from cupola.testing import strategies as cuda

    @given(x=cuda.device_arrays("float32"), shape=cuda.launch_shapes())
    def test_scale(x, shape):
        ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ImportError as error:
    raise ImportError(
        f"cupola.testing.strategies needs hypothesis and NumPy: pip install hypothesis numpy ({error})"
    ) from error

if TYPE_CHECKING:
    import numpy as np
    from hypothesis.strategies import SearchStrategy

    from cupola import Array, LaunchConfig

    Layable = TypeVar("Layable", np.ndarray, Array)

__all__ = ["arrays", "device_arrays", "launch_shapes", "shapes", "sizes"]

LAYOUTS = ("plain", "reversed", "every second", "transposed")


def sizes(*, block: int = 256, max_size: int = 10_000, min_size: int = 1) -> SearchStrategy[int]:
    """Numbers of elements, often next to the sizes of warps and blocks.

    Parameters
    ----------
    block : int, optional
        The number of threads in a block of the kernel under test.
    max_size, min_size : int, optional
        The limits.

    Returns
    -------
    SearchStrategy
        Of ints.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(sizes(block=128), lambda n: n > 128)
    129
    """
    near = {unit * count + step for unit in (32, block) for count in (1, 2, 3) for step in (-1, 0, 1)}
    edges = sorted(n for n in near if min_size <= n <= max_size)
    anything = st.integers(min_size, max_size)
    return st.sampled_from(edges) | anything if edges else anything


def shapes(*, max_dims: int = 3, max_size: int = 10_000) -> SearchStrategy[tuple[int, ...]]:
    """Shapes of arrays with at least one element.

    Parameters
    ----------
    max_dims : int, optional
        The most dimensions, at least one.
    max_size : int, optional
        The most elements.

    Returns
    -------
    SearchStrategy
        Of tuples of ints.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(shapes(), lambda shape: len(shape) == 2)
    (1, 1)
    """

    def extents(dims: int) -> SearchStrategy[tuple[int, ...]]:
        if dims == 1:
            return st.tuples(sizes(max_size=max_size))
        side = max(1, int(max_size ** (1 / dims) + 1e-9))
        return st.tuples(*[st.integers(1, side)] * dims)

    return st.integers(1, max_dims).flatmap(extents)


def launch_shapes(
    *, max_blocks: int = 64, max_threads: int = 1024, max_dims: int = 3, shared_memory: int = 0
) -> SearchStrategy[LaunchConfig]:
    """Configurations that every device can launch: for kernels that must work with any grid and block.

    Parameters
    ----------
    max_blocks : int, optional
        The most blocks in the grid.
    max_threads : int, optional
        The most threads in a block.
    max_dims : int, optional
        The most dimensions of grid and block, 1 to 3.
    shared_memory : int, optional
        Bytes of dynamic shared memory.

    Returns
    -------
    SearchStrategy
        Of configurations.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(launch_shapes(), lambda shape: shape.block[0] > 32).block
    (33, 1, 1)
    """
    from cupola import LaunchConfig

    def extents(limit: int) -> SearchStrategy[tuple[int, int, int]]:
        # The last ones first: the first extent, which is the one that counts, is most often large.
        def first(y: int, z: int) -> SearchStrategy[tuple[int, int, int]]:
            return st.tuples(st.integers(1, limit // (y * z)), st.just(y), st.just(z))

        def second(z: int) -> SearchStrategy[tuple[int, int, int]]:
            return st.integers(1, min(8, limit // z) if max_dims > 1 else 1).flatmap(lambda y: first(y, z))

        return st.integers(1, min(4, limit) if max_dims > 2 else 1).flatmap(second)

    return st.builds(
        LaunchConfig, grid=extents(max_blocks), block=extents(max_threads), shmem_size=st.just(shared_memory)
    )


def arrays(
    dtype: Any,
    shape: SearchStrategy[tuple[int, ...]] | tuple[int, ...] | int | None = None,
    *,
    elements: SearchStrategy[Any] | None = None,
    contiguous: bool = True,
) -> SearchStrategy[np.ndarray]:
    """NumPy arrays for kernels.

    Parameters
    ----------
    dtype : dtype
        The type of the elements.
    shape : SearchStrategy or tuple or int, optional
        Their shapes; by default those of `sizes`, in one dimension.
    elements : SearchStrategy, optional
        The elements; by default any that are finite.
    contiguous : bool, optional
        Whether the elements are in one piece. If not, arrays are often reversed, transposed, or every second element of
        another.

    Returns
    -------
    SearchStrategy
        Of arrays.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(arrays("int32", 3), lambda x: x.min() > 0).tolist()
    [1, 1, 1]
    """
    return _laid_out(dtype, shape, elements, contiguous, lambda values: values)


def device_arrays(
    dtype: Any,
    shape: SearchStrategy[tuple[int, ...]] | tuple[int, ...] | int | None = None,
    *,
    elements: SearchStrategy[Any] | None = None,
    contiguous: bool = True,
) -> SearchStrategy[Array]:
    """Arrays on the current device, or on device 0 where none is current.

    Parameters
    ----------
    dtype : dtype
        The type of the elements.
    shape : SearchStrategy or tuple or int, optional
        As for `arrays`.
    elements : SearchStrategy, optional
        As for `arrays`.
    contiguous : bool, optional
        As for `arrays`.

    Returns
    -------
    SearchStrategy
        Of arrays.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(device_arrays("float32", 2), lambda x: True)
    <Array shape=(2,) dtype=float32: [0. 0.]>
    """

    def make(values: np.ndarray) -> Array:
        from cupola import Device

        device = Device()
        device.set_current()
        return device.array(values)

    return _laid_out(dtype, shape, elements, contiguous, make)


def _laid_out(
    dtype: Any, shape: Any, elements: Any, contiguous: bool, make: Callable[[np.ndarray], Layable]
) -> SearchStrategy[Layable]:
    import numpy

    kind = numpy.dtype(dtype)
    if shape is None:
        shape = sizes().map(lambda size: (size,))
    if elements is None:
        finite: dict[str, Any] = {"allow_nan": False, "allow_infinity": False} if kind.kind in "fc" else {}
        elements = hnp.from_dtype(kind, **finite)
    values = hnp.arrays(kind, shape, elements=elements, fill=elements)
    layouts = st.just("plain") if contiguous else st.sampled_from(LAYOUTS)
    return st.builds(lambda array, layout: _lay_out(array, layout, make), values, layouts)


def _lay_out(values: np.ndarray, layout: str, make: Callable[[np.ndarray], Layable]) -> Layable:
    """An array that `make` makes with the values, in memory as `layout` says."""
    import numpy

    if layout == "plain" or values.ndim == 0:
        return make(values)
    if layout == "reversed":
        return make(values[::-1].copy())[::-1]
    if layout == "every second":
        return make(numpy.repeat(values, 2, axis=0))[::2]
    return make(values.T.copy()).T
