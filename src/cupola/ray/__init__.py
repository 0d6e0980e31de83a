"""Actors of Ray with a device each, and arrays of cupola.numpy that they hand to each other.

Needs Ray (``pip install "cupola[ray]"``).
"""

try:
    import ray as _ray
except ImportError as _error:
    raise ImportError(f'cupola.ray needs Ray: pip install "cupola[ray]" ({_error})') from None

from cupola.ray._sharing import Shared, share
from cupola.ray._start import device, init, register_transport

del _ray

__all__ = ["Shared", "device", "init", "register_transport", "share"]
