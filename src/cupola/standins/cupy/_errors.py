"""The errors of CuPy: the same classes and texts, with cupola's explanation behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cupola.bindings import driver as _driver
from cupola.bindings import runtime as _runtime
from cupola.bindings.utils import explain
from cupola.core.base._errors import CUDAError


class CUDARuntimeError(RuntimeError):
    """A call of the CUDA runtime failed.

    Parameters
    ----------
    status : int
        A ``cudaError_t``.
    reason : str, optional
        What is known besides; by default what the CPU device adds.
    """

    def __init__(self, status: int, reason: str | None = None) -> None:
        self.status = int(status)
        known = _runtime.cudaError_t(self.status)
        text = _runtime.cudaGetErrorString(known)[1].decode()
        super().__init__(f"{_runtime.cudaGetErrorName(known)[1].decode()}: {text}{_reason(self.status, reason)}")

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.status,)


class CUDADriverError(RuntimeError):
    """A call of the CUDA driver failed.

    Parameters
    ----------
    status : int
        A ``CUresult``.
    reason : str, optional
        What is known besides; by default what the CPU device adds.
    """

    def __init__(self, status: int, reason: str | None = None) -> None:
        self.status = int(status)
        known = _driver.CUresult(self.status)
        text = _driver.cuGetErrorString(known)[1].decode()
        super().__init__(f"{_driver.cuGetErrorName(known)[1].decode()}: {text}{_reason(self.status, reason)}")

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.status,)


class OutOfMemoryError(MemoryError):
    """No memory of the device is left, or a pool's limit is reached.

    Parameters
    ----------
    size, total : int
        Bytes that were wanted, and that the pool has.
    limit : int
        Of the pool; 0: none.
    """

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        self._arguments = (size, total, limit)
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))

    def __reduce__(self) -> tuple[type, tuple[int, int, int]]:
        return type(self), self._arguments


class CompileException(Exception):
    """CUDA C++ does not compile.

    Parameters
    ----------
    msg, source, name : str
        What the compiler says of which source; its name.
    options : tuple of str
        What it was given.
    backend : str
        Which compiler.
    """

    def __init__(self, msg: str, source: str, name: str, options: tuple[str, ...], backend: str = "nvrtc") -> None:
        super().__init__(msg)
        self._msg, self.source, self.name, self.options, self.backend = msg, source, name, options, backend

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self._msg, self.source, self.name, self.options, self.backend)

    def get_message(self) -> str:
        """What the compiler says."""
        return self._msg

    def dump(self, f: object) -> None:
        """Write the source with numbers of lines, and the message, to a file."""
        lines = self.source.split("\n")
        for number, line in enumerate(lines, 1):
            f.write(f"{number:0{len(str(len(lines)))}d} {line}\n")  # type: ignore[attr-defined]
        f.write(f"Error: {self._msg}\n")  # type: ignore[attr-defined]


def _reason(status: int, reason: str | None) -> str:
    """What is known besides, on lines of its own."""
    text = explain(status) if reason is None else reason
    return f"\n{text}" if text else ""


@contextlib.contextmanager
def as_cupy(error_class: type[CUDARuntimeError] | type[CUDADriverError]) -> Iterator[None]:
    """Raise cupola's errors of CUDA as those of CuPy, with what they say."""
    try:
        yield
    except CUDAError as error:
        if not error.status:
            raise
        raise error_class(error.status, str(error).partition("\n")[2]) from None


def checked(answer: tuple[object, ...]) -> object:
    """The results of a function of the runtime: none, one, or several.

    Raises
    ------
    CUDARuntimeError
        When its status is not success.
    """
    status, *results = answer
    if int(status):  # type: ignore[call-overload]
        _runtime.cudaGetLastError()
        raise CUDARuntimeError(int(status))  # type: ignore[call-overload]
    return None if not results else results[0] if len(results) == 1 else tuple(results)
