"""Anybody's arrays as views: DLPack, the CUDA array interface, the array interface of NumPy.

The protocols are read here once, for views, for the layouts that they have and for the C exchange API of DLPack.
"""
