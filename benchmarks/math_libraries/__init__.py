"""The CPU device's math libraries beside NumPy and SciPy."""
