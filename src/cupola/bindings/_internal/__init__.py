"""What other packages look up in the private modules of ``cuda.bindings``: numba-cuda asks there what is installed.

Nothing of cupola uses it.
"""
