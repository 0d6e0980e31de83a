"""The math libraries of the CPU device beside NumPy and SciPy, which call OpenBLAS, LAPACK and pocketfft themselves.

    CUPOLA_DEVICE=cpu python -m benchmarks.math_libraries [--seconds S] [--json FILE] [NAME ...]

Both sides use all cores, take turns, and are checked against each other after one run. A figure is the best of many
runs: of a call of the library and the wait for its end, or of the function of NumPy or SciPy. The ratio is the CPU
device's time over theirs, so lower is better. Needs ``numpy scipy scipy-openblas64``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu_device.__main__ import processor
from benchmarks.programs.__main__ import best_times, geometric_mean
from cupola import Device
from cupola.bindings import cublas, cufft, cusolver_dn, cusparse, driver

R_32F, R_64F, R_16F = 0, 1, 2


class Memory:
    """Buffers on the device, and copies to and from them."""

    def __init__(self) -> None:
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.kept: list[Any] = []

    def __int__(self) -> int:
        return int(self.stream.handle)

    def put(self, array: Any) -> int:
        """The address of a copy of the array's bytes, in the order in which they are."""
        flat = np.ascontiguousarray(array.ravel(order="K")).view(np.uint8)
        self.kept.append(self.device.allocate(flat.nbytes, stream=self.stream))
        address = int(self.kept[-1].handle)
        driver.cuMemcpyHtoDAsync(address, flat, flat.nbytes, int(self))
        self.stream.sync()
        return address

    def get(self, address: int, like: Any) -> Any:
        flat = np.empty(like.nbytes, np.uint8)
        driver.cuMemcpyDtoHAsync(flat, address, flat.nbytes, int(self))
        self.stream.sync()
        return flat.view(like.dtype).reshape(like.shape, order="F" if like.flags.f_contiguous else "C")

    def copy(self, to: int, source: int, size: int) -> None:
        driver.cuMemcpyDtoDAsync(to, source, size, int(self))


@dataclass
class Row:
    """One comparison: what the CPU device runs, what stands beside it, and how far their results are apart."""

    ours: Callable[[], None]
    theirs: Callable[[], Any]
    difference: Callable[[], float]
    limit: float


def normal(*shape: int, dtype: Any) -> Any:
    values = np.random.default_rng(1).standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * values[::-1]
    return np.asfortranarray(values.astype(dtype))


def apart(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / max(1.0, float(np.abs(expected).max())))


# ---- products of matrices ------------------------------------------------------------------------------------------


def gemm(memory: Memory, n: int, dtype: str, batch: int = 1) -> Row:
    handle = cublas.create()
    cublas.set_stream(handle, int(memory))
    a, b = (normal(n, n * batch, dtype=dtype) for _ in range(2))
    on_a, on_b, on_c = memory.put(a), memory.put(b), memory.put(np.zeros_like(a))
    one, zero = np.ones(1, "f" if dtype == "e" else dtype), np.zeros(1, "f" if dtype == "e" else dtype)
    fixed = handle, 0, 0, n, n, n, one
    code = {"e": R_16F, "f": R_32F, "d": R_64F}[dtype]

    def ours() -> None:
        if batch > 1:
            cublas.sgemm_strided_batched(*fixed, on_a, n, n * n, on_b, n, n * n, zero, on_c, n, n * n, batch)
        else:
            compute = cublas.ComputeType.COMPUTE_64F if dtype == "d" else cublas.ComputeType.COMPUTE_32F
            cublas.gemm_ex(*fixed, on_a, code, n, on_b, code, n, zero, on_c, code, n, compute, -1)
        memory.stream.sync()

    stacks = [np.ascontiguousarray(x.T).reshape(batch, n, n) for x in (a, b)]
    wide = [x.astype("f") for x in (a, b)]

    def theirs() -> Any:
        if batch > 1:  # each matrix of the stack is the transpose of one in columns
            return stacks[1] @ stacks[0]
        if dtype == "e":  # NumPy has no product of halves but a loop: as a program would do it
            return (a.astype("f") @ b.astype("f")).astype("e")
        return a @ b

    def difference() -> float:
        found = memory.get(on_c, a)
        if batch > 1:
            return apart(np.ascontiguousarray(found.T).reshape(batch, n, n), theirs())
        return apart(found, wide[0] @ wide[1] if dtype == "e" else theirs())

    return Row(ours, theirs, difference, 1e-2 if dtype == "e" else 1e-4)


