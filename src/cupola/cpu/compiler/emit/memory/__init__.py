"""Loads, stores, atomics, copies, textures: what they check, and how many lanes they serve at a time."""
