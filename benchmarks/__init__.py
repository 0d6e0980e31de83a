"""Benchmarks: the cost of calls on a GPU, and the speed of the CPU device."""
