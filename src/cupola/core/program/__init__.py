"""From source to kernels: compilers, linkers, caches of their results, loaded code.

Also explains errors of compilers and linkers, and turns options into their flags.
"""
