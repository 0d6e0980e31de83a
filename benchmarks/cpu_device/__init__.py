"""The speed of kernels on the CPU device, beside C, NumPy and PoCL."""
