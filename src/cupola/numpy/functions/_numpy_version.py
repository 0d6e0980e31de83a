"""What follows from the version of NumPy: results are those of the one that is installed."""

from __future__ import annotations

import numpy

# Eigenvalues are always complex numbers, and vectors of two elements have no cross product.
SINCE_2_5 = numpy.lib.NumpyVersion(numpy.__version__) >= "2.5.0.dev0"
