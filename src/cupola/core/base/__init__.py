"""What every room of the object layer needs, and what knows of none of them.

Calls into the driver and the errors that they become, objects that live until the driver lets go, options that callers
may give as dicts, the structs of DLPack.
"""
