"""Buffers and memory resources: pools, host memory, managed and virtual memory, memory of graphs.

Also copies and fills of buffers, prefetching, which devices may access them, and buffers that processes share.
"""