# ---- Fourier transforms --------------------------------------------------------------------------------------------


def fft(memory: Memory, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> Row:
    from scipy import fft as transforms

    x = np.ascontiguousarray(normal(*shape, dtype=dtype))
    kind = {"F": cufft.Type.C2C, "D": cufft.Type.Z2Z}[dtype]
    plan = cufft.plan2d(*shape, kind) if len(axes) > 1 else cufft.plan1d(shape[-1], kind, x.size // shape[-1])
    cufft.set_stream(plan, int(memory))
    on_x, on_y = memory.put(x), memory.put(np.zeros_like(x))
    execute = cufft.exec_c2c if dtype == "F" else cufft.exec_z2z

    def ours() -> None:
        execute(plan, on_x, on_y, -1)
        memory.stream.sync()

    def theirs() -> Any:
        return transforms.fftn(x, axes=axes, workers=-1)

    return Row(ours, theirs, lambda: apart(memory.get(on_y, x), theirs()), 1e-4)


# ---- solvers -------------------------------------------------------------------------------------------------------


def solver(memory: Memory, name: str, n: int) -> Row:
    from scipy import linalg

    handle = cusolver_dn.create()
    cusolver_dn.set_stream(handle, int(memory))
    a = normal(n, n, dtype="d")
    if name in ("potrf", "syevd"):
        a = np.asfortranarray(a @ a.T + n * np.eye(n))
    on_a, work_a = memory.put(a), memory.put(a)
    values, info = memory.put(np.zeros(n)), memory.put(np.zeros(4, np.int32))
    u, v = memory.put(np.zeros_like(a)), memory.put(np.zeros_like(a))
    size = {
        "getrf": lambda: cusolver_dn.dgetrf_buffer_size(handle, n, n, work_a, n),
        "potrf": lambda: cusolver_dn.dpotrf_buffer_size(handle, 0, n, work_a, n),
        "syevd": lambda: cusolver_dn.dsyevd_buffer_size(handle, 1, 0, n, work_a, n, values),
        "gesvd": lambda: cusolver_dn.dgesvd_buffer_size(handle, n, n),
    }[name]()
    work = memory.put(np.zeros(max(size, 1)))

    def ours() -> None:
        memory.copy(work_a, on_a, a.nbytes)
        if name == "getrf":
            cusolver_dn.dgetrf(handle, n, n, work_a, n, work, values, info)
        elif name == "potrf":
            cusolver_dn.dpotrf(handle, 0, n, work_a, n, work, size, info)
        elif name == "syevd":
            cusolver_dn.dsyevd(handle, 1, 0, n, work_a, n, values, work, size, info)
        else:
            cusolver_dn.dgesvd(handle, ord("A"), ord("A"), n, n, work_a, n, values, u, n, v, n, work, size, 0, info)
        memory.stream.sync()

    theirs: Callable[[], Any] = {
        "getrf": lambda: linalg.lu_factor(a)[0],
        "potrf": lambda: linalg.cholesky(a, lower=True),
        "syevd": lambda: linalg.eigh(a, driver="evd"),
        "gesvd": lambda: linalg.svd(a, lapack_driver="gesvd"),
    }[name]

    def difference() -> float:
        if name in ("getrf", "potrf"):
            found = memory.get(work_a, a)
            return apart(np.tril(found) if name == "potrf" else found, theirs())
        return apart(memory.get(values, np.zeros(n)), theirs()[0 if name == "syevd" else 1])

    return Row(ours, theirs, difference, 1e-8)


# ---- sparse matrices -----------------------------------------------------------------------------------------------


def sparse(memory: Memory, side: int, columns: int) -> Row:
    """The five-point Laplacian of a square grid times a vector, or times a matrix in columns."""
    from scipy import sparse as matrices

    line = matrices.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
    one_by_one = matrices.identity(side)
    a = matrices.csr_matrix(matrices.kron(line, one_by_one) + matrices.kron(one_by_one, line))
    n = side * side
    x = normal(n, columns, dtype="d")
    handle = cusparse.create()
    cusparse.set_stream(handle, int(memory))
    index, one, zero = cusparse.IndexType.INDEX_32I, np.ones(1), np.zeros(1)
    places = [memory.put(part) for part in (a.indptr, a.indices, a.data)]
    on_x, on_y = memory.put(x), memory.put(np.zeros_like(x))
    of_a = cusparse.create_csr(n, n, a.nnz, *places, index, index, 0, R_64F)
    if columns == 1:
        of_x, of_y = (cusparse.create_dn_vec(n, place, R_64F) for place in (on_x, on_y))
        operands: Any = (handle, 0, one, of_a, of_x, zero, of_y, R_64F, cusparse.SpMVAlg.DEFAULT)
        size, call = cusparse.sp_mv_buffer_size(*operands), cusparse.sp_mv
    else:
        of_x, of_y = (cusparse.create_dn_mat(n, columns, n, place, R_64F, 1) for place in (on_x, on_y))
        operands = (handle, 0, 0, one, of_a, of_x, zero, of_y, R_64F, cusparse.SpMMAlg.DEFAULT)
        size, call = cusparse.sp_mm_buffer_size(*operands), cusparse.sp_mm
    buffer = memory.put(np.zeros(max(size, 1), np.uint8))

    def ours() -> None:
        call(*operands, buffer)
        memory.stream.sync()

    def theirs() -> Any:
        return a @ x

    return Row(ours, theirs, lambda: apart(memory.get(on_y, x), theirs()), 1e-12)


ROWS: dict[str, Callable[[Memory], Row]] = {
    "GEMM 2048, float": lambda m: gemm(m, 2048, "f"),
    "GEMM 2048, double": lambda m: gemm(m, 2048, "d"),
    "GEMM 2048, half": lambda m: gemm(m, 2048, "e"),
    "GEMM 128, float": lambda m: gemm(m, 128, "f"),
    "GEMM 64, float, batch of 1000": lambda m: gemm(m, 64, "f", 1000),
    "FFT 2^20, complex float": lambda m: fft(m, (1 << 20,), (0,), "F"),
    "FFT 2048 x 2048, complex double": lambda m: fft(m, (2048, 2048), (0, 1), "D"),
    "FFT 1024, batch of 4096, complex float": lambda m: fft(m, (4096, 1024), (1,), "F"),
    "LU 2048, double": lambda m: solver(m, "getrf", 2048),
    "Cholesky 2048, double": lambda m: solver(m, "potrf", 2048),
    "eigenvalues and vectors 768, symmetric, double": lambda m: solver(m, "syevd", 768),
    "SVD 512, double": lambda m: solver(m, "gesvd", 512),
    "SpMV, 1M rows of 5, double": lambda m: sparse(m, 1000, 1),
    "SpMM, 250K rows of 5, 16 columns, double": lambda m: sparse(m, 500, 16),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only rows with one of these in their names")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each side of a row")
    parser.add_argument("--json", type=Path, help="also write the times here")
    options = parser.parse_args()
    memory = Memory()
    if "CPU device" not in memory.device.name:
        parser.error("this is about the CPU device: set CUPOLA_DEVICE=cpu")
    print(f"{processor()}, {len(os.sched_getaffinity(0))} cores, NumPy {np.__version__}\n")
    print("| what | NumPy, SciPy | cupola | ratio |\n|---|---|---|---|")
    times, ratios = {}, []
    for name, make in ROWS.items():
        if options.names and not any(part in name for part in options.names):
            continue
        row = make(memory)
        row.ours()
        difference = row.difference()
        if not difference <= row.limit:
            raise SystemExit(f"{name}: the results differ by {difference:g}")
        ours, theirs = best_times([row.ours, row.theirs], options.seconds)
        times[name] = {"cupola": ours, "theirs": theirs}
        ratios.append(ours / theirs)
        print(f"| {name} | {theirs * 1e3:.3g} ms | {ours * 1e3:.3g} ms | {ours / theirs:.2f} |", flush=True)
        memory.kept.clear()
    print(f"\ngeometric mean of the ratios: {geometric_mean(ratios):.2f}")
    if options.json:
        options.json.write_text(json.dumps({"processor": processor(), "times": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()
