"""``cupyx.scipy.sparse``: sparse matrices on the device, made of arrays, and a kernel for products with dense ones."""

from __future__ import annotations

from typing import Any as _Any

from cupola.standins.cupyx.scipy.sparse._base import SparseEfficiencyWarning as SparseEfficiencyWarning
from cupola.standins.cupyx.scipy.sparse._base import SparseWarning as SparseWarning
from cupola.standins.cupyx.scipy.sparse._base import spmatrix as spmatrix
from cupola.standins.cupyx.scipy.sparse._classes import coo_array as coo_array
from cupola.standins.cupyx.scipy.sparse._classes import coo_matrix as coo_matrix
from cupola.standins.cupyx.scipy.sparse._classes import csc_array as csc_array
from cupola.standins.cupyx.scipy.sparse._classes import csc_matrix as csc_matrix
from cupola.standins.cupyx.scipy.sparse._classes import csr_array as csr_array
from cupola.standins.cupyx.scipy.sparse._classes import csr_matrix as csr_matrix
from cupola.standins.cupyx.scipy.sparse._classes import dia_array as dia_array
from cupola.standins.cupyx.scipy.sparse._classes import dia_matrix as dia_matrix
from cupola.standins.cupyx.scipy.sparse._classes import sparray as sparray
from cupola.standins.cupyx.scipy.sparse._construct import block_array as block_array
from cupola.standins.cupyx.scipy.sparse._construct import block_diag as block_diag
from cupola.standins.cupyx.scipy.sparse._construct import bmat as bmat
from cupola.standins.cupyx.scipy.sparse._construct import diags as diags
from cupola.standins.cupyx.scipy.sparse._construct import diags_array as diags_array
from cupola.standins.cupyx.scipy.sparse._construct import eye as eye
from cupola.standins.cupyx.scipy.sparse._construct import eye_array as eye_array
from cupola.standins.cupyx.scipy.sparse._construct import find as find
from cupola.standins.cupyx.scipy.sparse._construct import get_index_dtype as get_index_dtype
from cupola.standins.cupyx.scipy.sparse._construct import hstack as hstack
from cupola.standins.cupyx.scipy.sparse._construct import identity as identity
from cupola.standins.cupyx.scipy.sparse._construct import issparse as issparse
from cupola.standins.cupyx.scipy.sparse._construct import isspmatrix as isspmatrix
from cupola.standins.cupyx.scipy.sparse._construct import isspmatrix_coo as isspmatrix_coo
from cupola.standins.cupyx.scipy.sparse._construct import isspmatrix_csc as isspmatrix_csc
from cupola.standins.cupyx.scipy.sparse._construct import isspmatrix_csr as isspmatrix_csr
from cupola.standins.cupyx.scipy.sparse._construct import isspmatrix_dia as isspmatrix_dia
from cupola.standins.cupyx.scipy.sparse._construct import kron as kron
from cupola.standins.cupyx.scipy.sparse._construct import kronsum as kronsum
from cupola.standins.cupyx.scipy.sparse._construct import matrix_transpose as matrix_transpose
from cupola.standins.cupyx.scipy.sparse._construct import permute_dims as permute_dims
from cupola.standins.cupyx.scipy.sparse._construct import rand as rand
from cupola.standins.cupyx.scipy.sparse._construct import random as random
from cupola.standins.cupyx.scipy.sparse._construct import random_array as random_array
from cupola.standins.cupyx.scipy.sparse._construct import spdiags as spdiags
from cupola.standins.cupyx.scipy.sparse._construct import swapaxes as swapaxes
from cupola.standins.cupyx.scipy.sparse._construct import tril as tril
from cupola.standins.cupyx.scipy.sparse._construct import triu as triu
from cupola.standins.cupyx.scipy.sparse._construct import vstack as vstack

__name__ = "cupyx.scipy.sparse"
_INSTEAD = {
    "bsr_matrix": "csr_matrix is there",
    "dok_matrix": "coo_matrix and csr_matrix are there",
    "lil_matrix": "csr_matrix is there, whose elements can be set",
    "load_npz": "scipy.sparse has it: csr_matrix(scipy.sparse.load_npz(file)) copies to the device",
    "save_npz": "scipy.sparse has it: x.get() is the matrix there",
}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    from cupola.numpy._known import nearest

    if name in ("csgraph", "linalg"):
        return import_module(f"{__spec__.name}.{name}")
    near = "" if name.startswith("_") else nearest(name, globals(), _INSTEAD.get(name))
    raise AttributeError(f"cupola's stand-in for CuPy has no cupyx.scipy.sparse.{name}{near}")
