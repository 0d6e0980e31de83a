"""cupyx.scipy.sparse of the stand-in for CuPy: the results of dense matrices, and SciPy's formats and errors."""

from __future__ import annotations

import sys

from tests import processes

# An expression of sparse matrices, and the same of dense ones with NumPy. A and B are csr, C is A as csc, O as coo,
# I a dia; R is A as an array; D, E, S, J are A, B, a square and I in NumPy, and d is D on the device.
SAME = """
A; D | C; D | O; D | R; D | I; J | A.T; D.T | C.T; D.T | O.T; D.T | I.T; J.T | A.tocsc(); D | C.tocsr(); D
O.tocsc(); D
A.tocoo(); D | A.todia(); D | I.tocsr(); J | A.todense(); D | C.tocoo(); D | sp.csr_matrix(d); D | sp.csc_matrix(A); D
A @ v; D @ h | A * v; D @ h | C @ v; D @ h | O @ v; D @ h | I @ v; J @ h | A @ d.T; D @ D.T | v @ A.T; h @ D.T
w @ A; numpy.arange(3.0) @ D | d.T @ A; D.T @ D | R @ v; D @ h
A @ B.T; D @ E.T | A * B.T; D @ E.T | C @ C.T; D @ D.T | S ** 3; T @ T @ T | S ** 0; numpy.eye(3) | R * R; D * D
A + B; D + E | A - C; D * 0 | A + d; 2 * D | d - A; D - D | A * 2; D * 2 | 2 * A; 2 * D | A / 2; D / 2 | -A; -D
abs(A); abs(D) | A.multiply(B); D * E | A.multiply(d); D * D | A.multiply(v); D * h | A.power(2); D ** 2
A / d.clip(1); D / D.clip(1)
A.sum(); D.sum() | A.sum(0); D.sum(0, keepdims=True) | A.sum(1); D.sum(1, keepdims=True) | R.sum(0); D.sum(0)
A.mean(0); D.mean(0, keepdims=True) | A.max(); D.max() | A.min(); D.min() | A.max(0); D.max(0, keepdims=True)
A.min(1); D.min(1, keepdims=True) | A.argmax(); D.argmax() | A.diagonal(); D.diagonal() | A.diagonal(1); D.diagonal(1)
A.trace(); D.trace() | A.getnnz(0); (D != 0).sum(0) | A.getnnz(1).astype(int); (D != 0).sum(1)
A.maximum(B); numpy.maximum(D, E)
A.minimum(0); numpy.minimum(D, 0) | A > 0; D > 0 | A == B; D == E | A < B; D < E | A != B; D != E | A >= 1; D >= 1
A[0]; D[[0]] | A[-1]; D[[-1]] | A[0, 1]; D[0, 1] | A[:2]; D[:2] | A[::-1, 1:]; D[::-1, 1:] | A[:, 1]; D[:, [1]]
A[:, [3, 0]]; D[:, [3, 0]] | A[[0, 2], [1, 2]]; D[[0, 2], [1, 2]][None] | A[A > 0]; D[D > 0][None]
C[1:, 2:]; D[1:, 2:]
A[cp.array([True, False, True])]; D[[0, 2]] | A[[[0], [2]], [1, 2]]; D[[[0], [2]], [1, 2]] | C[[0, 2]]; D[[0, 2]]
A[0, [1, 3]]; D[[0]][:, [1, 3]] | A[[0, 2], 1]; D[[0, 2]][:, [1]]
A.getrow(2); D[[2]] | A.getcol(2); D[:, [2]] | A.reshape(2, 6); D.reshape(2, 6) | A.sin(); numpy.sin(D)
A.sign(); numpy.sign(D)
(A * 1j).conj(); (D * 1j).conj() | (A * 1j).H; (D * 1j).conj().T | (A * 1j).imag; D | A.astype("f4"); D.astype("f4")
sp.eye(2, 3, 1); numpy.eye(2, 3, 1) | sp.identity(2); numpy.eye(2)
sp.diags([1.0, 2.0], [0, 1], shape=(2, 2)); [[1.0, 2], [0, 1]]
sp.spdiags(cp.ones((2, 3)), [0, 1], 3, 3); numpy.eye(3) + numpy.eye(3, k=1) | sp.kron(A, S); numpy.kron(D, T)
sp.hstack([A, B]); numpy.hstack([D, E]) | sp.vstack([A, C]); numpy.vstack([D, D]) | sp.tril(A); numpy.tril(D)
sp.triu(A, 1); numpy.triu(D, 1) | sp.bmat([[A, None], [None, B]]).tocsr()[3:, 4:]; E
sp.block_diag([A, B]).tocsr()[:3, :4]; D
sp.kronsum(S, S); numpy.kron(numpy.eye(3), T) + numpy.kron(T, numpy.eye(3))
sp.csr_matrix((2, 3)) @ cp.ones(3); numpy.zeros(2)
sp.coo_matrix((cp.ones(3), (cp.array([0, 0, 1]), cp.array([1, 1, 0])))).tocsr(); [[0.0, 2], [1, 0]]
sp.csr_matrix((cp.ones(2), cp.array([1, 0]), cp.array([0, 1, 2]))); [[0.0, 1], [1, 0]] | sp.random(9, 9, 0.5).nnz; 40
"""
CHANGED = """
X[0, 0] = 7.0; Y[0, 0] = 7 | X[1] = 2.0; Y[1] = 2 | X[[0, 1], [0, 1]] = cp.array([8.0, 9.0]); Y[[0, 1], [0, 1]] = 8, 9
X[:2, :2] = 3.0; Y[:2, :2] = 3 | X[X > 0] = 1.0; Y[Y > 0] = 1 | X.setdiag(9.0); numpy.fill_diagonal(Y, 9)
X *= 2; Y *= 2
X += B; Y += E | X.data[:] = 1.0; Y[Y != 0] = 1 | X.eliminate_zeros(); Y + 0 | X.sum_duplicates(); Y + 0
X.sort_indices(); Y + 0
"""
REFUSED = """
A @ cp.ones(3): ValueError dimension mismatch: (3, 4) and (3,)
A + S: ValueError inconsistent shapes
A + 1: NotImplementedError adding a nonzero scalar
A @ numpy.ones(4): TypeError an array of NumPy beside a sparse matrix of the device: cupy.asarray
A[5]: IndexError row (5) out of range
A[0, 0, 0]: IndexError invalid number of indices
A[1.5]: IndexError arrays used as indices
len(A): TypeError sparse matrix length is ambiguous
bool(A): ValueError The truth value
A ** 2: TypeError sparse matrix is not square
A.tocsd: AttributeError 'csr_matrix' object has no attribute 'tocsd'; did you mean 'tocsr'
A.tolil(): NotImplementedError sparse matrices as lists are not there: elements of tocsr
A.asformat("bsr"): ValueError Format bsr is unknown
sp.csr_matix: AttributeError cupola's stand-in for CuPy has no cupyx.scipy.sparse.csr_matix; did you mean 'csr_matrix'
sp.lil_matrix: AttributeError cupola's stand-in for CuPy has no cupyx.scipy.sparse.lil_matrix; csr_matrix is there
sp.csr_matrix(cp.arange(3)): ValueError Only bool, float32, float64, complex64 and complex128 are supported, not int64
sp.csr_matrix(cp.ones((2, 2, 2))): ValueError expected dimension
sp.csr_matrix([[1.0]]): ValueError Unsupported initializer format: list; arrays of the device (cupy.asarray
sp.csr_matrix((3,)): ValueError Unsupported initializer format
sp.csr_matrix((-1, 2)): ValueError 'shape' elements cannot be negative
sp.csr_matrix((cp.ones(2), cp.array([0, 7]), cp.array([0, 1, 2])), shape=(2, 2)): ValueError indices must be from 0 to 1
sp.csr_matrix((cp.ones(2), cp.array([0, 1]), cp.array([0, 9])), shape=(1, 2)): ValueError Last value of index pointer
sp.coo_matrix((cp.ones(1), (cp.array([5]), cp.array([0]))), shape=(2, 2)): ValueError row index exceeds
sp.vstack([A, S]): ValueError incompatible column dimensions
linalg.nothing: AttributeError cupola's stand-in for CuPy has no cupyx.scipy.sparse.linalg.nothing
linalg.norm(v): TypeError input is not sparse
linalg.cg(A, w): ValueError expected square matrix
"""
PROGRAM = (
    f"""
SAME, CHANGED, REFUSED = {SAME!r}, {CHANGED!r}, {REFUSED!r}
"""
    + """
import pickle
import cupy as cp
import cupyx.scipy.sparse as sp
import numpy
from cupyx.scipy.sparse import linalg

D = numpy.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, -4, 0]])
E = numpy.array([[1, 0, 0, 2], [0, 5, 0, 0], [0, 0, 4, 0.0]])
T = D[:, :3]
J = numpy.array([[1.0, 6, 0, 0], [0, 2, 7, 0], [0, 0, 3, 8]])
d, v, w, h = cp.asarray(D), cp.arange(4.0), cp.arange(3.0), numpy.arange(4.0)
A, B, C, O, R = sp.csr_matrix(d), sp.csr_matrix(cp.asarray(E)), sp.csc_matrix(d), sp.coo_matrix(d), sp.csr_array(d)
S = sp.csr_matrix(cp.asarray(T))
I = sp.dia_matrix((cp.asarray([[1.0, 2, 3, 4], [5, 6, 7, 8]]), cp.asarray([0, 1])), shape=(3, 4))


def dense(x):
    x = x.toarray() if sp.issparse(x) else x
    return x.get() if isinstance(x, cp.ndarray) else numpy.asarray(x)


def rows(text):
    return [part.split(";") for line in text.strip().splitlines() for part in line.split(" | ")]


for ours, theirs in rows(SAME):
    found, right = dense(eval(ours)), numpy.asarray(eval(theirs))
    assert found.dtype == right.dtype and found.shape == right.shape, (ours, found, right)
    numpy.testing.assert_allclose(found, right, 1e-13, 1e-13, err_msg=ours)
for form in ("csr", "csc"):
    for ours, theirs in rows(CHANGED):
        X, Y = A.asformat(form).copy(), D.copy()
        exec(ours.strip())
        exec(theirs.strip())
        numpy.testing.assert_array_equal(dense(X), Y, err_msg=ours)
numpy.testing.assert_array_equal(dense(A), D)  # none of these has changed it
for line in REFUSED.strip().splitlines():
    text, told = line.rsplit(": ", 1) if line.count(": ") == 1 else line.split(": ", 1)
    try:
        eval(text)
    except Exception as error:
        assert f"{type(error).__name__} {error}".startswith(told), (text, error)
    else:
        raise AssertionError(text)

formats = {"A.T": "csc", "C.T": "csr", "A @ B.T": "csr", "A + C": "csr", "A.multiply(d)": "csr", "I.T": "csc",
           "sp.eye(3)": "dia",
           "sp.tril(A)": "coo", "sp.vstack([A, B])": "csr", "C[:, :2]": "csc", "A.max(0)": "coo"}
for text, name in formats.items():
    assert eval(text).format == name, text
assert type(R.T).__name__ == "csc_array" and sp.issparse(R) and not sp.isspmatrix(R) and sp.isspmatrix_csc(C)
assert (A.indices.dtype, A.nnz, A.shape, A.ndim, A.count_nonzero()) == (numpy.int32, 4, (3, 4), 2, 4)
assert "(0, 1)\t1.5" in str(A) and A.has_canonical_format and I.nnz == 6
numpy.testing.assert_array_equal(dense(pickle.loads(pickle.dumps(C))), D)
assert [one.tolist() for one in A.nonzero()] == [one.tolist() for one in D.nonzero()]

n = 20
K = sp.diags([cp.full(n - 1, -1.0), cp.full(n, 2.5), cp.full(n - 1, -1.0)], [-1, 0, 1], format="csr")
b = cp.arange(float(n))
seen = []
for system in (K, linalg.aslinearoperator(K), linalg.LinearOperator(K.shape, lambda x: K @ x)):
    x, info = linalg.cg(system, b, rtol=1e-12, callback=seen.append)
    assert info == 0 and float(abs(K @ x - b).max()) < 1e-9
assert seen and linalg.cg(K, b, maxiter=2)[1] == 2
whole = dense(K)
for order in (None, 1, -1, numpy.inf):
    numpy.testing.assert_allclose(float(linalg.norm(K, order)), numpy.linalg.norm(whole, order))
numpy.testing.assert_allclose(linalg.norm(K, axis=0).get(), numpy.linalg.norm(whole, axis=0))

try:
    import scipy.sparse
except ImportError:
    pass
else:
    assert type(A.get()) is scipy.sparse.csr_matrix and type(I.get()) is scipy.sparse.dia_matrix
    numpy.testing.assert_array_equal(dense(sp.csc_matrix(C.get())), D)
    lu = lambda k, b: linalg.splu(k.tocsc()).solve(b)
    for solve in (linalg.spsolve, lambda *given: linalg.gmres(*given, rtol=1e-12)[0], lu):
        assert float(abs(K @ solve(K, b) - b).max()) < 1e-9
    assert float(abs(linalg.eigsh(K, k=1)[0] - numpy.linalg.eigvalsh(whole)[-1:].item()).max()) < 1e-9
    assert int(sp.csgraph.connected_components(K)[0]) == 1
"""
)


def test_sparse_matrices(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "cupola", "run", "--cupy", str(program)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr


def test_products_of_unsorted_and_repeated_places(tmp_path):
    """Elements of one place count together, in any order, whatever is computed."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import cupy as cp, cupyx.scipy.sparse as sp, numpy
lists = cp.array([1.0, 2.0, 4.0]), cp.array([2, 0, 2]), cp.array([0, 3, 3])
x = sp.csr_matrix(lists, shape=(2, 3))
right = numpy.array([[2.0, 0, 5], [0, 0, 0]])
for found in (x, x.tocsc(), x.tocoo(), x.T.T, x + sp.csr_matrix((2, 3)), x[:], x @ sp.eye(3)):
    numpy.testing.assert_array_equal(found.toarray().get(), right)
numpy.testing.assert_array_equal((x @ cp.ones(3)).get(), [7, 0])
assert x.nnz == 3 and not x.has_sorted_indices and float(x[0, 2]) == 5 and float(x.max()) == 5
x.sum_duplicates()
assert x.nnz == 2 and x.has_canonical_format and x.data.tolist() == [2, 5]
"""
    )
    command = [sys.executable, "-m", "cupola", "run", "--cupy", str(program)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
