"""``cupyx.scipy.fft``: Fourier transforms on the device; cosine and sine transforms by ``scipy.fft`` on the host."""

from __future__ import annotations

from typing import Any

from cupola.numpy import fft as _fft
from cupola.standins.cupyx.scipy._host import function

NAMES = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "fht",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ifht",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "next_fast_len",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# Those that arrays of the device have themselves, and how they name sizes and axes.
_OF_ONE_AXIS = ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")
_OF_TWO = ("fft2", "ifft2", "irfft2", "rfft2")
_OF_SEVERAL = ("fftn", "ifftn", "irfftn", "rfftn")

__all__ = ["NAMES", "get_fft_plan"]


class _Plan:
    """Stands for a plan of cuFFT, which the transforms keep themselves: nothing changes in its ``with`` block."""

    def __enter__(self) -> _Plan:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def get_fft_plan(a: Any, shape: Any = None, axes: Any = None, value_type: str = "C2C") -> _Plan:
    """What may be given as a plan. Transforms keep their plans without it.

    Parameters
    ----------
    a : ndarray
        What is to be transformed.
    shape, axes : optional
        Of the transform.
    value_type : str
        C2C, C2R or R2C.
    """
    if value_type not in ("C2C", "C2R", "R2C"):
        raise ValueError(f"value_type must be C2C, C2R or R2C, got {value_type!r}")
    return _Plan()


def _transform(name: str) -> Any:
    ours = getattr(_fft, name)

    def of_one_axis(
        x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False, norm: Any = None, *, plan: Any = None
    ) -> Any:
        return ours(x, n, axis, norm)

    def of_two(
        x: Any, s: Any = None, axes: Any = (-2, -1), overwrite_x: bool = False, norm: Any = None, *, plan: Any = None
    ) -> Any:
        return ours(x, s, axes, norm)

    def of_several(
        x: Any, s: Any = None, axes: Any = None, overwrite_x: bool = False, norm: Any = None, *, plan: Any = None
    ) -> Any:
        return ours(x, s, axes, norm)

    made = of_one_axis if name in _OF_ONE_AXIS else of_two if name in _OF_TWO else of_several
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"As ``scipy.fft.{name}``, on the device."
    return made


globals().update({name: _transform(name) for name in (*_OF_ONE_AXIS, *_OF_TWO, *_OF_SEVERAL)})
fftfreq, rfftfreq, fftshift, ifftshift = _fft.fftfreq, _fft.rfftfreq, _fft.fftshift, _fft.ifftshift


def __getattr__(name: str) -> Any:
    globals()[name] = found = function("fft", name, NAMES)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
