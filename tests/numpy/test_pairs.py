"""Ufuncs with two results, types that ufuncs resolve, and signatures. NumPy says what is right."""

from __future__ import annotations

import pickle

import numpy
import pytest

import cupola.numpy as np

F = numpy.array([2.5, numpy.nan, -1.0, 1e-310, numpy.inf, 0.0, -0.0, -7.75])
I = numpy.array([7, -7, 0, 3, 5, -1, 100, -100], numpy.int8)  # noqa: E741
MASK = numpy.array([True, False] * 4)

# Calls of the namespace n; f, i and m are the arrays above, o and p are arrays for results.
CASES = """
n.divmod(i, 3)
n.divmod(i, i[::-1] * 0 + 2)
n.divmod(f[:4], 2.0)
n.divmod(7, i + 2)
n.divmod(i, 3, dtype="f4")
n.divmod(i > 0, i < 50)
n.divmod(i, 3, o, p, where=m)
n.divmod(i, 3, out=(o, None), where=m)[0]
n.divmod(o, 4, out=(p, o), where=m)
n.divmod(i, i, out=(o, p), where=i > 50)
n.divmod.outer(i[:3], i[3:5] + 1)
n.divmod(i, i * 0)
n.modf(f)
n.modf(i)
n.modf(f.astype("f2"))
n.modf(f, where=m, out=(o, p))
n.modf(f[:2], o[:2])
n.frexp(f)
n.frexp(f.astype("f4"))
n.frexp(f.astype("f2"))
n.frexp(i)
n.frexp(f, out=(o, None))
n.frexp(3)
n.add(i, i, signature="ll->l"), n.add(i, 1, signature=(None, None, "f4"))
""".strip().splitlines()

BAD = """
n.divmod(i)
n.divmod(i, 1, o, p, o)
n.divmod(i, 1, o, out=(o, p))
n.divmod(i, 1, out=o)
n.divmod(i, 1, out=(o,))
n.divmod(f, 1, out=(o.astype(int), p))
n.divmod(f + 1j, 1)
n.divmod(i, i, out=(o[:3], p))
n.divmod.reduce(i)
n.divmod.accumulate(i)
n.divmod.at(i, 0, 1)
n.frexp.outer(i, i)
n.add(i, i, signature="d->d")
n.add(i, i, signature="ll->l", dtype="l")
""".strip().splitlines()


def arrays(n):
    return {
        "n": n, "f": n.asarray(F), "i": n.asarray(I), "m": n.asarray(MASK), "o": n.asarray(numpy.arange(8.0)),
        "p": n.asarray(numpy.arange(8.0)[::-1].copy()),
    }  # fmt: skip


def result(text, n):
    with numpy.errstate(all="ignore"):
        found = eval(text, arrays(n))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("text", CASES)
def test_results_are_those_of_numpy(text):
    for wanted, found in zip(result(text, numpy), result(text, np), strict=True):
        assert found.dtype == numpy.asarray(wanted).dtype
        numpy.testing.assert_array_equal(found.to_numpy(), wanted)


@pytest.mark.parametrize("text", BAD)
def test_what_numpy_refuses_is_refused(text):
    with pytest.raises((TypeError, ValueError)) as theirs:
        result(text, numpy)
    with pytest.raises((TypeError, ValueError)) as ours:
        result(text, np)
    assert issubclass(ours.type, theirs.type.__bases__ if theirs.type.__module__ == "numpy" else theirs.type)


@pytest.mark.parametrize("name", ["divmod", "modf", "frexp"])
def test_they_look_like_those_of_numpy(name):
    ours, theirs = getattr(np, name), getattr(numpy, name)
    for attribute in ("__name__", "nin", "nout", "nargs", "identity", "signature"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert set(ours.types) < set(theirs.types)
    assert ours.ntypes == len(ours.types)
    assert repr(ours) == repr(theirs)
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_functions_of_numpy_give_both_results():
    x, q, r = np.asarray(I), np.zeros(8), np.zeros(8)
    made = numpy.divmod(x, 3, out=(q, r))
    assert made[0] is q
    numpy.testing.assert_array_equal(r.to_numpy(), numpy.remainder(I, 3))
    numpy.testing.assert_array_equal(numpy.divmod.outer(x, x[:1])[1].to_numpy(), numpy.divmod.outer(I, I[:1])[1])


@pytest.mark.parametrize("name", ["add", "sqrt", "less", "power", "bitwise_and", "divmod", "frexp", "ldexp"])
@pytest.mark.parametrize("dtypes", ["bb", "b?", "ef", "lL", "FD", "db"])
@pytest.mark.parametrize("more", [{}, {"casting": "no"}, {"signature": "dd->d"}, {"reduction": True}])
def test_types_are_resolved_as_by_numpy(name, dtypes, more):
    ours, theirs = getattr(np, name), getattr(numpy, name)
    given = (*[numpy.dtype(one) for one in dtypes[: ours.nin]], *[None] * ours.nout)
    if more.get("reduction"):
        given = (None, *given[1:2], None)
    try:
        wanted = theirs.resolve_dtypes(given, **more)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            ours.resolve_dtypes(given, **more)
    else:
        assert ours.resolve_dtypes(given, **more) == wanted


def test_numbers_of_python_give_way():
    assert np.multiply.resolve_dtypes((numpy.dtype("f4"), int, None)) == (numpy.dtype("f4"),) * 3


def test_types_that_do_not_exist_here_are_refused():
    with pytest.raises(TypeError, match="has no elements of"):
        np.add.resolve_dtypes((numpy.dtype("g"), numpy.dtype("g"), None))
