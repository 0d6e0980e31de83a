"""Products of matrices and vectors that the threads of kernels share."""

from __future__ import annotations

import os
import sys

import pytest

from tests import processes

PROGRAM = """
import numpy
import cupola.numpy as np
random = numpy.random.default_rng(1)
for rows, columns in [(30001, 4), (4, 30001), (900, 700), (20000, 64), (3000, 3)]:
    for kind in ("f", "d"):
        for order in "CF":
            a = numpy.asarray(random.standard_normal((rows, columns)), kind, order=order)
            x = random.standard_normal(columns).astype(kind)
            found = np.asnumpy(np.asarray(a) @ np.asarray(x))
            numpy.testing.assert_allclose(found, a @ x, rtol=0, atol=columns * 16 * float(numpy.finfo(kind).eps))
            # What is large both ways is OpenBLAS's, whose threads divide it.
            print(rows, columns, kind, order, found.tobytes().hex() if min(rows, columns) < 65 else "")
"""


def test_results_do_not_depend_on_the_threads() -> None:
    pytest.importorskip("scipy_openblas64")
    printed = [
        processes.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_THREADS": threads},
            check=True,
        ).stdout
        for threads in ("1", "3")
    ]
    assert printed[0] == printed[1]
