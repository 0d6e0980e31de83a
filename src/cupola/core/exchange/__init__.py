"""Views of arrays of other libraries: DLPack, the CUDA array interface, the array interface of NumPy.

Reads these protocols for views, and has the layouts of views and DLPack's C exchange API.
"""
