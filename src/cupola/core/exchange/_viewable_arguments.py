"""Functions that take arrays of any library."""

from __future__ import annotations

from functools import wraps

from cupola.core.exchange._view import StridedMemoryView, _has_dlpack, _require_viewable

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


class ViewableArgument:
    """An argument of a decorated function, ready to be viewed once the stream is known."""

    __slots__ = ("_obj",)

    def __init__(self, obj: object) -> None:
        _require_viewable(obj)
        self._obj = obj

    @property
    def obj(self) -> Any:
        """object: the argument as the caller passed it."""
        return self._obj

    @property
    def has_dlpack(self) -> bool:
        """bool: whether the argument exports DLPack, rather than the CUDA array interface."""
        return _has_dlpack(self._obj)

    def view(self, stream_ptr: Any = None) -> StridedMemoryView:
        """View the argument.

        Parameters
        ----------
        stream_ptr : int
            The stream that will use the data, such as ``stream.handle``; -1 for none.

        Returns
        -------
        StridedMemoryView
        """
        return StridedMemoryView.from_any_interface(self._obj, stream_ptr)


def args_viewable_as_strided_memory(arg_indices: tuple[int, ...]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function receive arrays of any library as objects with a ``view(stream_ptr)`` method.

    Parameters
    ----------
    arg_indices : tuple of int
        Positions of the arguments to replace. They must be passed by position.

    Returns
    -------
    callable
        A decorator.

    Raises
    ------
    BufferError
        At the call, when such an argument has no exchange protocol.
    IndexError
        At the call, when it was not passed by position.

    Examples
    --------
    >>> @args_viewable_as_strided_memory((0,))
    ... def scale(array, stream):
    ...     view = array.view(stream.handle)
    ...     launch(stream, config, kernel, view.ptr, np.uint64(view.size))
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            replaced: list[Any] = list(args)
            for position in arg_indices:
                if not -len(replaced) <= position < len(replaced):
                    raise IndexError(
                        f"argument {position} of {function.__name__} must be passed by position to be viewed"
                    )
                replaced[position] = ViewableArgument(replaced[position])
            return function(*replaced, **kwargs)

        return wrapper

    return decorate
