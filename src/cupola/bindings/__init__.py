"""CUDA's C libraries, function by function: ``from cupola.bindings import driver, nvrtc, nvjitlink``.

Importing a module loads no library; its first call does.
"""
