"""Programs in nvmath-python, as its users write them: each compares its result with NumPy.

usage: cupola run --device cpu tests/ecosystem/nvmath_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import numpy as np
import nvmath.sparse
import scipy.sparse as matrices
from cuda.core import Device, Program, ProgramOptions
from nvmath import fft as transforms
from nvmath import linalg
from nvmath.linalg import advanced
from nvmath.linalg.advanced import MatmulEpilog

random = np.random.default_rng(7)


def normal(*shape, dtype="f"):
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def agree(found, expected, error=1e-4):
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=0, atol=error * scale)


# ---- products of matrices (cuBLASLt) -----------------------------------------------------------------------------


def matmul():
    """All types that NumPy has, rows and columns first, with C, and with vectors."""
    for dtype, error in (("e", 3e-3), ("f", 1e-5), ("d", 1e-13), ("F", 1e-5), ("D", 1e-13)):
        a, b, c = normal(40, 24, dtype=dtype), normal(24, 56, dtype=dtype), normal(40, 56, dtype=dtype)
        exact = a.astype("D" if dtype in "FD" else "d") @ b
        agree(advanced.matmul(a, b), exact, error)
        agree(advanced.matmul(np.asfortranarray(a), b), exact, error)
        agree(advanced.matmul(a, np.asfortranarray(b), c, alpha=2.0, beta=-0.5), 2 * exact - 0.5 * c, error)
    a, b = normal(40, 24), normal(24)
    agree(advanced.matmul(a, b), a @ b)
    conjugated = np.zeros((3,), dtype=advanced.matrix_qualifiers_dtype)
    conjugated["is_conjugate"][1] = True
    a, b = normal(16, 24, dtype="F"), normal(24, 8, dtype="F")
    agree(advanced.matmul(a, b.T.copy().T, qualifiers=conjugated), a @ b.conj())


def compute_types():
    a, b = normal(64, 48), normal(48, 32)
    for name in ("COMPUTE_32F", "COMPUTE_32F_PEDANTIC", "COMPUTE_32F_FAST_TF32", "COMPUTE_32F_FAST_16F"):
        options = {"compute_type": getattr(advanced.MatmulComputeType, name)}
        agree(advanced.matmul(a, b, options=options), a @ b, 5e-3)


def batches():
    """A stateful product: planned, tuned, with other operands, and told which algorithm to take."""
    a, b, c = normal(5, 32, 16), normal(5, 16, 24), normal(5, 32, 24)
    with advanced.Matmul(a, b, c, alpha=2.0, beta=0.5) as product:
        algorithms = product.plan()
        assert len(algorithms) >= 1
        agree(product.execute(), 2 * a @ b + 0.5 * c)
        product.autotune(iterations=2)
        agree(product.execute(algorithm=product.algorithms[0]), 2 * a @ b + 0.5 * c)
        a = a + 1
        product.reset_operands(a=a)
        agree(product.execute(), 2 * a @ b + 0.5 * c)
    agree(advanced.matmul(a[0], b), a[0] @ b)  # one matrix for all of the batch
    stream = Device().create_stream()
    agree(advanced.matmul(a, b, stream=stream), a @ b)


def eight_bits():
    """Numbers of eight bits, which NumPy has not, so tensors of PyTorch: types of results, scales, and a bias."""
    import torch

    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    a, b = torch.tensor(normal(64, 96)).to(e4m3), torch.tensor(normal(48, 96)).T
    exact = a.double().numpy() @ b.to(e4m3).double().numpy()
    scales = {"a": 0.5, "b": torch.full((1,), 4.0)}
    for name, error in (("CUDA_R_16BF", 4e-3), ("CUDA_R_16F", 5e-4), ("CUDA_R_32F", 1e-3)):
        options = {
            "result_type": nvmath.CudaDataType[name],
            "fast_accumulation": name == "CUDA_R_32F",
        }  # on a GPU: less exact
        result = advanced.matmul(a, b.to(e4m3), quantization_scales=scales, options=options)
        agree(result.double().numpy(), 2 * exact, error)
    scales["d"] = 0.25
    result, auxiliary = advanced.matmul(a, b.to(e4m3), quantization_scales=scales, options={"result_amax": True})
    agree(result.double().numpy(), 0.5 * exact, 0.04)
    agree(auxiliary["result_amax"].double().numpy(), np.abs(2 * exact).max(keepdims=True)[0], 1e-6)
    bias, options = torch.tensor(normal(64, 1)).bfloat16(), {"result_type": nvmath.CudaDataType.CUDA_R_16BF}
    result = advanced.matmul(
        a, b.to(e5m2), quantization_scales={"a": 1, "b": 1}, options=options,
        epilog=MatmulEpilog.RELU_BIAS, epilog_inputs={"bias": bias},
    )  # fmt: skip
    mixed = a.double().numpy() @ b.to(e5m2).double().numpy() + bias.double().numpy()
    agree(result.double().numpy(), np.maximum(mixed, 0), 4e-3)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def epilogs():
    a, b, bias = normal(64, 32), normal(32, 48), normal(64, 1)
    product = a.astype("d") @ b
    agree(advanced.matmul(a, b, epilog=MatmulEpilog.RELU), np.maximum(product, 0))
    agree(advanced.matmul(a, b, epilog=MatmulEpilog.GELU), gelu(product))
    given = {"bias": bias}
    agree(advanced.matmul(a, b, epilog=MatmulEpilog.BIAS, epilog_inputs=given), product + bias)
    agree(advanced.matmul(a, b, epilog=MatmulEpilog.RELU_BIAS, epilog_inputs=given), np.maximum(product + bias, 0))
    agree(advanced.matmul(a, b, epilog=MatmulEpilog.GELU_BIAS, epilog_inputs=given), gelu(product + bias))
    halves = advanced.matmul(a.astype("e"), b.astype("e"), epilog=MatmulEpilog.RELU)
    agree(halves, np.maximum(product, 0), 5e-3)


def gradients():
    """A layer's forward and backward pass: what the one leaves behind, the other takes."""
    a, b, bias = normal(64, 32), normal(32, 48), normal(64, 1)
    product = a.astype("d") @ b + bias
    given = {"bias": bias}
    forward, aux = advanced.matmul(a, b, epilog=MatmulEpilog.RELU_AUX_BIAS, epilog_inputs=given)
    agree(forward, np.maximum(product, 0))
    c, d = normal(64, 16), normal(16, 48)
    inputs = {"relu_aux": aux["relu_aux"]}
    backward, sums = advanced.matmul(c, d, epilog=MatmulEpilog.DRELU_BGRAD, epilog_inputs=inputs)
    expected = np.where(product >= 0, c @ d, 0)
    agree(backward, expected)
    agree(sums["drelu_bgrad"].ravel(), expected.sum(axis=1))
    forward, aux = advanced.matmul(a, b, epilog=MatmulEpilog.GELU_AUX_BIAS, epilog_inputs=given)
    agree(forward, gelu(product))
    agree(aux["gelu_aux"][:64], product)
    inputs = {"gelu_aux": aux["gelu_aux"]}
    backward, sums = advanced.matmul(c, d, epilog=MatmulEpilog.DGELU_BGRAD, epilog_inputs=inputs)
    slope = (gelu(product + 1e-5) - gelu(product - 1e-5)) / 2e-5
    agree(backward, slope * (c @ d))
    agree(sums["dgelu_bgrad"].ravel(), (slope * (c @ d)).sum(axis=1))
    _, sums = advanced.matmul(np.asfortranarray(a), b, epilog=MatmulEpilog.BGRADA)
    agree(sums["bgrada"].ravel(), a.sum(axis=1))
    _, sums = advanced.matmul(a, b, epilog=MatmulEpilog.BGRADB)
    agree(sums["bgradb"].ravel(), b.sum(axis=0))


