"""Arrays whose layout only the device knows, and the textures and surfaces through which kernels reach them.

The public names are those of ``cupola.texture``.
"""
