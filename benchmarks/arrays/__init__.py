"""cupola.numpy against CuPy and NumPy: small arrays, where calls count, and large ones, where bandwidth does."""
