"""Fourier transforms with NumPy's interface, by cuFFT. Imported when it is first named."""

from __future__ import annotations

from typing import Any as _Any

from cupola.numpy.fft._transforms import fft as fft
from cupola.numpy.fft._transforms import fft2 as fft2
from cupola.numpy.fft._transforms import fftfreq as fftfreq
from cupola.numpy.fft._transforms import fftn as fftn
from cupola.numpy.fft._transforms import fftshift as fftshift
from cupola.numpy.fft._transforms import hfft as hfft
from cupola.numpy.fft._transforms import ifft as ifft
from cupola.numpy.fft._transforms import ifft2 as ifft2
from cupola.numpy.fft._transforms import ifftn as ifftn
from cupola.numpy.fft._transforms import ifftshift as ifftshift
from cupola.numpy.fft._transforms import ihfft as ihfft
from cupola.numpy.fft._transforms import irfft as irfft
from cupola.numpy.fft._transforms import irfft2 as irfft2
from cupola.numpy.fft._transforms import irfftn as irfftn
from cupola.numpy.fft._transforms import rfft as rfft
from cupola.numpy.fft._transforms import rfft2 as rfft2
from cupola.numpy.fft._transforms import rfftfreq as rfftfreq
from cupola.numpy.fft._transforms import rfftn as rfftn

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_INSTEAD = {
    "dct": "rfft of the mirrored array is it",
    "next_fast_len": "all lengths are fast whose prime factors are 2, 3, 5 and 7",
    "test": "pytest tests it",
}


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import missing

    raise missing(__name__, name, __all__, _INSTEAD)
