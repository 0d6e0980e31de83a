"""Programs for packages above CUDA, unchanged, on the CPU device: each is a script for ``cupola run``."""
