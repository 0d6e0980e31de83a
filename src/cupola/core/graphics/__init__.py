"""Buffers and images of OpenGL that CUDA reads and writes while they are mapped."""
