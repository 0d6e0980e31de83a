"""`assert_allclose`: numbers on the device, compared on the host, with the first differences in the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SHOWN = 8
"""How many differences an error shows."""

# Relative and absolute: what some hundred roundings of the type may add up to.
TOLERANCES = {2: (1e-3, 1e-5), 4: (1e-5, 1e-6), 8: (1e-7, 1e-12)}
BFLOAT16 = (1.6e-2, 1e-5)


def assert_allclose(
    actual: Any, desired: Any, rtol: float | None = None, atol: float | None = None, *, equal_nan: bool = True
) -> None:
    """Raise an AssertionError that shows the first differences, if two arrays are not equal up to a tolerance.

    Parameters
    ----------
    actual, desired
        Arrays of a device (of cupola, or of any library with DLPack or the CUDA array interface), of NumPy, numbers, or
        lists of them. Work of all streams of the device is waited for.
    rtol, atol : float, optional
        Elements may differ by ``atol + rtol * abs(desired)``. By default what suits the less precise type of the two:
        0.001 and 0.00001 for 16 bits, 0.00001 and 0.000001 for 32 bits, 1e-7 and 1e-12 for 64 bits, and nothing for
        integers.
    equal_nan : bool, optional
        Whether NaN equals NaN.

    Raises
    ------
    AssertionError
        They differ, in values or in shape.

    Examples
    --------
    >>> from cupola import Device
    >>> from cupola.testing import assert_allclose
    >>> dev = Device()
    >>> dev.set_current()
    >>> assert_allclose(dev.full(3, 1.5), 1.5)
    >>> assert_allclose(dev.array([1.0, 2.0]), [1.0, 2.5])
    Traceback (most recent call last):
    AssertionError: 1 of 2 elements differs by more than 1e-12 + 1e-07 * |desired|
      [1]  actual 2.0  desired 2.5  difference 0.5
    """
    import numpy

    __tracebackhide__ = True
    got, expected = _on_host(actual), _on_host(desired)
    if expected.ndim and got.shape != expected.shape:
        raise AssertionError(f"actual has shape {got.shape}, desired {expected.shape}")
    expected = numpy.broadcast_to(expected, got.shape)
    for name, values in (("actual", got), ("desired", expected)):
        if not numpy.can_cast(values.dtype, complex) and "float" not in values.dtype.name:
            raise TypeError(f"{name} is an array of {values.dtype}, which has no differences: compare it with ==")
    default = _tolerances(got.dtype, expected.dtype)
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    if rtol == 0 and atol == 0:
        bad = got != expected
        if equal_nan:
            bad &= ~((got != got) & (expected != expected))
    else:
        bad = ~numpy.isclose(_wide(got), _wide(expected), rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bad.any():
        raise AssertionError(_describe(got, expected, bad, rtol, atol))


def _on_host(obj: Any) -> np.ndarray:
    import numpy

    from cupola import Array, Device

    if isinstance(obj, Array):
        return obj.to_numpy()
    if hasattr(obj, "__cuda_array_interface__") or (
        hasattr(obj, "__dlpack_device__") and obj.__dlpack_device__()[0] != 1
    ):
        device = Device()
        device.set_current()
        device.sync()
        with device.create_stream() as stream:
            return device.array(obj, stream=stream).to_numpy(stream=stream)
    return numpy.asarray(obj)


def _tolerances(one: np.dtype, other: np.dtype) -> tuple[float, float]:
    found = [
        (BFLOAT16 if t.name == "bfloat16" else TOLERANCES.get(_bytes(t), (0.0, 0.0)))
        for t in (one, other)
        if _rounds(t)
    ]
    return max(found, default=(0.0, 0.0))


def _rounds(kind: np.dtype) -> bool:
    return kind.kind in "fc" or "float" in kind.name


def _bytes(kind: np.dtype) -> int:
    return kind.itemsize // 2 if kind.kind == "c" else kind.itemsize


def _wide(values: np.ndarray) -> np.ndarray:
    """The values as a type that has their differences."""
    return values.astype(complex if values.dtype.kind == "c" else "f8")


def _describe(got: np.ndarray, expected: np.ndarray, bad: np.ndarray, rtol: float, atol: float) -> str:
    import numpy

    places = numpy.argwhere(bad)[:SHOWN]
    count = int(bad.sum())
    allowed = f"by more than {atol:g} + {rtol:g} * |desired|" if rtol or atol else "at all"
    lines = [f"{count} of {bad.size} elements {'differs' if count == 1 else 'differ'} {allowed}"]
    rows = []
    for place in map(tuple, places.tolist()):
        left, right = got[place].item(), expected[place].item()
        rows.append((f"[{', '.join(map(str, place))}]", str(left), str(right), _difference(left, right)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, left, right, difference in rows:
        text = (
            f"  {index:<{widths[0]}}  actual {left:<{widths[1]}}  desired {right:<{widths[2]}}  difference {difference}"
        )
        lines.append(text)
    if count > len(rows):
        lines.append(f"  ... and {count - len(rows)} more")
    return "\n".join(lines)


def _difference(left: Any, right: Any) -> str:
    try:
        return f"{abs(left - right):g}"
    except (TypeError, OverflowError):
        return "?"
