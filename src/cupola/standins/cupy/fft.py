"""Fourier transforms: the functions of cupola.numpy.fft."""

from typing import Any as _Any

from cupola.numpy.fft import fft as fft
from cupola.numpy.fft import fft2 as fft2
from cupola.numpy.fft import fftfreq as fftfreq
from cupola.numpy.fft import fftn as fftn
from cupola.numpy.fft import fftshift as fftshift
from cupola.numpy.fft import hfft as hfft
from cupola.numpy.fft import ifft as ifft
from cupola.numpy.fft import ifft2 as ifft2
from cupola.numpy.fft import ifftn as ifftn
from cupola.numpy.fft import ifftshift as ifftshift
from cupola.numpy.fft import ihfft as ihfft
from cupola.numpy.fft import irfft as irfft
from cupola.numpy.fft import irfft2 as irfft2
from cupola.numpy.fft import irfftn as irfftn
from cupola.numpy.fft import rfft as rfft
from cupola.numpy.fft import rfft2 as rfft2
from cupola.numpy.fft import rfftfreq as rfftfreq
from cupola.numpy.fft import rfftn as rfftn
from cupola.standins.cupy import _fft_config
from cupola.standins.cupy._names import OF_FFT as _INSTEAD

config = _fft_config


def __getattr__(name: str) -> _Any:
    from cupola.numpy._known import nearest

    near = "" if name.startswith("_") else nearest(name, globals(), _INSTEAD.get(name))
    raise AttributeError(f"cupola's stand-in for CuPy has no cupy.fft.{name}{near}")
