"""The cost of one call, from C, cupola, cuda.core and CuPy."""