# ---- matrices of every kind (cuBLAS) -----------------------------------------------------------------------------


def structured():
    """Symmetric and triangular matrices, stacks and lists of products."""
    general = linalg.GeneralMatrixQualifier.create()
    a, b = normal(32, 32), normal(32, 48)

    def multiply(qualifier):
        qualifiers = np.array([qualifier, general], dtype=linalg.matrix_qualifiers_dtype)
        return linalg.matmul(a, b, qualifiers=qualifiers, execution="cuda", options={"inplace": False})

    lower = linalg.FillMode.LOWER
    agree(multiply(linalg.SymmetricMatrixQualifier.create(uplo=lower)), (np.tril(a) + np.tril(a, -1).T) @ b)
    agree(multiply(linalg.TriangularMatrixQualifier.create(uplo=lower)), np.tril(a) @ b)
    a, b = normal(3, 16, 24), normal(3, 24, 8)
    agree(linalg.matmul(a, b, execution="cuda"), a @ b)
    left, right = [normal(16, 24), normal(5, 7)], [normal(24, 8), normal(7, 9)]
    for found, x, y in zip(linalg.matmul(left, right, execution="cuda"), left, right, strict=True):
        agree(found, x @ y)


def direct_solver():
    """One system, and a stack of them; a singular one is told."""
    for dtype, error in (("f", 1e-3), ("d", 1e-10), ("F", 1e-3), ("D", 1e-10)):
        a, b = normal(24, 24, dtype=dtype) + 6 * np.eye(24, dtype=dtype), normal(24, 3, dtype=dtype)
        agree(a @ linalg.direct_solver(a, np.asfortranarray(b)), b, error)
        agree(a @ linalg.direct_solver(a, b[:, 0].copy()), b[:, 0], error)
    a, b = normal(4, 24, 24, dtype="d") + 6 * np.eye(24), normal(4, 24, 3, dtype="d")
    agree(a @ linalg.direct_solver(a, b), b, 1e-10)
    systems, sides = list(a[:3]), list(b[:3])
    for matrix, solution, side in zip(systems, linalg.direct_solver(systems, sides), sides, strict=True):
        agree(matrix @ solution, side, 1e-10)
    with linalg.DirectSolver(a[0], b[0]) as solver:
        solver.plan()
        solver.factorize()
        agree(a[0] @ solver.solve(), b[0], 1e-10)
        solver.reset_operands(b=b[1])
        agree(a[0] @ solver.solve(), b[1], 1e-10)
        solver.reset_operands(a=a[2])
        solver.factorize()
        agree(a[2] @ solver.solve(), b[1], 1e-10)
    try:
        linalg.direct_solver(np.zeros((4, 4)), np.ones(4))
    except RuntimeError as error:
        assert "being 0" in str(error), error
    else:
        raise AssertionError("a matrix of zeros has been inverted")


