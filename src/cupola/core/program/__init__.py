"""From source to kernels: compilers, linkers, caches of what they made, loaded code.

What a compiler or linker says is explained here, and options become their flags.
"""
