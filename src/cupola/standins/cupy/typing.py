"""Names for annotations."""

from typing import Any

from numpy.typing import ArrayLike as ArrayLike
from numpy.typing import DTypeLike as DTypeLike

from cupola.numpy._ndarray import ndarray

NBitBase = Any
NDArray = ndarray