# ---- Fourier transforms (cuFFT) ----------------------------------------------------------------------------------


def fft():
    z = normal(6, 20, 32, dtype="F")
    agree(transforms.fft(z, execution="cuda"), np.fft.fftn(z))
    agree(transforms.fft(z, axes=[1, 2], execution="cuda"), np.fft.fftn(z, axes=(1, 2)))
    agree(transforms.ifft(z.astype("D"), axes=[2], execution="cuda"), 32 * np.fft.ifft(z.astype("D")), 1e-12)
    x = normal(5, 30)
    agree(transforms.rfft(x, axes=[1], execution="cuda"), np.fft.rfft(x))
    half = np.fft.rfft(x).astype("F")
    agree(transforms.irfft(half, axes=[1], execution="cuda"), 30 * x)
    odd = np.fft.rfft(x[:, :29]).astype("F")
    options = {"last_axis_parity": "odd"}
    agree(transforms.irfft(odd, axes=[1], options=options, execution="cuda"), 29 * x[:, :29])
    with transforms.FFT(z, axes=[2], execution="cuda") as plan:
        plan.plan()
        forward = plan.execute(direction="forward")
        agree(forward, np.fft.fft(z))
        plan.reset_operand(forward)
        agree(plan.execute(direction="inverse"), 32 * z)


CALLBACK = """
struct __align__(8) complex { float x, y; };
__device__ complex cufftJITCallbackLoadComplex(void *data, unsigned long long at, void *, void *) {
    complex z = ((complex *)data)[at];
    return {2 * z.x, 2 * z.y};
}
"""


