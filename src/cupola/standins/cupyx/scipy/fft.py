"""``cupyx.scipy.fft``: functions of ``scipy.fft``, computed on the host."""

from __future__ import annotations

from typing import Any

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

__all__ = ["NAMES"]


def __getattr__(name: str) -> Any:
    globals()[name] = found = function("fft", name, NAMES)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
