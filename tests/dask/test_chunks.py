"""Arrays of cupola.numpy as chunks of Dask's arrays give what NumPy's chunks give."""

import numpy
import pytest

da = pytest.importorskip("dask.array", reason="Dask is not installed")
import dask  # noqa: E402

import cupola.dask  # noqa: E402
import cupola.numpy as np  # noqa: E402

RNG = numpy.random.default_rng(3)
TABLE = RNG.random((12, 10))
ROW = RNG.random(24)
SQUARE = RNG.random((6, 6)) + 4 * numpy.eye(6)

# Expressions over x, whose chunks are 5 x 5.
OF_TABLE = """
x + 1; x * x.T[:10].sum(); -x[::-1, -3:]; x[2:9:2, 1]; x[[1, 5, 2]]; x[x[:, 0] > 0.5]; x[None]; abs(-x) ** 2; ~(x > 0.5)
x.sum(); x.sum(axis=0); x.mean(axis=1); x.std(); x.var(axis=0); x.max(); x.min(axis=1); x.prod(axis=0); x.argmax(axis=0)
da.argmin(x, axis=1); (x > 0.5).any(axis=0); (x > -1).all(); x.cumsum(axis=0); x.cumprod(axis=1); da.ptp(x, axis=0)
da.nansum(x); da.nanmean(x, axis=0); da.nanmax(x); da.median(x, axis=0); da.topk(x, 3, axis=0); da.average(x, axis=0)
da.exp(x) - np.sqrt(x); da.where(x > 0.5, x, 0); x.clip(0.2, 0.8); da.round(x, 2); da.isnan(x); x.astype("f4")
x.dot(x.T); x @ x.T; da.tensordot(x, x, axes=((0,), (0,))); da.einsum("ij,kj->ik", x, x); da.outer(x[0], x[1])
da.cov(x); da.corrcoef(x); da.linalg.norm(x); x.T; x.ravel(); x.rechunk((3, 10)) + 1; da.swapaxes(x, 0, 1)
da.flip(x, 0)
da.concatenate([x, x]); da.stack([x, x]); da.block([[x, x], [x, x]]); da.broadcast_to(x, (2, 12, 10)); da.tile(x, 2)
da.take(x, [3, 1, 7], axis=0); da.compress([True, False] * 6, x, axis=0); da.repeat(x, 2, axis=0); da.roll(x, 3, axis=1)
da.pad(x, 1); da.pad(x, ((1, 1), (0, 2)), mode="edge"); da.diff(x, axis=0); da.tril(x[:10])
da.digitize(x, numpy.array([0.2, 0.5])); da.zeros_like(x) + 1; da.ones_like(x); da.full_like(x, 3)
x + da.arange(10, chunks=5, like=x._meta); da.coarsen(numpy.sum, x, {0: 2, 1: 5}); x + numpy.float64(3)
x.map_blocks(lambda block: block * 2); da.map_overlap(lambda block: block * 1.0, x, depth=1, boundary="periodic")
x.map_overlap(lambda block: block + 1, depth={0: 1, 1: 0}, boundary="reflect"); numpy.add(x, 2); numpy.sum(x, axis=1)
"""
# Over x of 24 elements in chunks of 7.
OF_ROW = """
da.percentile(x, [10, 50]); da.bincount((x * 9).astype("i8"), minlength=9); da.histogram(x, bins=5, range=(0, 1))[0]
da.vdot(x, x); da.unique((x * 4).astype("i8")); x[x > 0.5]
da.fft.fft(x.rechunk(24)); da.fft.rfft(x.rechunk(24)).real; da.gradient(x)[0]; da.meshgrid(x, x)[0]; da.diag(x)
(x + 1j * x).imag; da.angle(x + 1j); da.logaddexp(x, x); da.choose((x > 0.5).astype("i8"), [x, x * 2])
da.select([x > 0.5, x > 0.2], [x, x * 3], 0); da.apply_gufunc(lambda a: a * 2, "()->()", x); da.ediff1d(x)
"""
# Over x, 6 x 6 in chunks of 3 x 6.
OF_SQUARE = """
abs(da.linalg.qr(x)[1]); da.linalg.svd(x)[1]; abs(da.linalg.tsqr(x)[1])
"""


def _cases() -> list:
    return list(_all())


def _all():
    for data, chunks, lines in ((TABLE, 5, OF_TABLE), (ROW, 7, OF_ROW), (SQUARE, (3, 6), OF_SQUARE)):
        for text in filter(None, (part.strip() for part in lines.replace("\n", ";").split(";"))):
            yield pytest.param(data, chunks, text, id=text)


