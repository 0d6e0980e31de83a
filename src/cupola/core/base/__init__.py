"""The base of the object layer: what every folder above needs. It depends on none of them.

Calls into the driver and their errors, objects that live until the driver releases them, options that callers may give
as dicts, and the structs of DLPack.
"""
