"""Launches: their configuration, the arguments of a kernel checked and packed, limits and occupancy.

The path of a launch from Python objects to the driver creates no objects; it is in ``_launch`` and ``_arguments``.
"""
