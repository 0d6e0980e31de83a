from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

def register_argument_type(cls: type[T], read: Callable[[T], tuple[int, int]]) -> None: ...
