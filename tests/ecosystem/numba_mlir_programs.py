"""The programs of numba_programs.py with numba-cuda-mlir.

usage: cupola run --device cpu tests/ecosystem/numba_mlir_programs.py [NAME ...]
"""

from __future__ import annotations

import os

os.environ["NUMBA_PACKAGE"] = "numba_cuda_mlir"

from numba_programs import PROGRAMS, main

if __name__ == "__main__":
    main(PROGRAMS)
