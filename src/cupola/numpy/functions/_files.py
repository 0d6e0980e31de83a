"""Files of arrays, and arrays as text: NumPy reads and writes them on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from cupola.numpy._ndarray import array, ndarray
from cupola.numpy._operations import MEMORY

__all__ = [
    "array2string", "array_repr", "array_str", "fromfile", "fromiter", "fromstring", "genfromtxt", "load", "loadtxt",
    "save", "savetxt", "savez", "savez_compressed",
]  # fmt: skip


def _host(value: Any) -> Any:
    return value.to_numpy() if isinstance(value, ndarray) else value


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """As ``repr`` with the options of ``numpy.array_repr``."""
    return numpy.array_repr(_host(arr), max_line_width, precision, suppress_small)


def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """As ``str`` with the options of ``numpy.array_str``."""
    return numpy.array_str(_host(a), max_line_width, precision, suppress_small)


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The elements as text, as ``numpy.array2string``."""
    return numpy.array2string(_host(a), *args, **kwargs)


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file of NumPy's, as ``numpy.save``."""
    numpy.save(file, _host(arr), allow_pickle=True if allow_pickle is None else allow_pickle)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to an archive of NumPy's, as ``numpy.savez``."""
    numpy.savez(file, *map(_host, args), **{name: _host(one) for name, one in kwds.items()})


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to a compressed archive of NumPy's, as ``numpy.savez_compressed``."""
    numpy.savez_compressed(file, *map(_host, args), **{name: _host(one) for name, one in kwds.items()})


def savetxt(fname: Any, X: Any, *args: Any, **kwargs: Any) -> None:
    """Write an array as text, as ``numpy.savetxt``."""
    numpy.savetxt(fname, _host(X), *args, **kwargs)


class Archive:
    """An archive of arrays, each of which is copied to the device when it is asked for.

    Parameters
    ----------
    opened : numpy.lib.npyio.NpzFile
        The archive as NumPy opens it.
    """

    def __init__(self, opened: Any) -> None:
        self.npz_file = opened

    @property
    def files(self) -> list[str]:
        """list of str: the names."""
        return list(self.npz_file.files)

    def keys(self) -> list[str]:
        """The names."""
        return self.files

    def __getitem__(self, key: str) -> Any:
        return _loaded(self.npz_file[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, key: object) -> bool:
        return key in self.files

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.npz_file.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: Any = None) -> Any:
    """Read an array, or an archive of arrays, as ``numpy.load``.

    Of a pickle it is what was pickled. Arrays of types that the device has not, as of objects, stay on the host.
    """
    return _loaded(numpy.load(file, mmap_mode, bool(allow_pickle)))


def _loaded(found: Any) -> Any:
    """What NumPy has read: arrays of numbers on the device, archives of them, all else as it is."""
    if isinstance(found, numpy.lib.npyio.NpzFile):
        return Archive(found)
    if not isinstance(found, numpy.ndarray) or found.dtype.char not in MEMORY:
        return found
    return array(found)


def _read(name: str) -> Any:
    theirs = getattr(numpy, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        found = theirs(*args, **kwargs)
        return list(map(array, found)) if isinstance(found, list) else array(found)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``numpy.{name}``, and then a copy to the device."
    return function


fromfile, fromiter, fromstring, loadtxt, genfromtxt = map(
    _read, ("fromfile", "fromiter", "fromstring", "loadtxt", "genfromtxt")
)
