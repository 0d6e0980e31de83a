"""Buffers and where they come from: pools, memory of the host, managed and virtual memory, memory of graphs.

Copies, fills and moves of buffers, which devices may reach them, and buffers that processes share.
"""
