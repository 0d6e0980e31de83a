from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

def register_argument_type(cls: type[_T], read: Callable[[_T], tuple[int, int]]) -> None: ...
def register_handle_type(cls: type[_T], read: Callable[[_T], int], keep: Callable[[_T], object]) -> None: ...
