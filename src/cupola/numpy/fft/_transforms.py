"""Transforms along axes: each is one batch of transforms along the last axis, by a plan that is kept."""

from __future__ import annotations

import collections
import math
import threading
from typing import Any

import numpy

from cupola.bindings import cufft
from cupola.numpy._evaluate import current_stream, device
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import write
from cupola.numpy._ndarray import empty, into, ndarray, on, on_device, one_axis
from cupola.numpy._rows import as_rows, back
from cupola.numpy.functions._creation import array
from cupola.numpy.functions._shapes import roll

KEPT = 32  # plans of a thread

_threads = threading.local()

_EXECUTE: dict[tuple[str, str], tuple[Any, Any]] = {
    ("c", "F"): (cufft.Type.C2C, cufft.exec_c2c), ("c", "D"): (cufft.Type.Z2Z, cufft.exec_z2z),
    ("r", "F"): (cufft.Type.R2C, cufft.exec_r2c), ("r", "D"): (cufft.Type.D2Z, cufft.exec_d2z),
    ("h", "F"): (cufft.Type.C2R, cufft.exec_c2r), ("h", "D"): (cufft.Type.Z2D, cufft.exec_z2d),
}  # fmt: skip


def kept_plans() -> Any:
    """The plans of the current thread, those that were used last behind the others."""
    return _threads.__dict__.setdefault("plans", collections.OrderedDict())


def forget_plans() -> None:
    """Give back the plans of the current thread."""
    plans = kept_plans()
    here = device().device_id
    for key in [one for one in plans if one[0] == here]:
        current_stream().sync()  # they may be in use
        cufft.destroy(plans.pop(key))


def _plan(kind: Any, n: int, batch: int) -> int:
    """The plan of a batch of transforms of rows, for the current thread, device and stream."""
    plans = kept_plans()
    key = (device().device_id, int(kind), n, batch)
    plan = plans.pop(key, None)
    if plan is None:
        plan = cufft.plan_many(1, (n,), None, 1, n, None, 1, n, kind, batch)
        if len(plans) >= KEPT:
            current_stream().sync()  # it may be in use
            cufft.destroy(plans.popitem(last=False)[1])
    plans[key] = plan
    cufft.set_stream(plan, int(current_stream().handle))
    return int(plan)


