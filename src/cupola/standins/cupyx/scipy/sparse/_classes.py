"""The classes of all formats: as matrices, and as arrays, whose ``*`` is elementwise."""

from __future__ import annotations

from cupola.standins.cupyx.scipy.sparse._base import CLASSES as _CLASSES
from cupola.standins.cupyx.scipy.sparse._compressed import csc_matrix as csc_matrix
from cupola.standins.cupyx.scipy.sparse._compressed import csr_matrix as csr_matrix
from cupola.standins.cupyx.scipy.sparse._coo import coo_matrix as coo_matrix
from cupola.standins.cupyx.scipy.sparse._dia import dia_matrix as dia_matrix


class sparray:
    """A sparse array: ``*`` and ``**`` are elementwise, and sums have one dimension."""

    _is_array = True


class csr_array(sparray, csr_matrix):
    __doc__ = csr_matrix.__doc__


class csc_array(sparray, csc_matrix):
    __doc__ = csc_matrix.__doc__


class coo_array(sparray, coo_matrix):
    __doc__ = coo_matrix.__doc__


class dia_array(sparray, dia_matrix):
    __doc__ = dia_matrix.__doc__


_CLASSES.update(
    {
        one.__name__: one
        for one in (
            csr_matrix, csc_matrix, coo_matrix, dia_matrix, csr_array, csc_array, coo_array, dia_array,
        )
    }
)  # fmt: skip
