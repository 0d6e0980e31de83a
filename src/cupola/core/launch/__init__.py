"""Launches: their configuration, the arguments of a kernel checked and packed, limits and occupancy.

A launch runs from Python objects to the driver without making any; that path is in ``_launch`` and ``_arguments``.
"""