def fft_callbacks():
    """A transform of twice the numbers: what is loaded goes through a function of the user's."""
    options = ProgramOptions(arch=f"sm_{Device().arch}", link_time_optimization=True, relocatable_device_code=True)
    code = Program(CALLBACK, "c++", options).compile("ltoir").code
    z = normal(4, 64, dtype="F")
    prolog = transforms.DeviceCallable(ltoir=code)
    agree(transforms.fft(z, axes=[1], prolog=prolog, execution="cuda"), 2 * np.fft.fft(z))


# ---- sparse matrices (cuSPARSE) ----------------------------------------------------------------------------------


def sparse():
    """Sparse times dense, in the formats and types of SciPy, into the matrix that is given."""
    for dtype, error in (("f", 1e-5), ("d", 1e-13), ("F", 1e-5), ("D", 1e-13)):
        b, c = normal(30, 8, dtype=dtype), normal(40, 8, dtype=dtype)
        dense = np.where(random.random((40, 30)) < 0.2, normal(40, 30, dtype=dtype), 0).astype(dtype)
        for form in (matrices.csr_matrix, matrices.csc_matrix, matrices.coo_matrix, matrices.bsr_matrix):
            result = c.copy()
            nvmath.sparse.matmul(form(dense), b, result, alpha=2.0, beta=1.0)
            agree(result, 2 * dense @ b + c, error)


def sparse_solvers():
    """Sparse systems of SciPy's: all types, several right-hand sides, halves of symmetric matrices."""
    from nvmath.sparse import advanced as solvers

    kinds, views = solvers.DirectSolverMatrixType, solvers.DirectSolverMatrixViewType
    for dtype, error in (("f", 1e-5), ("d", 1e-12), ("F", 1e-5), ("D", 1e-12)):
        dense = np.where(random.random((60, 60)) < 0.1, normal(60, 60, dtype=dtype), 0).astype(dtype)
        dense += 8 * np.eye(60, dtype=dtype)
        b = np.asfortranarray(normal(60, 4, dtype=dtype))
        agree(dense @ solvers.direct_solver(matrices.csr_matrix(dense), b), b, error)
        whole = dense @ dense.conj().T
        kind = kinds.HPD if dtype in "FD" else kinds.SPD
        for view, part in ((views.FULL, whole), (views.LOWER, np.tril(whole)), (views.UPPER, np.triu(whole))):
            options = {"sparse_system_type": kind, "sparse_system_view": view}
            agree(whole @ solvers.direct_solver(matrices.csr_matrix(part), b, options=options), b, 100 * error)
    a, b = matrices.csr_matrix(dense), np.asfortranarray(normal(60, 2, dtype="D"))
    with solvers.DirectSolver(a, b) as solver:
        solver.plan()
        solver.factorize()
        agree(dense @ solver.solve(), b, error)
        other = a.copy()
        other.data *= 1.5
        solver.reset_operands(a=other, b=2 * b)
        solver.factorize()
        agree(dense @ solver.solve(), 2 * b / 1.5, error)
    half = np.tril(whole) - 3 * np.eye(60)  # some eigenvalues are negative
    options = {"sparse_system_type": kinds.HERMITIAN, "sparse_system_view": views.LOWER}
    with solvers.DirectSolver(matrices.csr_matrix(half), b, options=options) as solver:
        plan, info = solver.plan(), solver.factorize()
        values = np.linalg.eigvalsh(half)  # reads one triangle
        assert tuple(info.inertia) == ((values > 0).sum(), (values < 0).sum()), info.inertia
        for order in (plan.row_permutation, plan.col_permutation, info.row_permutation, info.col_permutation):
            assert sorted(order) == list(range(60))
    several = [8 * np.eye(n) + np.where(random.random((n, n)) < 0.1, normal(n, n), 0) for n in (20, 30, 40)]
    sides = [np.asfortranarray(normal(len(each), 2, dtype="d")) for each in several]
    found = solvers.direct_solver([matrices.csr_matrix(each) for each in several], sides)
    for each, x, side in zip(several, found, sides, strict=True):
        agree(each @ x, side, 1e-12)


PROGRAMS = {
    f.__name__: f for f in (
        matmul, compute_types, eight_bits, batches, epilogs, gradients, structured, direct_solver, fft, fft_callbacks,
        sparse, sparse_solvers,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
        print(name, "agrees with NumPy")