@pytest.mark.parametrize(("data", "chunks", "text"), _cases())
def test_as_with_chunks_of_numpy(device, data, chunks, text):
    def evaluate(chunk, module):
        return eval(text, {"x": da.from_array(chunk, chunks=chunks), "da": da, "np": module, "numpy": numpy})

    with dask.config.set(scheduler="synchronous"):
        found, right = evaluate(np.asarray(data), np).compute(), evaluate(data, numpy).compute()
    assert type(found) is np.ndarray
    assert found.dtype == right.dtype and found.shape == right.shape
    numpy.testing.assert_allclose(found.to_numpy(), right, rtol=1e-10, atol=1e-12)


def test_assignment(device):
    x = da.from_array(np.asarray(TABLE), chunks=5).copy()
    x[2:4] = 0
    x[x > 0.7] = 1
    right = TABLE.copy()
    right[2:4] = 0
    right[right > 0.7] = 1
    numpy.testing.assert_array_equal(x.compute().to_numpy(), right)


def test_arrays_of_the_device_beside_those_of_dask(device):
    x, y = da.from_array(np.asarray(TABLE), chunks=5), np.asarray(TABLE)
    for made in (x + y, y + x, y - x):
        assert isinstance(made, da.Array)
        assert isinstance(made._meta, np.ndarray)
    numpy.testing.assert_allclose((y - x).compute().to_numpy(), 0)


def test_threads(device):
    """Several threads of one process compute chunks that share operands not yet computed."""
    chunk = np.asarray(TABLE) * 2 + 1
    x = da.stack([da.from_array(chunk, chunks=(3, 5)) + k for k in range(8)])
    with dask.config.set(scheduler="threads", num_workers=4):
        found = x.sum(axis=0).compute()
    numpy.testing.assert_allclose(found.to_numpy(), 8 * (TABLE * 2 + 1) + 28)


def test_chosen_by_name(device):
    with dask.config.set({"array.backend": "cupola"}):
        made = [
            da.ones((3, 4), chunks=2), da.zeros(5, dtype="i4"), da.full((2, 2), 7), da.arange(10, chunks=3),
            da.empty((2, 3)) * 0,
        ]  # fmt: skip
        right = [numpy.ones((3, 4)), numpy.zeros(5, "i4"), numpy.full((2, 2), 7), numpy.arange(10), numpy.zeros((2, 3))]
        for one, other in zip(made, right, strict=True):
            found = one.compute(scheduler="synchronous")
            assert type(found) is np.ndarray
            assert found.dtype == other.dtype
            numpy.testing.assert_array_equal(numpy.nan_to_num(found.to_numpy(), posinf=0, neginf=0), other)
        numbers = [da.random.default_rng(5).random((40, 50), chunks=20).compute() for _ in range(2)]
        assert type(numbers[0]) is np.ndarray
        numpy.testing.assert_array_equal(numbers[0].to_numpy(), numbers[1].to_numpy())
        assert 0.45 < float(numbers[0].mean()) < 0.55
        state = da.random.RandomState(3)
        older = [state.normal(5.0, size=(40, 50), chunks=20).compute(), da.random.random(30, chunks=10).compute()]
        assert [type(one) for one in older] == 2 * [np.ndarray] and 4.9 < float(older[0].mean()) < 5.1


def test_moved_to_the_device_and_back(device):
    host = da.from_array(TABLE, chunks=5)
    there = host.to_backend("cupola")
    assert type(there.compute()) is np.ndarray
    assert there.to_backend("cupola") is there
    back = (there + 1).to_backend("numpy").compute()
    assert type(back) is numpy.ndarray
    numpy.testing.assert_array_equal(back, TABLE + 1)


def test_names_and_sizes(device):
    from dask.base import tokenize
    from dask.sizeof import sizeof

    x = np.zeros((3, 5))
    assert sizeof(x) == 120
    assert tokenize(x) != tokenize(np.zeros((3, 5)))
    assert cupola.dask.Backend().default_bit_generator(3).spawn(2)


def test_random_numbers_beside_each_other_survive_pickling(device):
    import pickle

    bits = cupola.dask.Backend().default_bit_generator(11)
    copy = pickle.loads(pickle.dumps(bits))
    assert type(copy) is type(bits)
    one, other = (np.random.default_rng(each).random(6).to_numpy() for each in (bits, copy))
    numpy.testing.assert_array_equal(one, other)
