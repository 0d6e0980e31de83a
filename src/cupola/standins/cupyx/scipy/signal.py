"""``cupyx.scipy.signal``: functions of ``scipy.signal``, computed on the host."""

from __future__ import annotations

from typing import Any

from cupola.standins.cupyx.scipy._host import function

NAMES = [
    "abcd_normalize",
    "argrelextrema",
    "argrelmax",
    "argrelmin",
    "band_stop_obj",
    "bilinear",
    "bilinear_zpk",
    "bode",
    "buttap",
    "butter",
    "buttord",
    "cheb1ap",
    "cheb1ord",
    "cheb2ap",
    "cheb2ord",
    "cheby1",
    "cheby2",
    "check_COLA",
    "check_NOLA",
    "chirp",
    "choose_conv_method",
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "correlation_lags",
    "csd",
    "cspline1d",
    "cspline1d_eval",
    "cspline2d",
    "czt",
    "czt_points",
    "decimate",
    "deconvolve",
    "detrend",
    "ellip",
    "ellipap",
    "ellipord",
    "fftconvolve",
    "filtfilt",
    "find_peaks",
    "findfreqs",
    "firls",
    "firwin",
    "firwin2",
    "freqresp",
    "freqs",
    "freqs_zpk",
    "freqz",
    "freqz_sos",
    "freqz_zpk",
    "gammatone",
    "gauss_spline",
    "gausspulse",
    "get_window",
    "group_delay",
    "hilbert",
    "hilbert2",
    "iircomb",
    "iirdesign",
    "iirfilter",
    "iirnotch",
    "iirpeak",
    "istft",
    "kaiser_atten",
    "kaiser_beta",
    "kaiserord",
    "lfilter",
    "lfilter_zi",
    "lfiltic",
    "lombscargle",
    "lp2bp",
    "lp2bp_zpk",
    "lp2bs",
    "lp2bs_zpk",
    "lp2hp",
    "lp2hp_zpk",
    "lp2lp",
    "lp2lp_zpk",
    "max_len_seq",
    "medfilt",
    "medfilt2d",
    "minimum_phase",
    "normalize",
    "oaconvolve",
    "order_filter",
    "peak_prominences",
    "peak_widths",
    "periodogram",
    "qspline1d",
    "qspline1d_eval",
    "qspline2d",
    "resample",
    "resample_poly",
    "residue",
    "residuez",
    "savgol_coeffs",
    "savgol_filter",
    "sawtooth",
    "sepfir2d",
    "sos2tf",
    "sos2zpk",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "spectrogram",
    "spline_filter",
    "square",
    "stft",
    "sweep_poly",
    "symiirorder1",
    "symiirorder2",
    "tf2sos",
    "tf2zpk",
    "unique_roots",
    "unit_impulse",
    "upfirdn",
    "vectorstrength",
    "welch",
    "wiener",
    "zoom_fft",
    "zpk2sos",
    "zpk2tf",
]

WINDOWS = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine", "exponential",
    "flattop", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "get_window", "hamming", "hann",
    "kaiser", "nuttall", "parzen", "taylor", "triang", "tukey",
]  # fmt: skip

__all__ = ["NAMES", "WINDOWS"]


class _Windows:
    """``cupyx.scipy.signal.windows``."""

    def __getattr__(self, name: str) -> Any:
        return function("signal.windows", name, WINDOWS)

    def __dir__(self) -> list[str]:
        return WINDOWS


windows = _Windows()


def __getattr__(name: str) -> Any:
    globals()[name] = found = function("signal", name, NAMES)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
