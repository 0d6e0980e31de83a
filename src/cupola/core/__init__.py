"""The object layer, room by room: base, device, memory, exchange, program, launch. Each imports from those before it.

Programs import none of it: the public names are those of ``cupola``, ``cupola.graph`` and ``cupola.utils``.
"""
