"""What lines of cuSPARSE use besides the bench's places: matrices, vectors and plans, made for one line each.

``csr("s")`` in a line is a descriptor of the matrix G with values of float32, ``csr("s", "L", base=1)`` one of the
lower triangle L with indices from one on. The same words mean the same descriptor as long as the line lasts.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from tools.mathlibs.bench import COMPLEX, TYPES, Bench, Driver, encode

CODES = {"h": 2, "b": 14, "s": 0, "d": 1, "c": 4, "z": 5, "q": 3, "i": 10, "k": 6, "g": 15}
BUFFER = 1 << 20

# Rows, columns, and the columns of the elements of each row.
MATRICES: dict[str, tuple[int, int, list[list[int]]]] = {
    "G": (4, 5, [[0, 2], [1, 3, 4], [], [0, 2, 4]]),  # general
    "B": (5, 4, [[1], [0, 2], [3], [], [0, 1, 3]]),  # what G can be multiplied with
    "K": (4, 5, [[0, 1], [1], [4], [2, 4]]),  # what G can be added to
    "L": (4, 4, [[0], [0, 1], [1, 2], [0, 2, 3]]),
    "U": (4, 4, [[0, 1, 3], [1, 2], [2, 3], [3]]),
    "F": (4, 4, [[0, 3], [0, 1, 2], [1, 2, 3], [0, 2, 3]]),  # both triangles
    "N": (4, 4, [[0], [0, 1], [1], [0, 3]]),  # no element of row 2 on the diagonal
    "X": (2, 3, [[0, 2], [1]]),  # of blocks
    "E": (4, 5, [[], [], [], []]),  # empty
}
SPARSE_VECTOR = [0, 2, 3, 7]
# Blocked ELL: columns of blocks of two rows of blocks; -1 is none.
ELL = {"V": [[0, 2], [1, -1]], "W": [[2, 1], [0, 1]]}


def _value(which: str, row: int, column: int, letter: str) -> complex:
    if row == column and which in "LUFN":
        return (2.0, -1.0, 0.5, 4.0)[row] if letter not in "iq" else 1
    part = 1.0 if letter in "iq" else 0.5
    real = ((row * 5 + column * 3 + 1) % 7 - 3) * part
    return complex(real, ((row + 2 * column) % 3 - 1) * part) if letter in COMPLEX else real


class Sparse:
    """The functions that make what a line uses."""

    def __init__(self, bench: Bench, driver: Driver) -> None:
        self._bench = bench
        self._arrays: dict[str, int] = {}  # name -> offset in the block
        block = bytearray()

        def put(name: str, data: bytes) -> None:
            self._arrays[name] = len(block)
            block.extend(data.ljust((len(data) + 255) // 256 * 256 or 256, b"\0"))

        for which, (rows, columns, lines) in MATRICES.items():
            elements = [(i, j) for i in range(rows) for j in lines[i]]
            turned = sorted((j, i) for i, j in elements)
            for base in (0, 1):
                for width, code in ((32, "i"), (64, "q")):
                    end = f"{which}{base}{width}"
                    by_row = [sum(len(line) for line in lines[:i]) + base for i in range(rows + 1)]
                    by_column = [sum(j < k for j, _ in turned) + base for k in range(columns + 1)]
                    for name, values in (
                        ("offsets", by_row),
                        ("indices", [j + base for _, j in elements]),
                        ("rows", [i + base for i, _ in elements]),
                        ("column_offsets", by_column),
                        ("column_indices", [i + base for _, i in turned]),
                    ):
                        put(name + end, struct.pack(f"{len(values)}{code}", *values))
            for letter in TYPES:
                put(
                    f"values{which}{letter}", b"".join(encode(letter, _value(which, i, j, letter)) for i, j in elements)
                )
                put(f"turned{which}{letter}", b"".join(encode(letter, _value(which, i, j, letter)) for j, i in turned))
        for base in (0, 1):
            for width, code in ((32, "i"), (64, "q")):
                put(f"places{base}{width}", struct.pack(f"4{code}", *(i + base for i in SPARSE_VECTOR)))
                for which, blocks in ELL.items():
                    put(
                        f"ell{which}{base}{width}",
                        struct.pack(f"4{code}", *(j + base if j >= 0 else j for row in blocks for j in row)),
                    )
        self._data = bytes(block)
        self._block = driver.allocate(len(block))
        driver.call("cuMemcpyHtoD_v2", self._block, self._data, len(block))
        bench.names["buf"] = driver.allocate(BUFFER)
        bench.names["buf2"] = driver.allocate(BUFFER)
        self._made: dict[Any, tuple[int, str]] = {}
        bench.before_line.append(self._clear)
        names = (
            "csr",
            "csc",
            "coo",
            "bsr",
            "bell",
            "vec",
            "mat",
            "spvec",
            "out",
            "spsv",
            "spsm",
            "spgemm",
            "spgeam",
            "arr",
            "legacy",
        )
        for name in names:
            bench.names[name] = getattr(self, name)

    def _clear(self) -> None:
        for handle, destroy in self._made.values():
            if handle:
                self._bench.function(destroy)(handle)
        self._made.clear()

    def _make(self, key: Any, create: str, destroy: str, *arguments: Any) -> int:
        if key not in self._made:
            handle = ctypes.c_void_p()
            self._bench.function(create)(ctypes.byref(handle), *arguments)
            self._made[key] = (handle.value or 0, destroy)
        return self._made[key][0]

    def arr(self, name: str) -> int:
        """The address of an array of a matrix: ``arr("offsetsG032")``."""
        return self._block + self._arrays[name]

    def _finish(self, handle: int, key: Any, fill: int | None, diag: int | None) -> int:
        for attribute, value in ((0, fill), (1, diag)):
            if value is not None:
                self._bench.function("cusparseSpMatSetAttribute")(
                    handle, attribute, ctypes.byref(ctypes.c_int(value)), 4
                )
        return handle

    def csr(
        self,
        letter: str,
        which: str = "G",
        base: int = 0,
        off: int = 32,
        ind: int = 32,
        values: int = 0,
        batch: tuple[int, int, int] | None = None,
        fill: int | None = None,
        diag: int | None = None,
    ) -> int:
        key = ("csr", letter, which, base, off, ind, values, batch, fill, diag)
        known = key in self._made
        rows, columns, lines = MATRICES[which]
        handle = self._make(
            key, "cusparseCreateCsr", "cusparseDestroySpMat", rows, columns, sum(map(len, lines)),
            self.arr(f"offsets{which}{base}{off}"), self.arr(f"indices{which}{base}{ind}"),
            values or self.arr(f"values{which}{letter}"), off // 32 + 1, ind // 32 + 1, base, CODES[letter],
        )  # fmt: skip
        if batch and not known:
            self._bench.function("cusparseCsrSetStridedBatch")(handle, *batch)
        return handle if known else self._finish(handle, key, fill, diag)

    def csc(self, letter: str, which: str = "G", base: int = 0, width: int = 32) -> int:
        rows, columns, lines = MATRICES[which]
        return self._make(
            ("csc", letter, which, base, width), "cusparseCreateCsc", "cusparseDestroySpMat", rows, columns,
            sum(map(len, lines)), self.arr(f"column_offsets{which}{base}{width}"),
            self.arr(f"column_indices{which}{base}{width}"), self.arr(f"turned{which}{letter}"), width // 32 + 1,
            width // 32 + 1, base, CODES[letter],
        )  # fmt: skip

    def coo(self, letter: str, which: str = "G", base: int = 0, width: int = 32, fill: int | None = None,
            diag: int | None = None, values: int = 0) -> int:  # fmt: skip
        key = ("coo", letter, which, base, width, fill, diag, values)
        known = key in self._made
        rows, columns, lines = MATRICES[which]
        handle = self._make(
            key, "cusparseCreateCoo", "cusparseDestroySpMat", rows, columns,
            sum(map(len, lines)), self.arr(f"rows{which}{base}{width}"), self.arr(f"indices{which}{base}{width}"),
            values or self.arr(f"values{which}{letter}"), width // 32 + 1, base, CODES[letter],
        )  # fmt: skip
        return handle if known else self._finish(handle, key, fill, diag)

    def bsr(self, letter: str, size: tuple[int, int] = (2, 2), order: int = 2, base: int = 0, width: int = 32,
            values: int = 0) -> int:  # fmt: skip
        """Blocks with values of the row A."""
        rows, columns, lines = MATRICES["X"]
        return self._make(
            ("bsr", letter, size, order, base, width, values), "cusparseCreateBsr", "cusparseDestroySpMat", rows,
            columns, sum(map(len, lines)), *size, self.arr(f"offsetsX{base}{width}"),
            self.arr(f"indicesX{base}{width}"),
            values or self._bench.names[f"A{letter}"], width // 32 + 1, width // 32 + 1, base, CODES[letter], order,
        )  # fmt: skip

    def bell(self, letter: str, which: str = "V", size: int = 2, base: int = 0, width: int = 32,
             values: int = 0) -> int:  # fmt: skip
        """Two rows of three blocks, of which two are there, with values of the row A."""
        return self._make(
            ("bell", letter, which, size, base, width, values), "cusparseCreateBlockedEll", "cusparseDestroySpMat",
            2 * size, 3 * size, size, 2 * size, self.arr(f"ell{which}{base}{width}"),
            values or self._bench.names[f"A{letter}"], width // 32 + 1, base, CODES[letter],
        )  # fmt: skip

    def vec(self, row: str, letter: str, size: int) -> int:
        return self._make(
            ("vec", row, letter, size), "cusparseCreateDnVec", "cusparseDestroyDnVec", size,
            self._bench.names[row + letter], CODES[letter],
        )  # fmt: skip

    def mat(self, row: str, letter: str, rows: int, columns: int, ld: int = 0, order: int = 1,
            batch: tuple[int, int] | None = None) -> int:  # fmt: skip
        key = ("mat", row, letter, rows, columns, ld, order, batch)
        known = key in self._made
        least = rows if order == 1 else columns
        handle = self._make(
            key, "cusparseCreateDnMat", "cusparseDestroyDnMat", rows, columns, ld or least,
            self._bench.names[row + letter], CODES[letter], order,
        )  # fmt: skip
        if batch and not known:
            self._bench.function("cusparseDnMatSetStridedBatch")(handle, *batch)
        return handle

    def spvec(self, letter: str, row: str = "x", base: int = 0, width: int = 32) -> int:
        """A vector of 8 elements, of which 4 are there."""
        return self._make(
            ("spvec", letter, row, base, width), "cusparseCreateSpVec", "cusparseDestroySpVec", 8, 4,
            self.arr(f"places{base}{width}"), self._bench.names[row + letter], width // 32 + 1, base, CODES[letter],
        )  # fmt: skip

    def out(self, letter: str, rows: int, columns: int, kind: str = "csr", base: int = 0, nnz: int = 0,
            offsets: str = "P") -> int:  # fmt: skip
        """An empty matrix for a result: offsets in P, indices in Q, values in R."""
        names = self._bench.names
        types = (2, base) if kind == "coo" else (2, 2, base)
        place = names["Q"] if nnz else 0, names["R" + letter] if nnz else 0
        return self._make(
            ("out", letter, rows, columns, kind, base, nnz, offsets), f"cusparseCreate{kind.title()}",
            "cusparseDestroySpMat", rows, columns, nnz, names[offsets], *place, *types, CODES[letter],
        )  # fmt: skip

    def spsv(self) -> int:
        return self._make("spsv", "cusparseSpSV_createDescr", "cusparseSpSV_destroyDescr")

    def spsm(self) -> int:
        return self._make("spsm", "cusparseSpSM_createDescr", "cusparseSpSM_destroyDescr")

    def spgemm(self) -> int:
        return self._make("spgemm", "cusparseSpGEMM_createDescr", "cusparseSpGEMM_destroyDescr")

    def spgeam(self) -> int:
        return self._make("spgeam", "cusparseSpGEAM_createDescr", "cusparseSpGEAM_destroyDescr")

    def legacy(self) -> int:
        return self._make("legacy", "cusparseCreateMatDescr", "cusparseDestroyMatDescr")
