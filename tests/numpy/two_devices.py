"""Run by test_devices.py in a process that has two devices."""

import pickle

import numpy

import cupola
import cupola.numpy as np

ones = numpy.arange(8.0)
first, second = cupola.Device(0), cupola.Device(1)

second.set_current()
there = np.asarray(ones + 100)
later_there = there * 3
first.set_current()
x = np.asarray(ones)
pending = np.sqrt(x) + x
later = -x
chosen = x[np.asarray([2, 1])]  # pending as well
m = np.asarray(numpy.eye(3))
with first.stream():
    sine = np.sin(x)
    sine._compute_now()
places = np.asarray([1, 2])
spectrum = np.fft.fft(x)

second.set_current()
own = np.arange(8.0)

# What is read by the host, and views, may be of any device.
for found, right in (
    (x, ones),
    (x[::2], ones[::2]),
    (x.reshape(2, 4).T, ones.reshape(2, 4).T),
    (pending, numpy.sqrt(ones) + ones),
    (chosen, ones[[2, 1]]),
    (sine, numpy.sin(ones)),
    (spectrum.real, numpy.fft.fft(ones).real),
    (later_there, (ones + 100) * 3),
):
    numpy.testing.assert_allclose(found.to_numpy(), right, atol=1e-12)
assert float(x[3]) == 3 and str(x[:2]) == "[0. 1.]" and x.tolist() == ones.tolist()
assert x.device == pending.device == first and own.device == there.device == second
assert pickle.loads(pickle.dumps(x)).device == second
assert cupola.Device() == second

# Operations are not.
REFUSED = {
    "elementwise": lambda: x + 1,
    "of something pending": lambda: later * 2,
    "second operand": lambda: own + x,
    "scalar": lambda: own * x[2],
    "out": lambda: np.add(own, own, out=x),
    "operand with out": lambda: np.add(x, 1, out=own),
    "in place": lambda: x.__iadd__(1),
    "fill": lambda: x.fill(1),
    "assignment": lambda: own.__setitem__(slice(0, 2), x[:2]),
    "assignment to it": lambda: x.__setitem__(slice(0, 2), own[:2]),
    "sum": lambda: x.sum(),
    "mean": lambda: x.mean(),
    "max": lambda: x.max(axis=0),
    "cumsum": lambda: np.cumsum(x),
    "sort": lambda: np.sort(x),
    "argmax": lambda: x.argmax(),
    "nonzero": lambda: np.nonzero(x),
    "gather": lambda: own[places],
    "gather from it": lambda: x[np.asarray([1, 2])],
    "mask": lambda: x[own > 2],
    "small product": lambda: m @ m,
    "dot": lambda: np.dot(x, own),
    "solve": lambda: np.linalg.solve(m, m),
    "fft": lambda: np.fft.fft(x),
    "copy": lambda: x.copy(),
    "astype": lambda: x.astype("f4"),
    "concatenate": lambda: np.concatenate([own, x]),
}
for name, refused in REFUSED.items():
    try:
        refused()
    except ValueError as error:
        assert "an array of device 0 in an operation on the current device, 1" in str(error), (name, error)
        assert "cupola.Device(0).set_current()" in str(error) and "asarray(x)" in str(error), (name, error)
    else:
        raise AssertionError(name)
numpy.testing.assert_array_equal(x.to_numpy(), ones)
numpy.testing.assert_array_equal(own.to_numpy(), ones)

# Copies to the current device, and to a named one.
for moved in (np.asarray(x), np.array(x), np.asarray(x, "f8"), x.to_device(second), np.ascontiguousarray(x)):
    assert moved.device == second
    numpy.testing.assert_array_equal((moved + own).to_numpy(), 2 * ones)
assert np.array(x, "i4").dtype == "i4"
numpy.testing.assert_array_equal(np.asarray(x.reshape(2, 4).T[::2]).to_numpy(), ones.reshape(2, 4).T[::2])
numpy.testing.assert_array_equal(np.asarray(pending).to_numpy(), numpy.sqrt(ones) + ones)
back = own.to_device(first)
assert back.device == first and cupola.Device() == second and own.to_device(second) is own
numpy.testing.assert_array_equal(back.to_numpy(), ones)
try:
    np.asarray(x, copy=False)
except ValueError as error:
    assert "copy" in str(error)
else:
    raise AssertionError("asarray(copy=False)")

# A block of the current device does not matter for reading, or for copies.
waiting = [own * k for k in range(2, 5)]
first.set_current()
with first.stream():
    numpy.testing.assert_array_equal(waiting[0].to_numpy(), 2 * ones)
    numpy.testing.assert_array_equal((np.asarray(waiting[1]) + x).to_numpy(), 4 * ones)
    numpy.testing.assert_array_equal(np.asarray(own[::2]).to_numpy(), ones[::2])
    assert x.to_device(second).device == second and cupola.Device() == first
second.set_current()

# The stream of a block belongs to the current device.
with first.stream():
    try:
        own + 1
    except ValueError as error:
        assert "stream of the with block is of device 0" in str(error)
    else:
        raise AssertionError("the stream of another device")
    numpy.testing.assert_array_equal(x.to_numpy(), ones)

# A device that has been given access may take part.
first.memory_resource.peer_accessible_by = [1]
first.set_current()
x += 1  # for which the other device waits
second.set_current()
numpy.testing.assert_array_equal((x + own).to_numpy(), 2 * ones + 1)
x -= 1
assert float(x.sum()) == 28 and float((m @ m).sum()) == 3
np.add(x, 1, out=x)
numpy.testing.assert_array_equal(x.to_numpy(), ones + 1)
print("done")