def _length(x: ndarray, axis: int, n: int) -> ndarray:
    """The array with `n` elements along an axis: cut, or with zeros behind."""
    have = x.shape[axis]
    if have == n:
        return x
    before = (slice(None),) * axis
    if have > n:
        return x._part((*before, slice(0, n)))
    made = empty((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype)
    made.fill(0)
    write(made._part((*before, slice(0, have))), x)
    return made


def _scale(n: int, norm: str | None, forward: bool) -> float:
    how = norm or "backward"
    if how not in ("backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if how == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (how == "forward") == forward else 1.0


def _transform(x: Any, n: int | None, axis: int, norm: Any, kind: str, forward: bool, out: Any = None) -> ndarray:
    """One-dimensional transforms: `kind` is c, r (of real numbers) or h (to real numbers)."""
    values = on_device(x)
    axis = one_axis(axis, values.ndim)
    if kind == "r" and values.dtype.kind == "c":
        raise TypeError(f"ufunc 'rfft' did not contain a loop with signature matching types {values.dtype!r}")
    single = values.dtype.char in "efF"
    size = n if n is not None else 2 * (values.shape[axis] - 1) if kind == "h" else values.shape[axis]
    if size < 1:
        raise ValueError(f"Invalid number of FFT data points ({size}) specified.")
    given = numpy.dtype(("f" if single else "d") if kind == "r" else ("F" if single else "D"))
    padded = _length(values.astype(given, copy=False), axis, size // 2 + 1 if kind == "h" else size)
    rows, shape = as_rows(padded, axis)
    if kind == "h":
        rows = rows.copy()  # a transform to real numbers may destroy its input
        rows._compute_now()
    columns = size // 2 + 1 if kind == "r" else size
    to = numpy.dtype(("f" if single else "d") if kind == "h" else ("F" if single else "D"))
    made = empty((rows.shape[0], columns), to)
    if made.size:
        type_of, execute = _EXECUTE[kind, "F" if single else "D"]
        # Rows of real and of complex numbers have other lengths; those of each side follow each other.
        plan = _plan(type_of, size, rows.shape[0])
        more = () if kind != "c" else (cufft.CUFFT_FORWARD if forward else cufft.CUFFT_INVERSE,)
        if rows._plain().handle % (2 * rows.itemsize if kind == "r" else rows.itemsize):
            rows = rows.copy()  # cuFFT reads real numbers in pairs, and this view begins between two
        execute(plan, rows._plain().handle, made._plain().handle, *more)
    result = back(made, (*shape[:-1], columns), axis, values)
    factor = _scale(size, norm, forward)
    if factor != 1:
        result = result * to.type(factor)
    return into(out, result, "same_kind")


def fft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.fft``."""
    return _transform(a, n, axis, norm, "c", True, out)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.ifft``."""
    return _transform(a, n, axis, norm, "c", False, out)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.rfft``."""
    return _transform(a, n, axis, norm, "r", True, out)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.irfft``."""
    return _transform(a, n, axis, norm, "h", False, out)


_OTHER = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.hfft``."""
    return irfft(UFUNCS["conjugate"](on_device(a)), n, axis, _OTHER.get(norm, norm), out)


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.ihfft``."""
    made: ndarray = UFUNCS["conjugate"](rfft(a, n, axis, _OTHER.get(norm, norm)), out=out)
    return made


def _sizes(values: ndarray, s: Any, axes: Any, to_real: bool = False) -> tuple[list[int], list[int]]:
    if axes is None:
        chosen = list(range(values.ndim)) if s is None else list(range(values.ndim - len(s), values.ndim))
    else:
        chosen = [one_axis(axis, values.ndim) for axis in axes]
    sizes = [values.shape[axis] for axis in chosen] if s is None else list(s)
    if len(sizes) != len(chosen):
        raise ValueError("Shape and axes have different lengths.")
    if s is None and to_real and sizes:
        sizes[-1] = 2 * (values.shape[chosen[-1]] - 1)
    sizes = [values.shape[axis] if size == -1 else size for size, axis in zip(sizes, chosen, strict=True)]
    return sizes, chosen


def _several(x: Any, s: Any, axes: Any, norm: Any, forward: bool, out: Any) -> ndarray:
    made = on_device(x)
    for size, axis in reversed(list(zip(*_sizes(made, s, axes), strict=True))):
        made = _transform(made, size, axis, norm, "c", forward)
    return into(out, made, "same_kind")


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.fftn``."""
    return _several(a, s, axes, norm, True, out)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.ifftn``."""
    return _several(a, s, axes, norm, False, out)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.rfftn``."""
    values = on_device(a)
    sizes, chosen = _sizes(values, s, axes)
    made = rfft(values, sizes[-1], chosen[-1], norm)
    for size, axis in reversed(list(zip(sizes[:-1], chosen[:-1], strict=True))):
        made = _transform(made, size, axis, norm, "c", True)
    return into(out, made, "same_kind")


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.irfftn``."""
    made = on_device(a)
    sizes, chosen = _sizes(made, s, axes, True)
    for size, axis in zip(sizes[:-1], chosen[:-1], strict=True):
        made = _transform(made, size, axis, norm, "c", False)
    return irfft(made, sizes[-1], chosen[-1], norm, out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.fft2``."""
    return fftn(a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.ifft2``."""
    return ifftn(a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.rfft2``."""
    return rfftn(a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> ndarray:
    """As ``numpy.fft.irfft2``."""
    return irfftn(a, s, axes, norm, out)


def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """As ``numpy.fft.fftfreq``. The host computes them."""
    on(device)
    return array(numpy.fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> ndarray:
    """As ``numpy.fft.rfftfreq``. The host computes them."""
    on(device)
    return array(numpy.fft.rfftfreq(n, d), dtype)


def _shift(x: Any, axes: Any, sign: int) -> ndarray:
    values = on_device(x)
    chosen = tuple(range(values.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(values, tuple([sign * (values.shape[axis] // 2) for axis in chosen]), chosen)


def fftshift(x: Any, axes: Any = None) -> ndarray:
    """As ``numpy.fft.fftshift``."""
    return _shift(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> ndarray:
    """As ``numpy.fft.ifftshift``."""
    return _shift(x, axes, -1)
