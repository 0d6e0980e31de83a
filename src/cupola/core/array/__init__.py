"""Memory with a type and a shape: the class Array, its creation, and copies between any layouts.

There is no arithmetic here; ``cupola.numpy`` builds on it.
"""
