"""CUDA programs on the CPU device beside the same programs written for the CPU, with OpenMP."""
