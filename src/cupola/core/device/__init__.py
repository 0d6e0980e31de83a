"""Devices, their contexts, streams and events, and the order of work in streams.

The base class of memory resources is here, too: a device has one that it allocates from.
"""
